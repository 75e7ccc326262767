"""A loop that is running: where it is, what it may reach, what was finished in its iteration.

The levels of the active loops, outermost first, are a stack. A loop's *site* is the function that
runs it and the loop's number among those begun in its parent's iteration: it does not change when
lines are added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from detrain.capture.frames import bind, plain_variables

if TYPE_CHECKING:
    from detrain.checkpoint.manifest import SavedState
    from detrain.checkpoint.snapshot import Snapshot
    from detrain.runtime.advance import Advancing

__all__ = ["Finished", "Habits", "Level", "Roots"]


@dataclass
class Habits:
    """What was seen of a site so far; None as long as it was not seen.

    `nests`: other loops run inside. `followed`: other loops run after it, in the same iteration of
    its parent. They only decide which states are worth keeping; a wrong guess delays a checkpoint.
    """

    nests: bool | None = None
    followed: bool | None = None


@dataclass
class Finished:
    """A loop that ended in its parent's current iteration; `exit` is the state that it left."""

    site: str
    entry: str
    exit: Snapshot | SavedState | None
    declared: dict[str, Any]
    habits: Habits


@dataclass
class Level:
    """One active loop, or (as `parent` None) the run around all loops."""

    site: str
    parent: Level | None
    frame: FrameType | None
    declared: dict[str, Any]
    habits: Habits
    entry: str = ""
    line: int = 0
    source: Advancing | None = None
    iteration: int = 0
    under_way: bool = False
    """Whether the body has been entered and not yet come back."""
    draws: bool = False
    """Whether the iterable was seen to draw random numbers between its items."""
    gone: bool = False
    """Whether the program has left it."""
    begun: int = 0
    """Loops begun in this iteration."""
    finished: list[Finished] = field(default_factory=list)
    head: Snapshot | SavedState | None = None
    """The state at the head of this iteration, if it was kept."""
    order: str = ""
    """The iterable's account of the items before this iteration, if the head was kept."""

    def path(self) -> tuple[str, ...]:
        """The sites from the outermost loop to this one."""
        return (*self.parent.path(), self.site) if self.parent is not None else ()

    def stack(self) -> list[Level]:
        """The levels from the outermost loop to this one, without the run's own."""
        return [] if self.parent is None else [*self.parent.stack(), self]

    def objects(self) -> dict[str, Any]:
        """What was declared here, around here, and by loops that were finished on the way here.

        On resume the same way is taken, so exactly these are known when this place is reached.
        """
        found = {} if self.parent is None else self.parent.objects()
        _add(found, self.declared)
        for loop in self.finished:
            _add(found, loop.declared)
        return found


def _add(found: dict[str, Any], more: dict[str, Any]) -> None:
    """Add names; one that is taken by another object gets a mark of its own."""
    for name, value in more.items():
        while name in found and found[name] is not value:
            name += "'"
        found[name] = value


@dataclass(frozen=True)
class Roots:
    """What a state is captured from and restored to: declared objects and plain variables.

    `own` are generators of the loops' iterables. `frames` are the functions that run the loops,
    each with the name under which its plain variables are captured, as one dictionary.
    """

    objects: dict[str, Any]
    own: dict[str, Any]
    frames: dict[str, FrameType]

    @staticmethod
    def of(level: Level) -> Roots:
        """The roots at the head of a loop."""
        own: dict[str, Any] = {}
        frames: dict[str, FrameType] = {}
        for each in level.stack():
            generators = each.source.generators() if each.source is not None else []
            if generators:
                own[f"generators of {' '.join(each.path())}"] = generators
            if each.frame is not None and all(each.frame is not f for f in frames.values()):
                frames[f"variables of {' '.join(each.path())}"] = each.frame
        return Roots(level.objects(), own, frames)

    def values(self) -> dict[str, Any]:
        """All of them, as the walk takes them."""
        variables = {name: plain_variables(frame) for name, frame in self.frames.items()}
        return {**self.objects, **self.own, **variables}

    def bind(self, restored: dict[str, Any]) -> None:
        """Give the functions their variables back."""
        for name, frame in self.frames.items():
            bind(frame, restored[name])
