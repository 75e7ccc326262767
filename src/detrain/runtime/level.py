"""A loop that is running: where it is, what it may reach, what was finished in its iteration.

The levels of the active loops, outermost first, are a stack. A loop's *site* is the function that
runs it and the loop's number among those begun in its parent's iteration: it does not change when
lines are added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from detrain.checkpoint.copying import Pace

if TYPE_CHECKING:
    from detrain.capture.returning import Present
    from detrain.checkpoint.manifest import SavedLoop, SavedState
    from detrain.checkpoint.snapshot import Snapshot
    from detrain.runtime.advance import Advancing
    from detrain.state import Scalar

__all__ = ["Finished", "Habits", "Level", "flat_observations"]


EVERYTHING = "*"
"""Stands for all arrays."""


@dataclass
class Habits:
    """What was seen of a site so far; None as long as it was not seen.

    `nests`: other loops run inside. `followed`: other loops run after it, in the same iteration of
    its parent. They only decide which states are worth keeping; a wrong guess delays a checkpoint.
    """

    nests: bool | None = None
    followed: bool | None = None
    rejected: int = 0
    """How many checkpoints in a row turned out to have a graph across them."""
    kept: set[str] = field(default_factory=set)
    """Places that the plan leaves out and that the program was seen to use."""
    fixed: dict[int, dict[str, str]] = field(default_factory=dict)
    """Digests of what nothing is to change after the setup: by the id of the object that has it as
    a field, and by path."""
    audited: bool = False
    """Whether an iteration after a checkpoint was watched and none of what is left out was read."""
    hasty: set[str] = field(default_factory=set)
    """Arrays that the loop changes before its update: they are copied at once."""
    present: Present | None = None
    """What was there when the loop was first entered: what came later must be made on resume."""
    torn: int = 0
    """How many checkpoints had such an array; with the second one all are copied at once."""
    left_at: int = -1
    """The last checkpoint before one that was left to a loop inside."""
    pace: Pace = field(default_factory=Pace)
    """How long an iteration lets a copy go on."""
    full: bool = False
    """Whether a loop around a cut needs all state, though its plan has few places for it."""

    @property
    def in_haste(self) -> tuple[str, ...]:
        """What is copied at once from now on, to be kept for later attempts."""
        return (*sorted(self.hasty), *([EVERYTHING] if self.torn > 1 else []))

    def hurry(self, places: tuple[str, ...]) -> None:
        """Go on with what an earlier attempt has learned."""
        self.hasty = {*places} - {EVERYTHING}
        self.torn = 2 if EVERYTHING in places else min(1, len(places))


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
    whole: bool = False
    """Whether its state is all that the program can reach, rather than what was declared."""
    outer: tuple[tuple[str, int], ...] = ()
    """Where the loops around it are, as (site, iteration)."""
    entered_at: float = 0.0
    """When it was entered: what took long is passed over on resume, the rest is run again."""
    source: Advancing | None = None
    iteration: int = 0
    under_way: bool = False
    """Whether the body has been entered and not yet come back."""
    draws: bool = False
    """Whether the iterable was seen to draw random numbers between its items."""
    loading: bool = False
    """Whether a loader is at work to give its next item."""
    gone: bool = False
    """Whether the program has left it."""
    begun: int = 0
    """Loops begun in this iteration."""
    finished: list[Finished] = field(default_factory=list)
    head: Snapshot | SavedState | None = None
    """The state at the head of this iteration, if it was kept."""
    way: Snapshot | SavedState | None = None
    """What the way from there to a loop inside reads, where `head` is that of a checkpoint here."""
    order: str = ""
    """The iterable's account of the items before this iteration, if the head was kept."""

    opaque: dict[str, str] = field(default_factory=dict)
    """What can't be captured and was there when the loop was entered, with digests of it."""
    made: dict[str, str] = field(default_factory=dict)
    """Digests of what is not saved because nothing changes it, as it was when first looked at."""
    observed: list[Any] = field(default_factory=list)
    """What the program asked the world since the head, and `Finished` loops in their places."""
    passed: SavedLoop | None = None
    """What is known of it, if it is passed over on resume."""

    _path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.parent is not None:
            self._path = (*self.parent.path(), self.site)

    @property
    def around(self) -> Snapshot | SavedState | None:
        """The state at the head, for a checkpoint at a loop inside this one."""
        return self.way or self.head

    def path(self) -> tuple[str, ...]:
        """The sites from the outermost loop to this one."""
        return self._path

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
            _add(found, loop.level.declared)
        return found


@dataclass
class Finished:
    """A loop that ended in its parent's current iteration.

    `exit` is the state that it left. One without is run again on resume, if DETrain found it; one
    that the program wrote can't be, because the state before it was not declared as a whole.
    """

    level: Level
    exit: Snapshot | SavedState | None

    @property
    def site(self) -> str:
        """Its site."""
        return self.level.site

    @property
    def habits(self) -> Habits:
        """What is known of its site."""
        return self.level.habits

    @property
    def entered_at(self) -> float:
        """When it was entered."""
        return self.level.entered_at


def flat_observations(observed: list[Any]) -> tuple[tuple[str, Scalar], ...]:
    """All answers that will be asked for again, in order: those of loops that are run again too."""
    found: list[tuple[str, Scalar]] = []
    for each in observed:
        if isinstance(each, Finished):
            found += flat_observations(each.level.observed) if each.exit is None else ()
        else:
            found.append(each)
    return tuple(found)


def _add(found: dict[str, Any], more: dict[str, Any]) -> None:
    """Add names; one that is taken by another object gets a mark of its own."""
    for name, value in more.items():
        while name in found and found[name] is not value:
            name += "'"
        found[name] = value
