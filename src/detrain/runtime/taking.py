"""Taking a checkpoint at the head of a loop: whether one may be, and all that it needs there.

What may not be taken is said, with the reason. What was taken is held by `Saving` until the
iteration that follows has confirmed it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from detrain.checkpoint.snapshot import Snapshot
from detrain.frameworks import find
from detrain.runtime.audit import Audit
from detrain.runtime.roots import Roots
from detrain.runtime.watch import Watch
from detrain.world.pools import idle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.capture.walk import Walked
    from detrain.runtime.attempt import Attempt
    from detrain.runtime.level import Habits, Level
    from detrain.runtime.saving import Saving
    from detrain.runtime.states import States

__all__ = ["Taking"]


class Taking:
    """Takes the checkpoints of a run that are due."""

    def __init__(
        self,
        attempt: Attempt,
        states: States,
        saving: Saving,
        habits: Mapping[tuple[str, ...], Habits],
        owns: Callable[[str], bool],
    ) -> None:
        self._attempt, self._states, self._saving = attempt, states, saving
        self._habits, self._owns = habits, owns
        self.known: dict[tuple[str, ...], dict[str, Any]] = {}
        """What loops declared, by their paths."""
        self.moving: dict[tuple[str, ...], list[Any]] = {}
        """Generators that move with what a loop goes through, by the paths of declared loops."""
        self._returns: tuple[str, ...] | None = None
        """The loop whose state was last seen to be such that a resumed run would have it."""
        self.always_audits = False
        """Whether each checkpoint is watched, not only the first of a loop."""

    def left_to_inner(self, level: Level) -> bool:
        """Whether a loop inside this one takes the checkpoint that is due, and a smaller one.

        That is left to it once: if none comes of it, this loop takes one at its next head.
        """
        path, last = level.path(), self._saving.last_step
        inside = [h for each, h in self._habits.items() if each[: len(path)] == path != each]
        if level.habits.left_at == last or not level.habits.nests:
            return False
        if any(habits.rejected for habits in inside) or not self._states.is_thin(level):
            return False
        level.habits.left_at = last
        return True

    def take(self, level: Level, step: int) -> bool:
        """Copy a checkpoint; False if none may be taken here."""
        reason = self._obstacle(level)
        if reason is not None:
            if reason and not level.habits.nests:
                self._attempt.attention(f"no checkpoint can be taken: {reason}")
            return False
        marks = self._attempt.marks()  # first: it has all buffers written out
        self._saving.settle()
        watched = not level.habits.audited or self.always_audits
        changing = self._saving.changing(level)
        walked = self._states.copy_cut(level, thorough=watched, changing=changing)
        reason = self._would_not_return(level, walked)
        self._returns = None if reason else level.path()
        if reason:
            self._attempt.attention(f"no checkpoint can be taken: {reason}")
            self._states.give_up(level)
            return True
        self._saving.release()
        audit = self._audit(level) if watched else None
        overlap = level.head.overlap if isinstance(level.head, Snapshot) else None
        may_stay = self._states.may_leave_gradients(level)
        watch = Watch(walked, audit, overlap, may_stay=may_stay)
        self._saving.hold(level, step, marks, watch)
        return True

    def _would_not_return(self, level: Level, walked: Walked) -> str:
        """What of a state a resumed run would not have; empty if there is nothing."""
        if walked.again and self._returns == level.path() and not self._states.has_opaque:
            return ""
        for path, digest in self._states.opaque_in(walked).items():
            if level.opaque.get(path) != digest:
                return (
                    f"{path} was made or changed in the loop {level.site} (line {level.line}), and "
                    "its content can't be captured. Keep what changes in arrays, lists or "
                    "dictionaries"
                )
        lost = self._states.lost(level, walked)
        if lost is not None:
            return (
                f"{lost.path} is {lost.name}, which {lost.why}. It came to be in the loop "
                f"{level.site} (line {level.line}), and a resumed run could not make it anew. Make "
                "it before the loop"
            )
        return ""

    def _audit(self, level: Level) -> Audit | None:
        """Watch what a checkpoint leaves out as dead, if that can be."""
        audit = Audit(self._owns)
        dead = self._states.dead_at(level)
        return audit if audit.start(Roots.of(level, self._owns).spaces, dead) else None

    def _obstacle(self, level: Level) -> str | None:
        """Why no checkpoint may be taken at the head of this loop; None if one may.

        All that any loop declared must be reachable from here, so must be the generators that move
        with the iterables of loops inside, nothing else may be at work, and the way back here must
        be kept. An empty text is a reason that will pass by itself.
        """
        return self._undeclared(level) or _at_work() or self._way_back(level)

    def _undeclared(self, level: Level) -> str:
        """What a checkpoint here would not have; empty if there is nothing."""
        reachable = {id(value) for value in level.objects().values()}
        for path, declared in self.known.items():
            for name, value in declared.items():
                if id(value) not in reachable:
                    return (
                        f"{name!r}, which the loop {' '.join(path)} declared, is not declared by "
                        f"the loop {level.site} (line {level.line}) or around it"
                    )
        here = level.path()
        for path, generators in self.moving.items():
            inside = path[: len(here)] == here != path
            if inside and any(id(generator) not in reachable for generator in generators):
                return (
                    f"what the loop {' '.join(path)} goes through has a random generator of its "
                    f"own, which is not declared by the loop {level.site} (line {level.line}) "
                    "around it"
                )
        return ""

    def _way_back(self, level: Level) -> str | None:
        """Why the way back to this head is not known; None if it is."""
        each: Level | None = level
        while each is not None:
            why = each.source.obstacle() if each.source is not None else ""
            if why:
                return f"the iterable of the loop {each.site} (line {each.line}) {why}"
            around = each is not level and each.parent is not None
            if around and (each.around is None or not each.around.gradients):
                return ""  # an inner loop that was not expected; the next iteration keeps its way
            if any(loop.exit is None and not loop.level.whole for loop in each.finished):
                return ""
            if around and self._states.is_thin(each) and any(x.exit is None for x in each.finished):
                return ""  # to run a finished loop again takes all that the loop around it reached
            each = each.parent
        return None


def _at_work() -> str:
    """What goes on beside the loop and can't be saved; empty if there is nothing."""
    tasks = idle.settle()
    if tasks:
        return (
            f"{tasks} tasks that the program gave to a pool are not done, and what they do can't "
            "be saved. Give a pool tasks that end, or take their results before the next iteration"
        )
    children = _own_children()
    if children:
        return (
            f"{children} processes that the program started are running, and what they do can't "
            "be saved. Train in this process, or start them through a data loader"
        )
    return ""


def _own_children() -> int:
    """How many processes are running that the program started, other than workers that wait."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None:
        return 0
    children = multiprocessing.active_children()
    if not children:
        return 0
    loading = {pid for framework in find.loaded() for pid in framework.workers()}
    waiting = loading | idle.workers()
    return sum(child.pid not in waiting for child in children)
