"""Has older checkpoints compacted by another process, while the program goes on.

Packing takes time on a core and would hold up the program's own thread if it shared the
interpreter, so it has a process of its own, which runs when nothing else wants to. It ends with the
run, whatever is left: what was compacted by then is, and all else is as it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Compacting"]


class Compacting:
    """One such process at a time. On the writer's thread, except `stop`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._seen: frozenset[int] = frozenset()
        self.trouble = ""
        """What the last one failed with, until somebody has said it."""

    def ended(self) -> bool:
        """Whether a process was at work and has ended since the last time."""
        process = self._process
        if process is None or process.poll() is None:
            return False
        self._process = None
        said, _ = process.communicate()
        self.trouble = said.strip().replace("\n", "; ") if process.returncode else ""
        return True

    def begin(self, history: frozenset[int], newest: int) -> None:
        """Have the checkpoints of these steps compacted, unless that is under way or was tried."""
        if self._process is not None or history <= self._seen:
            return
        self._seen = history
        command = [sys.executable, "-P", "-m", "detrain.checkpoint.compaction"]
        self._process = subprocess.Popen(
            [*command, str(self._folder), str(newest), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # an interrupt typed at the terminal is not for it
            env={**os.environ, "DETRAIN_CRASH_AT": ""},
        )

    def stop(self) -> None:
        """End it, wherever it is."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
