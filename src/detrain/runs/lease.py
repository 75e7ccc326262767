"""Who works on a run of a store: one process at a time, wherever it runs.

A lock of the operating system ends at the machine. So whoever works on a run says so in an object
of the run, again and again. Another one who wants it looks whether that goes on: no clock is
compared with another machine's. Processes of the same machine ask the system instead.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from detrain.errors import RunLocked
from detrain.runs.remote import LEASE

if TYPE_CHECKING:
    from detrain.checkpoint.objects import Objects

__all__ = ["Holder", "Lease", "is_alive", "read_lease"]

BEAT = float(os.environ.get("DETRAIN_BEAT", "5"))
"""Seconds between two signs of life. One that is silent for five of them is dead."""


class Holder(msgspec.Struct, frozen=True):
    """The process that works on a run, and the one that uploads for it."""

    host: str
    boot: str
    pid: int
    courier: int
    since: float
    token: str
    beat: int = 0
    seen: float = 0.0
    released: bool = False

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host} (since {when})"


def read_lease(raw: bytes) -> Holder | None:
    """Read what a holder says of itself; None if nobody does."""
    try:
        return msgspec.json.decode(raw, type=Holder)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Lease:
    """This process's hold on a run; `take` first."""

    def __init__(
        self,
        objects: Objects,
        run: str,
        owner: int,
        say: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._objects, self._run, self._say, self._sleep = objects, run, say, sleep
        self._holder = Holder(
            socket.gethostname(), _boot(), owner, os.getpid(), time.time(), os.urandom(8).hex()
        )

    def take(self) -> None:
        """Become the holder; `RunLocked` if another one is alive."""
        before = self._read()
        if before is not None and not before.released:
            self._await_end(before)
        self._write(new=before is None)
        self._sleep(min(0.2, BEAT))
        if not self.is_held():  # another one came at the same moment
            raise RunLocked(self._run, str(self._read() or "another process"))

    def is_held(self) -> bool:
        """Whether nobody else has taken the run over."""
        now = self._read()
        return now is not None and now.token == self._holder.token

    def beat(self) -> None:
        """Give a sign of life."""
        self._holder = msgspec.structs.replace(
            self._holder, beat=self._holder.beat + 1, seen=time.time()
        )
        self._write()

    def release(self) -> None:
        """Let others have the run, if it is still ours to let."""
        if self.is_held():
            self._holder = msgspec.structs.replace(self._holder, released=True)
            self._write()

    def _await_end(self, before: Holder) -> None:
        """Return when the holder is known to be gone."""
        here = before.boot == self._holder.boot and before.host == self._holder.host
        if here and not is_alive(before.pid):
            if is_alive(before.courier):
                self._say(f"waiting for the upload of {self._run} that an earlier attempt began")
            while is_alive(before.courier):
                self._sleep(0.1)
            return
        if here:
            raise RunLocked(self._run, str(before))
        self._say(f"looking whether {before} still works on {self._run}")
        for _ in range(10):
            self._sleep(BEAT / 2)
            now = self._read()
            if now is None or now.released:
                return
            if (now.token, now.beat) != (before.token, before.beat):
                raise RunLocked(self._run, str(now))

    def _read(self) -> Holder | None:
        try:
            return read_lease(self._objects.read(f"{self._run}/{LEASE}", 1 << 16))
        except FileNotFoundError:
            return None

    def _write(self, *, new: bool = False) -> None:
        try:
            raw = msgspec.json.encode(self._holder)
            self._objects.put_bytes(f"{self._run}/{LEASE}", raw, new=new)
        except FileExistsError:
            raise RunLocked(self._run, str(self._read() or "another process")) from None


def _boot() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def is_alive(pid: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
