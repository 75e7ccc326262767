"""Which checkpoints are kept. Pure functions; what they name is removed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Retention", "garbage", "retired"]


@dataclass(frozen=True)
class Retention:
    """The last so many, and one for every so many steps (None: no others).

    With `compact`, those that are kept besides the last ones are stored in less room.
    """

    last: int = 3
    every: int | None = None
    compact: bool = False


def retired(
    steps: Collection[int], rule: Retention, protected: Mapping[str, int] | None = None
) -> list[int]:
    """The checkpoints to give up, oldest first.

    Kept are the last ones; the first one at or after each multiple of `every`; and those that
    somebody gave a name, whatever the rule says. To ask again changes nothing, and a checkpoint
    that comes later never takes the place of one that was kept for its step.
    """
    ordered = sorted(steps)
    kept = set(ordered[-rule.last :]) | set((protected or {}).values())
    if rule.every is not None:
        firsts: dict[int, int] = {}
        for step in ordered:
            if step >= rule.every:
                firsts.setdefault(step // rule.every, step)
        kept.update(firsts.values())
    return [step for step in ordered if step not in kept]


def garbage(files: Iterable[str], named: Collection[str]) -> list[str]:
    """The data files that no kept manifest names."""
    return sorted(set(files) - set(named))
