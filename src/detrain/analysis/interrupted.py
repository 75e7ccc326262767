"""A run of a program that was interrupted at the head of a loop, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field

from detrain.analysis.cells import Cell
from detrain.analysis.heap import State
from detrain.analysis.putback import Saved

__all__ = ["Checkpoint", "Interrupted", "Level"]


@dataclass
class Level:
    """A sequential loop that is running."""

    label: str
    ordinal: int
    """Which of the loops begun in the iteration around it it is."""
    iteration: int = 0
    begun: int = 0
    head: State | None = None
    now: list[int] = field(default_factory=list)
    """What the world answered since the head, and in all, in loops that are run again too."""
    ever: list[int] = field(default_factory=list)
    way: list[int] = field(default_factory=list)
    """What was looked at since the head, and in all, in loops that are run again too."""
    whole_way: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Interrupted:
    """A run at the head of a loop, with everything that there is; the first level is `main`."""

    chain: tuple[int, ...]
    levels: tuple[Level, ...]
    asked: int
    emitted: int

    def kept(self, plan: Callable[[int], tuple[Set[Cell], Set[Cell]]]) -> Checkpoint:
        """What is left of it: `plan` gives what is restored, and what has changed, by level."""
        levels = []
        for number, level in enumerate(self.levels[1:]):
            restore, changed = plan(number)
            assert level.head is not None
            levels.append(
                Saved(
                    level.label, level.ordinal, level.iteration, level.head, restore, changed,
                    tuple(level.now), tuple(self.levels[number].way),
                )
            )  # fmt: skip
        return Checkpoint(tuple(levels), tuple(self.levels[0].now), self.asked)


@dataclass(frozen=True)
class Checkpoint:
    """What is left of an interrupted run."""

    levels: tuple[Saved, ...]
    answers: tuple[int, ...]
    """What the world answered before the outermost loop."""
    asked: int
