"""Files that survive a crash: written beside their target, synced, renamed, directory synced.

After a kill at any instruction, the old file or the new one is there, whole. `reached` is told each
step by name, so that tests can kill the process exactly there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

__all__ = ["STAGED", "Reached", "ignore", "sync_directory", "write_durably"]

Reached = "Callable[[str], None]"

STAGED = ".staged"
"""Ending of a file that is not yet what its name will say. One that is left over is garbage."""


def ignore(point: str) -> None:
    """The `Reached` of ordinary runs."""


def write_durably(
    path: Path,
    chunks: Iterable[bytes | bytearray | memoryview],
    kind: str,
    reached: Callable[[str], None] = ignore,
) -> int:
    """Write a file so that it is whole or absent; gives its size. `kind` prefixes the points."""
    staged = path.with_name(path.name + STAGED)
    size = 0
    with staged.open("wb", buffering=0) as file:
        reached(f"{kind}-begun")
        for number, chunk in enumerate(chunks):
            view = memoryview(chunk).cast("B")
            while len(view):
                written = file.write(view)
                size += written
                view = view[written:]
            if number == 0:
                reached(f"{kind}-partly-written")
        reached(f"{kind}-written")
        os.fsync(file.fileno())
    reached(f"{kind}-synced")
    staged.replace(path)
    reached(f"{kind}-renamed")
    sync_directory(path.parent)
    reached(f"{kind}-durable")
    return size


def sync_directory(folder: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
