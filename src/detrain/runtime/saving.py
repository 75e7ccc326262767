"""The way out into a checkpoint: when one is due, where one may be taken, how it is published.

A checkpoint is copied from a loop's head on and published when the iteration that follows has gone
well; `committing` does the writing.
A loop that is just ending has no iteration left in which its variables would be bound again; and
only the iteration shows whether an autograd graph, which is not captured, reaches across the head.
Where there is no graph, and nothing else that only the iteration shows, it is published as soon as
the iteration has begun and all is written.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from detrain.checkpoint.durable import ignore
from detrain.checkpoint.policy import Cost
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.streaming import LiveSnapshot
from detrain.runtime.committing import Committing, Learned, LevelParts, LoopParts, Marks, Order
from detrain.runtime.level import flat_observations
from detrain.runtime.planned import GRADIENTS
from detrain.runtime.watch import Verdict

if TYPE_CHECKING:
    from detrain.checkpoint.manifest import Manifest
    from detrain.checkpoint.store import LocalStore
    from detrain.runtime.level import Habits, Level
    from detrain.runtime.options import Options
    from detrain.runtime.watch import Watch

__all__ = ["Marks", "Saving"]

_LONG = 2.0
"""Seconds that training waits for the disk, in all, before that is said."""


@dataclass(frozen=True)
class _Held:
    """A checkpoint that is being copied and waits to be confirmed."""

    level: Level
    order: Order
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
        self._store, self._say, self._habits = store, say, habits
        self._reached, self._clock = reached, clock
        self._committing = Committing(store, reached, retired)
        self.use(options)
        self.last_step = 0
        self._last_time = clock()
        self._costs: deque[Cost] = deque(maxlen=3)
        self._stall = self._worked = self._waited = 0.0
        self._lost = 0
        self._behind = 0.0
        """Seconds that training waited because the checkpoint before was still being written."""
        self.resumed_at = -1
        """The step of the checkpoint that this attempt began with; -1 if there was none."""
        self.held: _Held | None = None

    def use(self, options: Options) -> None:
        """Go on with other options."""
        self.options = options
        self.off = options.save_every.never
        """Whether this run is never to be checkpointed."""

    def due(self, step: int) -> bool:
        """Whether a checkpoint is due at this step."""
        every = self.options.policy
        passed = self._clock() - self._last_time if every.timed else 0.0
        if every.budget is not None:
            if self.busy:
                return False
            self._reckon()
        return every.due(step - self.last_step, passed, self._costs)

    def stalled(self, seconds: float) -> None:
        """The program stood still for a checkpoint that long."""
        self._stall += seconds

    def _reckon(self) -> None:
        """Learn what the checkpoint before has cost, now that it is written."""
        if self._stall:
            writer = self._committing.writer
            stall = self._stall + writer.waited - self._waited
            self._costs.append(Cost(stall, writer.worked - self._worked))
            self._stall, self._worked, self._waited = 0.0, writer.worked, writer.waited

    @property
    def newest(self) -> int:
        """The step of the newest checkpoint that is published; -1 if this attempt has none."""
        newest = self._committing.newest
        return -1 if newest is None else newest

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is still being written."""
        return self._committing.writer.busy

    def changing(self, level: Level) -> frozenset[str]:
        """Arrays of a loop that will have to be written, as far as is known."""
        return self._committing.changing(level.path())

    def waits_for_another(self, level: Level) -> bool:
        """Whether a loop around this one, which does better, has a checkpoint to be confirmed."""
        held = self.held
        return held is not None and held.level is not level and level.habits.rejected > 0

    def settle(self) -> None:
        """Have what is held copied to the end: the state is about to be looked at again."""
        if self.held is not None and self.held.order.cut.overlap is not None:
            self.held.order.cut.overlap.settle()

    def hold(
        self,
        level: Level,
        step: int,
        marks: Marks,
        watch: Watch,
    ) -> None:
        """Keep what is to be published when this iteration of the loop has gone well.

        What was held before must have been given up: there is one watch at a time. The data is
        written from now on.
        """
        assert self.held is None
        order = _order(level, step, marks)
        self.held = _Held(level, order, watch)
        if self._reached is not ignore:
            self.wait()  # tests kill at points that follow from each other
        self._reached("cut")
        began = self._clock()
        try:
            self._committing.begin(order)
        except BaseException:
            order.cut.give_up()  # nobody will copy it, and nobody is to wait for that
            raise
        self._behind += self._clock() - began
        if isinstance(order.cut, LiveSnapshot):
            self.wait()  # it is the program's own memory that is written

    def write_now(self, snapshot: Snapshot) -> bool:
        """Make a state around a cut durable before the program goes on; False if it can't be."""
        began = self._clock()
        error = self._committing.save_now(snapshot)
        self._stall += self._clock() - began
        if error is not None:
            self._say(f"the state around a loop could not be written: {error}. {self._left}")
        return error is None

    def resumed(self, manifest: Manifest) -> None:
        """The run goes on from this checkpoint."""
        self.last_step, self._last_time = manifest.step, self._clock()
        self.resumed_at = manifest.step
        self._committing.resumed(manifest)

    def drop(self, level: Level) -> None:
        """The loop ended instead of going into another iteration."""
        if self.held is not None and self.held.level is level:
            self._abandon()

    def entered(self, level: Level, sync: Callable[[], None]) -> None:
        """The loop went into another iteration: what was held at its head is wanted.

        If the iteration has nothing to tell about it, it is published as soon as it is written.
        """
        held = self.held
        if held is None or held.level is not level or level.habits.nests is not False:
            return  # a loop inside may take a checkpoint of the same step, and a smaller one
        if held.watch.is_quiet:
            retention, learned = self.options.retention, self._learned()
            self._committing.publish(held.order, sync, retention, learned, if_good=True)

    def confirm(self, level: Level, sync: Callable[[], None]) -> None:
        """An iteration has gone well: publish what was held at its head.

        `sync` makes the run's own files durable, as far as they were written at the cut; it is
        called by another thread.
        """
        held = self.held
        if held is None or held.level is not level:
            return
        self.held = None
        if not self._holds_good(held, held.watch.end()):
            held.order.cut.give_up()
            return
        if held.order.cut.overlap is not None:
            self._stall += held.order.cut.overlap.copying.waited
            self._behind += held.order.cut.overlap.copying.behind
        if not held.order.is_ordered:
            self._committing.publish(held.order, sync, self.options.retention, self._learned())
        self.last_step, self._last_time = held.order.step, self._clock()

    def tell(self) -> None:
        """Say what became of checkpoints that were written since."""
        committing = self._committing
        for step, error in committing.tell():
            self._lost += 1
            self._say(f"the checkpoint of step {step} could not be written: {error}. {self._left}")
        if committing.compacting.trouble:
            self._say(f"older checkpoints were not compacted: {committing.compacting.trouble}")
            committing.compacting.trouble = ""
        if self._behind > _LONG and self.options.save_every.steps is not None:
            self._say(
                f"training waits for checkpoints to be written ({_LONG:.0f} s so far): they are "
                "due faster than this disk takes them. Save less often to lose no time"
            )

    @property
    def _left(self) -> str:
        newest = max(self.newest, self.resumed_at)
        there = "there is none yet" if newest < 0 else f"the newest is that of step {newest}"
        return f"The run goes on; {there}"

    def wait(self) -> None:
        """Wait until all that is to be published is."""
        self._committing.writer.wait()

    def close(self) -> None:
        """Give up what is held, and wait until the rest is published."""
        self._abandon()
        self.wait()
        self._committing.compacting.stop()
        self.tell()
        self._store.sweep()
        if self._lost:
            self._say(f"checkpoints that could not be written: {self._lost}. {self._left}")

    def _holds_good(self, held: _Held, verdict: Verdict) -> bool:
        """Whether what was left out was not needed; if it was, it is saved from now on."""
        level, habits = held.level, held.level.habits
        not_kept = f"the checkpoint of step {held.order.step} is not kept"
        if verdict.changed:
            habits.hasty.update(verdict.changed)
            habits.torn += 1
            self._say(
                f"{not_kept}: the loop at line {level.line} changes {verdict.changed[0]} before "
                "an optimizer steps, while it was being copied. It is copied at once from now on"
            )
            return False
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

    def _learned(self) -> Learned:
        """What later attempts need to know."""

        def known(what: Callable[[Habits], Iterable[str]]) -> dict[str, tuple[str, ...]]:
            found = {
                " ".join(path): tuple(sorted(what(each))) for path, each in self._habits.items()
            }
            return {path: places for path, places in sorted(found.items()) if places}

        return Learned(known(lambda habits: habits.kept), known(lambda habits: habits.in_haste))

    def release(self) -> None:
        """No longer hold a checkpoint, because another is taken.

        Its data is needed all the same if it is the state around a loop that runs now.
        """
        held, self.held = self.held, None
        if held is None:
            return
        changed = held.watch.end().changed
        level, cut = held.level, held.order.cut
        if changed and level.head is cut:
            level.head = None
        if level.head is not cut or level.gone:
            cut.give_up()

    def _abandon(self) -> None:
        """No longer hold a checkpoint, because the loop is over."""
        held, self.held = self.held, None
        if held is not None:
            held.order.cut.give_up()
            held.watch.end()


def _order(level: Level, step: int, marks: Marks) -> Order:
    """What is to be written for a checkpoint at the head of this loop, as it is now."""
    root = level
    while root.parent is not None:
        root = root.parent
    assert isinstance(level.head, Snapshot)
    return Order(
        step=step,
        path=level.path(),
        cut=level.head,
        finished=_loop_parts(root),
        levels=tuple(_level_parts(each, is_cut=each is level) for each in level.stack()),
        marks=marks,
        observed=flat_observations(root.observed),
    )


def _level_parts(level: Level, *, is_cut: bool) -> LevelParts:
    state = level.head if is_cut or level.way is None else level.way
    assert state is not None
    return LevelParts(
        site=level.site,
        iteration=level.iteration,
        entry=level.entry,
        origin=level.source.origin() if level.source is not None else "",
        order=level.order,
        finished=_loop_parts(level),
        state=state,
        observed=flat_observations(level.observed),
    )


def _loop_parts(level: Level) -> tuple[LoopParts, ...]:
    return tuple(LoopParts(loop.site, loop.level.entry, loop.exit) for loop in level.finished)
