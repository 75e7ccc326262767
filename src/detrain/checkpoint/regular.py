"""Reading files that somebody else may have put there: regular ones only, and of a known size.

A symbolic link would lead out of the run, a pipe would never end, a device has no size. Whoever
reads with these functions is told so instead.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from detrain.errors import DamagedCheckpoint

__all__ = ["check_own_files", "read_regular", "regular_size"]


def regular_size(path: Path) -> int:
    """The size of a regular file; `DamagedCheckpoint` for anything else."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        raise DamagedCheckpoint(str(path), "is missing") from None
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(str(path), f"can't be read: {error}") from error
    if not stat.S_ISREG(facts.st_mode):
        raise DamagedCheckpoint(str(path), f"expected a file, found {_kind(facts.st_mode)}")
    return facts.st_size


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most that many bytes."""
    size = regular_size(path)
    if size > most:
        raise DamagedCheckpoint(str(path), f"is {size} bytes long, expected at most {most}")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise DamagedCheckpoint(str(path), f"can't be read: {error.strerror}") from error


def check_own_files(folder: Path, subfolder: str) -> None:
    """`DamagedCheckpoint` unless a folder, and one inside it, hold nothing but files and folders.

    What a run cuts back, writes on and removes are its own files; through a link it would be
    somebody else's.
    """
    for path in (folder, folder / subfolder):
        if not os.path.lexists(path):
            continue
        if path != folder and not stat.S_ISDIR(os.lstat(path).st_mode):
            raise DamagedCheckpoint(str(path), "expected a folder of the run; it is none")
        with os.scandir(path) as found:
            entries = list(found)
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise DamagedCheckpoint(
                    entry.path,
                    f"expected a file or folder of the run, found {_kind(mode)}. The run is not "
                    "touched. To have runs elsewhere, link the folder of all runs, or use --runs",
                )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")
