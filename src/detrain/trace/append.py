"""Adding to a file of the run: all of it, or an error and none of it.

A disk that is full takes a part of a line, and the next line would follow in the middle of it.
"""

from __future__ import annotations

import contextlib
import os

from detrain.errors import Unwritable

__all__ = ["append"]


def append(file: int, data: bytes, name: str) -> None:
    """Add bytes to a file that was opened to append; `Unwritable` if it does not take them."""
    done = 0
    try:
        while done < len(data):
            done += os.write(file, data[done:] if done else data)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.ftruncate(file, os.fstat(file).st_size - done)
        raise Unwritable(name, error) from error
