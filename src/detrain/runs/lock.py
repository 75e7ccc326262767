"""Who owns a run. The operating system holds the lock, so that it can't outlive its owner.

A POSIX record lock belongs to a process: it is not inherited by loader workers that outlive a
killed run, and it is gone with the process, however that ends. The owner's name stands in a file
beside it, for people. (The lock would be lost if this process closed another handle of the lock
file, so nobody else opens it.)
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

import msgspec

from detrain.errors import RunLocked

__all__ = ["Owner", "RunLock", "is_locked"]

_PATIENCE = 1.0
"""Seconds to wait for somebody who only looks whether the run is locked."""


class Owner(msgspec.Struct, frozen=True):
    """The process that owns a run, or owned it last."""

    pid: int
    host: str
    since: float

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host} (since {when})"


class RunLock:
    """Held from construction to `release`; `RunLocked` if somebody else holds it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    os.close(self._file)
                    raise RunLocked(name, str(read_owner(folder) or "another process")) from None
                time.sleep(0.02)
        owner = Owner(os.getpid(), socket.gethostname(), time.time())
        (folder / "owner.json").write_bytes(msgspec.json.encode(owner))

    def release(self) -> None:
        """Give the run up."""
        os.close(self._file)


def read_owner(folder: Path) -> Owner | None:
    """The owner, or the last one if the run is not locked."""
    try:
        return msgspec.json.decode((folder / "owner.json").read_bytes(), type=Owner)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def is_locked(folder: Path) -> bool:
    """Whether a living process owns the run. Never call it in the owning process."""
    path = folder / "lock"
    if not path.exists():
        return False
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
