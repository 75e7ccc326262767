"""Which checkpoints are kept. Pure functions; what they name is removed elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["garbage", "retired"]


def retired(steps: Collection[int], keep: int) -> list[int]:
    """The checkpoints to give up, oldest first: all but the last `keep`."""
    return sorted(steps)[:-keep] if keep > 0 else []


def garbage(files: Iterable[str], named: Collection[str]) -> list[str]:
    """The data files that no kept manifest names."""
    return sorted(set(files) - set(named))
