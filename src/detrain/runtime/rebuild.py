"""The way back into a checkpoint.

The program runs again from its top. Each loop that it enters is compared with the one that the
checkpoint expects next: a finished loop is passed over by its exit state, an active one goes on at
its iteration. When the innermost one has its state back, the run is live.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from detrain.checkpoint.manifest import Manifest, SavedLevel, SavedLoop
from detrain.errors import ResumeMismatch

if TYPE_CHECKING:
    from detrain.runtime.level import Level

__all__ = ["Rebuild", "go_on"]


class Rebuild:
    """What the checkpoint expects the program to meet next."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._finished = deque(manifest.finished)
        self._levels = deque(manifest.levels)

    def meet(self, level: Level) -> SavedLoop | SavedLevel:
        """What the checkpoint knows of a loop that the program enters."""
        expected: SavedLoop | SavedLevel = self._finished[0] if self._finished else self._levels[0]
        if level.site != expected.site:
            raise self._mismatch(f"line {level.line}", f"the loop {level.site}", expected)
        if level.entry != expected.entry:
            raise ResumeMismatch(
                f"the loop {level.site} at line {level.line}",
                "the random generators where they stood in the first attempt",
                "them elsewhere",
                "Something before it draws random numbers depending on the clock, on the order of "
                "a set or a directory, or on state that no loop around it declares",
            )
        if self._finished:
            self._finished.popleft()
        else:
            self._levels.popleft()
        return expected

    def is_innermost(self) -> bool:
        """Whether the loop that was met last is the one that the checkpoint was taken at."""
        return not self._levels

    def enter(self, saved: SavedLevel) -> None:
        """A level has its state back."""
        self._finished = deque(saved.finished)

    def left_early(self, where: str) -> ResumeMismatch:
        """The error if the program leaves the way before the innermost loop is reached."""
        expected = self._finished[0] if self._finished else self._levels[0]
        return self._mismatch(where, "none", expected)

    def _mismatch(self, where: str, found: str, expected: SavedLoop | SavedLevel) -> ResumeMismatch:
        return ResumeMismatch(
            f"resuming at step {self.manifest.step}, {where}",
            f"the loop {expected.site}, as in the first attempt",
            found,
            "The way to a loop must not depend on what changes from one attempt to the next",
        )


def go_on(level: Level, saved: SavedLevel) -> None:
    """Take the iterable of a loop to where the checkpoint left it."""
    assert level.source is not None
    try:
        level.source.advance(saved.iteration, saved.origin)
    except StopIteration:
        raise ResumeMismatch(
            f"the loop {level.site} at line {level.line}",
            f"at least {saved.iteration} items, as in the first attempt",
            "fewer",
            "The iterable must give the same items in every attempt",
        ) from None
    found = level.source.order()
    if found != saved.order:
        raise ResumeMismatch(
            f"the data of the loop {level.site} at line {level.line}",
            f"the order of samples that the first attempt had ({saved.order})",
            found,
            "The sampler draws from a global generator, or from the clock, in the midst of an "
            "epoch: let it draw once at the start, or from a generator of its own",
        )
    level.iteration, level.order = saved.iteration, saved.order
