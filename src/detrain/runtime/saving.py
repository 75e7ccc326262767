"""The way out into a checkpoint: when one is due, where one may be taken, how it is published.

A checkpoint is copied at a loop's head and published when the iteration that follows has gone well.
A loop that is just ending has no iteration left in which its variables would be bound again; and
only the iteration shows whether an autograd graph, which is not captured, reaches across the head.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from detrain.checkpoint.commit import publish, retire, save_state
from detrain.checkpoint.manifest import Borrowed, Manifest, SavedLevel, SavedLoop, SavedState
from detrain.checkpoint.snapshot import Snapshot
from detrain.frameworks import find
from detrain.runtime.level import flat_observations
from detrain.runtime.planned import GRADIENTS
from detrain.runtime.watch import Verdict

if TYPE_CHECKING:
    from detrain.checkpoint.store import LocalStore
    from detrain.runtime.level import Finished, Habits, Level
    from detrain.runtime.options import Options
    from detrain.runtime.watch import Watch
    from detrain.trace.log import TraceMark

__all__ = ["Marks", "Saving", "obstacle"]


def obstacle(
    level: Level,
    known: dict[tuple[str, ...], dict[str, object]],
    is_thin: Callable[[Level], bool],
) -> str | None:
    """Why no checkpoint may be taken at the head of this loop; None if one may.

    All that any loop declared must be reachable from here, and the way back here must be kept. An
    empty text is a reason that will pass by itself.
    """
    reachable = {id(value) for value in level.objects().values()}
    for path, declared in known.items():
        for name, value in declared.items():
            if id(value) not in reachable:
                return (
                    f"{name!r}, which the loop {' '.join(path)} declared, is not declared by "
                    f"the loop {level.site} (line {level.line}) or around it"
                )
    children = _own_children()
    if children:
        return (
            f"{children} processes that the program started are running, and what they do can't "
            "be saved. Train in this process, or start them through a data loader"
        )
    each: Level | None = level
    while each is not None:
        why = each.source.obstacle() if each.source is not None else ""
        if why:
            return f"the iterable of the loop {each.site} (line {each.line}) {why}"
        outer = each is not level and each.parent is not None
        if outer and (each.around is None or not each.around.gradients):
            return ""  # an inner loop that was not expected; the next iteration keeps its way
        if any(loop.exit is None and not loop.level.whole for loop in each.finished):
            return ""
        again = any(loop.exit is None for loop in each.finished)
        if each is not level and each.parent is not None and again and is_thin(each):
            return ""  # to run a finished loop again takes all that the loop around it reached
        each = each.parent
    return None


def _own_children() -> int:
    """How many processes are running that the program started, other than to load data."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None:
        return 0
    loading = {pid for framework in find.loaded() for pid in framework.workers()}
    return sum(child.pid not in loading for child in multiprocessing.active_children())


@dataclass(frozen=True)
class Marks:
    """How far the run's own files, and the program's, went at a cut."""

    trace: TraceMark
    output: dict[str, int]
    journal: int = 0
    files: dict[str, int] = field(default_factory=dict)
    answers: int = 0


@dataclass(frozen=True)
class _Frozen:
    """What of a level changes while a checkpoint waits to be confirmed."""

    level: Level
    iteration: int
    order: str
    finished: list[Finished]
    observed: list[Any]

    @staticmethod
    def of(level: Level) -> _Frozen:
        return _Frozen(
            level, level.iteration, level.order, list(level.finished), list(level.observed)
        )


@dataclass(frozen=True)
class _Held:
    """A checkpoint that is copied and waits to be confirmed."""

    level: Level
    step: int
    marks: Marks
    stack: list[_Frozen]
    base: _Frozen
    watch: Watch


