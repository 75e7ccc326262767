"""Files that survive a crash: written beside their target, synced, renamed, directory synced.

After a kill at any instruction, the old file or the new one is there, whole. `reached` is told each
step by name, so that tests can kill the process exactly there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

from detrain.checkpoint.direct import Sequential

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

__all__ = ["PACKING", "STAGED", "Reached", "ignore", "is_spare", "sync_directory", "write_durably"]

Reached = "Callable[[str], None]"

STAGED = ".staged"
"""Ending of a file that is not yet what its name will say. One that is left over is garbage."""
PACKING = ".packing"
"""Ending of such a file of a compaction, which is another process's than that of the run."""


_WORTH_SPARING = 16 << 20
"""Bytes of a file whose room is worth using again."""


def ignore(point: str) -> None:
    """The `Reached` of ordinary runs."""


def write_durably(
    path: Path,
    chunks: Iterable[bytes | bytearray | memoryview],
    kind: str,
    reached: Callable[[str], None] = ignore,
    spare: Path | None = None,
) -> int:
    """Write a file so that it is whole or absent; gives its size. `kind` prefixes the points.

    `spare` is a file that nobody needs and whose name is staged: its room is used again, which is
    cheaper than to free it and to find other. An error leaves nothing behind; the chunks may come
    as they get ready.
    """
    staged = spare or path.with_name(path.name + STAGED)
    file = os.open(staged, os.O_WRONLY | os.O_CREAT | (0 if spare else os.O_TRUNC), 0o644)
    try:
        reached(f"{kind}-begun")
        content = Sequential(file)
        for number, chunk in enumerate(chunks):
            content.write(chunk)
            if number == 0:
                reached(f"{kind}-partly-written")
        size = content.finish()
        reached(f"{kind}-written")
        os.fsync(file)
        reached(f"{kind}-synced")
        staged.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            staged.unlink()
        raise
    finally:
        os.close(file)
    reached(f"{kind}-renamed")
    sync_directory(path.parent)
    reached(f"{kind}-durable")
    return size


def is_spare(path: Path) -> bool:
    """Whether a file that is not needed any more can be written over.

    Not if it is small, or if anybody has it open or mapped, or if that can't be told.
    """
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        facts = os.fstat(file)
        if facts.st_size < _WORTH_SPARING or facts.st_nlink > 1:  # somebody holds on to it
            return False
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(file)


def sync_directory(folder: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
