"""A disk that fails in chosen ways, for tests of what survives it.

Calls of the operating system that concern files below a folder are counted, and fail or are slow
as the test says. Everything above them is real.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CALLS", "Fault", "faulty"]

CALLS = ("open", "write", "pwrite", "fsync", "ftruncate", "replace", "rename", "unlink", "mkdir")
"""What can fail."""


@dataclass(frozen=True)
class Fault:
    """The calls numbered `first` to `last` (from 1) of one kind fail with an error number.

    Without one they succeed, after `delay` seconds.
    """

    call: str
    first: int = 1
    last: int = 1 << 62
    errno: int = 0
    delay: float = 0.0


@contextlib.contextmanager
def faulty(folder: Path, *faults: Fault) -> Iterator[dict[str, int]]:
    """Let calls below a folder fail; gives how many there were of each kind."""
    counts = dict.fromkeys(CALLS, 0)
    lock = threading.Lock()
    plain: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in CALLS}
    base = str(folder.absolute())

    def failing(name: str) -> Callable[..., Any]:
        def call(first: Any, *args: Any, **kwargs: Any) -> Any:
            path = _path(first)
            if path != base and not path.startswith(base + os.sep):
                return plain[name](first, *args, **kwargs)
            with lock:
                counts[name] += 1
                number = counts[name]
            for fault in faults:
                if fault.call == name and fault.first <= number <= fault.last:
                    time.sleep(fault.delay)
                    if fault.errno:
                        raise OSError(fault.errno, os.strerror(fault.errno), path)
            return plain[name](first, *args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, failing(name))
    try:
        yield counts
    finally:
        for name, function in plain.items():
            setattr(os, name, function)


def _path(first: Any) -> str:
    """What a call is about: a path, or the file of a handle."""
    if isinstance(first, int):
        try:
            return os.readlink(f"/proc/self/fd/{first}")  # noqa: PTH115
        except OSError:
            return ""
    return os.path.abspath(os.fsdecode(first))  # noqa: PTH100
