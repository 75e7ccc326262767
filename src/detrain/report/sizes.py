"""Sizes as people read them."""

from __future__ import annotations

__all__ = ["size_text"]


def size_text(count: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1."""
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
