"""The program's side of the courier: tells it what to bring, and learns what became of it.

Nothing here waits for a store while the program trains; opening a run and ending it do.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from detrain.errors import RunLocked, StoreUnavailable

__all__ = ["Mirror"]

_SOON = 3.0
"""Seconds of waiting that are worth a word."""


class Mirror:
    """A courier at work for this process."""

    def __init__(self, address: str, root: Path, say: Callable[[str], None]) -> None:
        self.address, self.root, self._say = address, root, say
        root.mkdir(parents=True, exist_ok=True)
        self._pending = b""
        self._failed = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "detrain.runs.courier", address, str(root), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # an interrupt typed at the terminal is not for it
            env={**os.environ, "DETRAIN_CRASH_AT": ""},
        )
        assert self._process.stdout is not None
        assert self._process.stdin is not None

    def heads(self) -> None:
        """Learn which runs there are."""
        self._ask("heads")

    def open(self, run: str) -> None:
        """Have a run for this process alone, as far as the store has it; `RunLocked` if not."""
        self._ask(f"open {run}")

    def push(self) -> None:
        """Have the newest checkpoint brought away, soon."""
        self._listen(0.0)
        self._tell("push")

    def end(self) -> None:
        """Wait until everything is there, and let the run go."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        began = time.monotonic()
        told = False
        while self._process.poll() is None:
            self._listen(0.2)
            if not told and time.monotonic() - began > _SOON:
                told = True
                self._say(f"bringing the rest of the run to {self.address}")
        self._listen(0.0)
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._failed:
            self._say(
                f"not all of the run is in {self.address}: {self._failed}. It is whole in "
                f"{self.root}; the next attempt on this machine brings it there"
            )

    def _ask(self, line: str) -> None:
        """Tell, and wait for the answer."""
        self._tell(line)
        while True:
            for answer in self._listen(1.0):
                if "failed" in answer:
                    if answer["kind"] == "RunLocked":
                        raise RunLocked(line.partition(" ")[2], answer.get("owner", ""))
                    raise StoreUnavailable(self.address, OSError(answer["failed"]), "")
                if answer.get("done") == line.partition(" ")[0]:
                    return
            if self._process.poll() is not None:
                raise StoreUnavailable(self.address, OSError("the courier ended"), "")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            self._trouble("the courier ended")

    def _listen(self, seconds: float) -> list[dict[str, Any]]:
        """What the courier said; failures are passed on once each."""
        assert self._process.stdout is not None
        handle, answers = self._process.stdout.fileno(), []
        while select.select([handle], [], [], seconds)[0]:
            chunk = os.read(handle, 1 << 16)
            if not chunk:
                break
            *lines, self._pending = (self._pending + chunk).split(b"\n")
            answers += [json.loads(line) for line in lines]
            seconds = 0.0
        for answer in answers:
            if "say" in answer:
                self._say(answer["say"])
            elif "failed" in answer:
                self._trouble(answer["failed"])
            elif answer.get("done") == "push":
                self._failed = ""
        return answers

    def _trouble(self, text: str) -> None:
        if text != self._failed:
            self._failed = text
            self._say(f"a checkpoint could not be brought to {self.address}: {text}")