class Saving:
    """Takes checkpoints of one run. All methods run on the thread of the loop."""

    def __init__(
        self,
        store: LocalStore,
        options: Options,
        reached: Callable[[str], None],
        say: Callable[[str], None],
        retired: Callable[[Manifest], None],
        habits: Mapping[tuple[str, ...], Habits],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._retired, self._habits = say, retired, habits
        self._store, self._reached, self._clock = store, reached, clock
        self.use(options)
        numbers = [re.match(r"(\d+)\.safetensors", name) for name in store.names()]
        self._number = max((int(found[1]) for found in numbers if found), default=0)
        self.last_step = 0
        self._last_time = clock()
        self.held: _Held | None = None
        self._published: dict[int, Manifest] = {}
        self._lent: dict[str, Borrowed] = {}
        """Arrays, by digest, of the states that the checkpoint which is being published names."""

    def use(self, options: Options) -> None:
        """Go on with other options."""
        self.options = options
        self.off = options.save_every.never
        """Whether this run is never to be checkpointed."""

    def due(self, step: int) -> bool:
        """Whether a checkpoint is due at this step."""
        every = self.options.save_every
        passed = 0.0 if every.seconds is None else self._clock() - self._last_time
        return every.due(step - self.last_step, passed)

    def waits_for_another(self, level: Level) -> bool:
        """Whether a loop around this one, which does better, has a checkpoint to be confirmed."""
        held = self.held
        return held is not None and held.level is not level and level.habits.rejected > 0

    def hold(
        self,
        level: Level,
        step: int,
        marks: Marks,
        watch: Watch,
    ) -> None:
        """Keep what is to be published when this iteration of the loop has gone well.

        What was held before must have been given up: there is one watch at a time.
        """
        assert self.held is None
        root = level
        while root.parent is not None:
            root = root.parent
        stack = level.stack()
        frozen = [_Frozen.of(each) for each in stack]
        self.held = _Held(level, step, marks, frozen, _Frozen.of(root), watch)
        self._reached("cut")

    def resumed(self, step: int) -> None:
        """The run goes on from the checkpoint of this step."""
        self.last_step, self._last_time = step, self._clock()

    def drop(self, level: Level) -> None:
        """The loop ended instead of going into another iteration."""
        if self.held is not None and self.held.level is level:
            self.release()

    def confirm(self, level: Level, sync: Callable[[], None]) -> None:
        """An iteration has gone well: publish what was held at its head.

        `sync` makes the run's own files durable.
        """
        held = self.held
        if held is None or held.level is not level:
            return
        if not self._holds_good(held, self.release()):
            return
        self._lent = {}
        finished = self._saved_loops(held.base.finished)
        levels = tuple(self._saved_level(each, each.level is level) for each in held.stack)
        sync()
        self._reached("output-synced")
        manifest = Manifest(
            step=held.step,
            created=time.time(),
            finished=finished,
            levels=levels,
            trace=held.marks.trace,
            output=held.marks.output,
            observed=flat_observations(held.base.observed),
            journal=held.marks.journal,
            files=held.marks.files,
            kept=self._kept(),
            answers=held.marks.answers,
        )
        publish(self._store, manifest)
        self.last_step, self._last_time = held.step, self._clock()
        self._published[held.step] = manifest
        oldest = retire(self._store, self.options.retention, self._reached, self._published)
        if oldest is not None:
            self._retired(oldest)

    def _holds_good(self, held: _Held, verdict: Verdict) -> bool:
        """Whether what was left out was not needed; if it was, it is saved from now on."""
        level, habits = held.level, held.level.habits
        not_kept = f"the checkpoint of step {held.step} is not kept"
        if verdict.graphs:
            habits.rejected += 1
            if habits.rejected == 1:
                self._say(
                    f"{not_kept}: {verdict.graphs[0]} carries an "
                    f"autograd graph from one iteration of the loop at line {level.line} into the "
                    "next, which can't be saved. Another step, or the loop around it, may do; "
                    "detach() it where it is not needed"
                )
            return False
        habits.rejected = 0
        for read in verdict.reads:
            self._say(
                f"{not_kept}: {read.place} was left out of it as no longer needed, and "
                f"{read.file}:{read.line} reads it. It is saved from now on"
            )
        if verdict.gradients:
            self._say(
                f"{not_kept}: the plan of the program has gradients cleared before they are used, "
                f"and the loop at line {level.line} has one left from the iteration before: it "
                f"{verdict.gradients}. They are saved from now on"
            )
        habits.kept.update(read.place for read in verdict.reads)
        if verdict.gradients:
            habits.kept.add(GRADIENTS)
        good = not verdict.reads and not verdict.gradients
        habits.audited = habits.audited or good
        return good

    def _kept(self) -> dict[str, tuple[str, ...]]:
        """What the plan was wrong about, by the paths of loops."""
        found = {" ".join(path): tuple(sorted(each.kept)) for path, each in self._habits.items()}
        return {path: places for path, places in sorted(found.items()) if places}

    def release(self) -> Verdict:
        """Give up what is held; gives what was seen since."""
        held, self.held = self.held, None
        return held.watch.end() if held is not None else Verdict()

    def _saved_level(self, frozen: _Frozen, is_cut: bool) -> SavedLevel:
        level = frozen.level
        if is_cut or level.way is None:
            assert level.head is not None
            state = level.head = self._durable(level.head)
        else:
            state = level.way = self._durable(level.way)
        return SavedLevel(
            site=level.site,
            iteration=frozen.iteration,
            entry=level.entry,
            origin=level.source.origin() if level.source is not None else "",
            order=frozen.order,
            finished=self._saved_loops(frozen.finished),
            state=state,
            observed=flat_observations(frozen.observed),
        )

    def _saved_loops(self, loops: list[Finished]) -> tuple[SavedLoop, ...]:
        saved = []
        for loop in loops:
            if loop.exit is not None:
                loop.exit = self._durable(loop.exit)
            saved.append(SavedLoop(loop.site, loop.level.entry, loop.exit))
        return tuple(saved)

    def _durable(self, state: Snapshot | SavedState) -> SavedState:
        """A state is written once, however many checkpoints name it.

        It borrows arrays from what the same checkpoint has around it, or finished before it: that
        stays as long as it does.
        """
        if not isinstance(state, SavedState):
            self._number += 1
            state = save_state(self._store, state, f"{self._number:08d}", self._lent)
        self._lent |= state.lends()
        return state
