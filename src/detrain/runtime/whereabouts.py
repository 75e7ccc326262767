"""Where the program is: in which process and thread, in which functions, in which loop of one."""

from __future__ import annotations

import os
import threading
from types import FrameType

__all__ = ["frames", "here", "is_inside"]


def is_inside(site: str, other: str) -> bool:
    """Whether the loop of one site stands inside that of another, in one function."""
    return site.startswith(other.rstrip("!") + ".")


def here() -> tuple[int, int]:
    """The process and the thread."""
    return os.getpid(), threading.get_ident()


def frames(frame: FrameType | None) -> set[int]:
    """The addresses of a frame and of all that called it."""
    found = set()
    while frame is not None:
        found.add(id(frame))
        frame = frame.f_back
    return found
