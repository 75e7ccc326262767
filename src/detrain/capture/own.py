"""Which files are the program's own, if nobody says so: those that no library was installed as."""

from __future__ import annotations

import sysconfig

__all__ = ["not_a_library"]

_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def not_a_library(filename: str) -> bool:
    """Whether a file lies outside the folders that Python's libraries are installed in."""
    return not filename.startswith(_LIBRARIES) and not filename.startswith("<")
