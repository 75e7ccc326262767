"""Sizes and times as people read them."""

from __future__ import annotations

import time

__all__ = ["size_text", "time_text"]


def size_text(count: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1."""
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def time_text(seconds: float, form: str) -> str:
    """A time of day here; whoever wrote it down may have had a clock that was wrong."""
    try:
        return time.strftime(form, time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "at no time"
