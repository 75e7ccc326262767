"""The session: one process at work on one run.

It sees the heads of loops and nothing else of the program. At a head it counts the finished step,
traces it, takes a checkpoint if one is due, or puts a checkpoint's state back. All state of a run
in progress lives here and in the levels; there is one session in a process at a time.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from detrain.checkpoint.durable import ignore
from detrain.checkpoint.manifest import SavedLevel, SavedLoop, SavedState
from detrain.checkpoint.snapshot import Snapshot
from detrain.errors import DamageFoundLate, UncapturableState, UsageError
from detrain.frameworks.find import positions_now, settle
from detrain.runs.records import Outcome
from detrain.runtime.advance import advancing
from detrain.runtime.attempt import Attempt, Opening
from detrain.runtime.level import Finished, Habits, Level
from detrain.runtime.options import Options
from detrain.runtime.planned import Planned
from detrain.runtime.preempting import answer, say_out_of_grace
from detrain.runtime.rebuild import Rebuild, go_on
from detrain.runtime.replaying import Replayed, Replaying
from detrain.runtime.saving import Saving
from detrain.runtime.signals import Signals
from detrain.runtime.states import States
from detrain.runtime.taking import Taking
from detrain.runtime.whereabouts import frames, here, is_inside
from detrain.state import PLAIN
from detrain.trace.digest import digest_positions
from detrain.trace.log import TraceWriter
from detrain.world.observe import Observation

__all__ = ["Entered", "Session"]

Entered = tuple[Level, SavedLoop | SavedLevel | None]
"""A loop that was entered, and what the checkpoint knows of it while the run is being rebuilt."""

_NO_VALUES: dict[str, str] = {}

WORTH_KEEPING = 2.0
"""Seconds: a finished loop that took longer is passed over on resume, a shorter one run again."""


class Session:
    """The loops of a run in this process; `attempt` is all the rest of it."""

    def __init__(self, opening: Opening, options: Options) -> None:
        self.attempt = Attempt(opening, self._note)
        self.folder, self.notices = opening.folder, self.attempt.notices
        self.options, self._digest_every = options, options.digest_every
        self.step = 0
        self.diverged_at: int | None = None
        self._owns, self._reached = opening.owns, opening.reached
        self._watched = True
        self._replaying = opening.replaying
        manifest = self.attempt.manifest
        self._rebuild = Rebuild(manifest) if manifest is not None else None
        self._habits: dict[tuple[str, ...], Habits] = {}
        for path, places in (manifest.kept if manifest is not None else {}).items():
            self._habits[tuple(path.split(" "))] = Habits(kept=set(places))
        for path, places in (manifest.hasty if manifest is not None else {}).items():
            self._habits.setdefault(tuple(path.split(" ")), Habits()).hurry(places)
        self._saving = Saving(
            self.attempt.store, options, opening.reached,
            self.attempt.attention, self.attempt.discard, self._habits,
        )  # fmt: skip
        known = Planned(opening.plan)
        plan = known if options.use_plan else Planned(None)
        self._states = States(
            opening.owns, self.attempt.store, plan, known,
            self.attempt.attention, self.attempt.opened, self._saving.write_now,
        )  # fmt: skip
        self._states.limit = options.snapshot_memory
        self.signals = Signals(options.grace, self.attempt.attention, self._out_of_grace)
        self._started = False
        self._base = Level("", None, None, {}, Habits(nests=True))
        self._top = self._base
        self._ended: Level | None = None
        self._free: Level | None = None
        self._final = ""
        self._is_fresh = False
        """Whether the first iteration after a resume is under way."""
        self._taking = Taking(self.attempt, self._states, self._saving, self._habits, opening.owns)
        self._taking.always_audits = options.audit
        self._known = self._taking.known
        self._values: dict[str, str] = {}
        self._place = here()
        self.outcome = Outcome("failed", 1, time.time(), 0, "", "")
        """How the attempt ended, once it has."""

    # ---------------------------------------------------------------- the program

    def use(self, options: Options) -> None:
        """Go on with other options."""
        self.options, self._digest_every = options, options.digest_every
        self._saving.use(options)
        self._states.limit = options.snapshot_memory
        self._taking.always_audits = options.audit

    def declare(self, objects: Mapping[str, Any]) -> None:
        """Objects that the whole run reaches."""
        self._base.declared.update(_checked(objects))
        self._known[()] = self._base.declared

    def record_values(self, values: Mapping[str, Any]) -> None:
        """Values of the current step, for the trace."""
        for name, value in values.items():
            plain = value.item() if hasattr(value, "item") else value
            if type(plain) not in PLAIN:
                raise UsageError(f"record: {name} must be a number or text, it is {type(value)}")
            self._values[name] = repr(plain)

    def finish(self) -> str:
        """The program has come to its end: the digest of all that the loops declared.

        `ResumeMismatch` if it never came back to where the checkpoint was taken.
        """
        if self._rebuild is not None:
            raise self._rebuild.left_early("at the end of the program")
        self._unwind(self._base)
        self._settle()
        roots = {
            " ".join((*path, name)): value
            for path, declared in sorted(self._known.items())
            for name, value in declared.items()
        }
        return self._states.digest_of(roots) if roots else self._final

    def close(
        self, status: str, exit_code: int, *, state_digest: str = "", traceback: str = ""
    ) -> None:
        """End the attempt and write down how."""
        self.signals.ends = False  # no need to hurry any more
        self.signals.stop()
        self._saving.close()
        self.outcome = Outcome(
            status=status,
            exit_code=exit_code,
            ended=time.time(),
            steps=self.step,
            state_digest=state_digest,
            trace_digest=self.attempt.trace_digest(),
            traceback=traceback,
            diverged_at=self.diverged_at,
        )
        self.attempt.close(self.outcome)

    def _note(self, observation: Observation) -> None:
        """The program asked the world something."""
        self._top.observed.append(observation)
        self.attempt.keep(observation)
        if self._top is self._base:
            self._states.surroundings.learn(observation)

    # ---------------------------------------------------------------- loops

    def declared_loop(
        self, iterable: Any, declared: Mapping[str, Any], frame: FrameType
    ) -> Iterator[Any]:
        """The items of a loop that the program wrote with `run.loop`, from where the run is."""
        parent = self._running(frame)
        site = f"{frame.f_code.co_qualname}#{parent.begun}"
        level, saved = self._enter(site, parent, frame, declared, whole=False)
        return self._items(level, saved, iterable)

    def entering(self, site: str, frame: FrameType) -> Entered | None:
        """A loop that DETrain found is about to begin; None if it is not to be looked at.

        So are loops while their surroundings run again, in loader workers and other threads, and
        those that only load data for a loop that is about to take it.
        """
        if self._top.loading or here() != self._place or self._runs_free(site, frame):
            return None
        parent = self._running(frame)
        while parent.frame is frame and not is_inside(site, parent.site):
            parent = parent.parent or self._base
        return self._enter(site, parent, frame, {}, whole=True)

    def found_loop(self, entered: Entered | None, iterable: Any) -> Iterator[Any]:
        """The items of a loop that DETrain found, from where the run is."""
        return iter(iterable) if entered is None else self._items(*entered, iterable)

    def tick(self, site: str) -> bool:
        """A while loop is about to evaluate its test: a head, as that of any other loop.

        False if the loop is passed over. Called by the loop's header itself.
        """
        frame = sys._getframe(1)
        if self._free is not None and self._runs_free(site, frame):
            return True
        level = self._top
        while level.parent is not None and not (level.site == site and level.frame is frame):
            level = level.parent
        if level.parent is not None:
            self._head(level)
            return True
        entered = self.entering(site, frame)
        if entered is None:
            return True
        level, saved = entered
        if isinstance(saved, SavedLoop):
            if saved.exit is None:
                self._free = level
            else:
                self._states.put_back(level, saved.exit)
                level.passed = saved
        elif saved is not None:
            level.iteration = saved.iteration
            self._put_back(level, saved)
        else:
            self._head(level)
        return level.passed is None

    def begun(self, site: str) -> bool:
        """A while loop's test was true."""
        if self._free is None and self._top.site == site:
            self._top.under_way = True
            if self._saving.held is not None:
                self._saving.entered(self._top, self.attempt.sync)
        return True

    def done(self, site: str, frame: FrameType) -> None:
        """A loop that DETrain found is over: by its end or by break, not by return or an error."""
        if self._top.loading or here() != self._place:
            return
        if self._free is not None:
            if self._free.site == site and self._free.frame is frame:
                self._leave(self._free)
            return
        level = self._top
        if level.site == site and level.frame is frame:  # a while loop: others leave by themselves
            if not level.under_way:
                self._saving.drop(level)
            self._leave(level)
        parent = self._top
        if self._rebuild is not None or self._saving.off or not parent.finished:
            return
        loop = parent.finished[-1]
        took_long = time.monotonic() - loop.entered_at > WORTH_KEEPING
        if loop.site == site and took_long and not site.endswith("!"):
            self._settle()
            # What can't be captured may be dead: then it is run again like a short one.
            with contextlib.suppress(UncapturableState):
                loop.exit = self._states.copy_all(loop.level)

    def _items(
        self, level: Level, saved: SavedLoop | SavedLevel | None, iterable: Any
    ) -> Iterator[Any]:
        try:
            source = level.source = advancing(iterable)
            if not level.whole:
                self._taking.moving[level.path()] = source.generators()
            if isinstance(saved, SavedLoop):
                if saved.exit is not None:
                    self._states.put_back(level, saved.exit)
                    level.passed = saved
                    return
                self._free = level
                yield from source.iterator
                return
            if saved is not None:
                if source.consumes():
                    # Code that gives the items may look at what the body did to the state.
                    self._states.put_back(level, saved.state)
                go_on(level, saved)
                self._put_back(level, saved)
            else:
                self._head(level)
            is_loader = source.is_loader()
            while True:
                level.loading = is_loader
                try:
                    item = next(source.iterator)
                except StopIteration:
                    self._saving.drop(level)
                    return
                level.loading = False
                level.under_way = True
                if self._saving.held is not None:
                    self._saving.entered(level, self.attempt.sync)
                yield item
                self._head(level)
        finally:
            self._leave(level)

    def _enter(
        self,
        site: str,
        parent: Level,
        frame: FrameType,
        declared: Mapping[str, Any],
        *,
        whole: bool,
    ) -> Entered:
        if not self._started:
            self._started = True
            self.attempt.first_loop()
        self._unwind(parent)
        self._settle()
        path = (*parent.path(), site)
        habits = self._habits.setdefault(path, Habits())
        level = Level(site, parent, frame, dict(_checked(declared)), habits, whole=whole)
        level.entry, level.line = digest_positions(positions_now()), frame.f_lineno
        level.entered_at = time.monotonic()
        level.outer = tuple((each.site, each.iteration) for each in parent.stack())
        parent.begun += 1
        parent.habits.nests = True
        for loop in parent.finished:
            loop.habits.followed = True
        self._known.setdefault(path, {}).update(level.declared)
        saved = self._rebuild.meet(level) if self._rebuild is not None else None
        self._top = level
        return level, saved

    def _running(self, frame: FrameType) -> Level:
        """The innermost loop whose function is still running."""
        running = frames(frame)
        level = self._top
        while level.parent is not None and id(level.frame) not in running:
            level = level.parent
        return level

    def _runs_free(self, site: str, frame: FrameType) -> bool:
        """Whether the program is inside a loop that is run again whole, without being looked at."""
        free = self._free
        if free is None:
            return False
        if frame is free.frame:
            inside = site == free.site or is_inside(site, free.site)
        else:
            inside = id(free.frame) in frames(frame)
        if not inside:
            self._leave(free)
        return inside

    def _unwind(self, level: Level) -> None:
        """The program is back in `level`: loops inside it that it still holds are over."""
        while self._top is not level and self._top.parent is not None:
            self._leave(self._top)

    def _head(self, level: Level) -> None:
        """A loop is about to take its next item: the place where a checkpoint may be taken."""
        if self._top is not level or self._ended is not None:
            self._unwind(level)
            self._settle()
        if level.under_way:
            self._finish_iteration(level)
            level.iteration += 1
        if self._rebuild is not None:
            raise self._rebuild.left_early(f"back at the loop {level.site}, line {level.line}")
        saving = self._saving
        if self.signals.asked:
            answer(self.signals, saving, self.step, self.notices.say)
        if saving.off:
            return
        saving.tell()
        level.head = level.way = None
        if level.observed:
            level.observed = []
        if level.iteration == 0:
            self._states.survey(level)
        asked = bool(self.signals.asked) and self.step > saving.last_step
        wanted = asked or saving.due(self.step)
        if wanted and not saving.waits_for_another(level) and not self._taking.left_to_inner(level):
            began = time.monotonic()
            taken = self._taking.take(level, self.step)
            saving.stalled(time.monotonic() - began)
            if taken:
                return
        if level.habits.nests is not False:
            self._states.copy_outer(level)
        elif level.iteration == 1:
            self._states.check(level)

    def _out_of_grace(self) -> None:
        """The time to end is over, and the program came to no head of a loop."""
        say_out_of_grace(self._saving, self.options.grace, self.attempt.attention)

    def _finish_iteration(self, level: Level) -> None:
        """Count and trace an iteration, if it was a step: if no loop ran inside it."""
        if self._is_fresh:
            settle()
            self._is_fresh = False
        level.under_way = False
        if level.begun:
            level.begun = 0
            for loop in level.finished:
                if loop.habits.followed is None:
                    loop.habits.followed = False
            level.finished = []
            self._saving.confirm(level, self.attempt.sync)
            return
        if level.habits.nests is None:
            level.habits.nests = False
        self.step += 1
        every, digest, values = self._digest_every, "", _NO_VALUES
        if every and self.step % every == 0 and self._is_digested():
            digest = self._states.digest(level)
        if self._values:
            values, self._values = self._values, {}
        trace = self.attempt.trace
        assert trace is not None
        trace.add(self.step, level.outer, level.site, level.iteration, values, digest)
        if self._watched:
            self._watch(trace)
        if self._saving.held is not None:
            self._saving.confirm(level, self.attempt.sync)

    def _is_digested(self) -> bool:
        """Whether the state after this step, of those that may be, is."""
        replaying = self._replaying
        return replaying is None or replaying.compares(self.step)

    def _watch(self, trace: TraceWriter) -> None:
        """A step is done that an earlier attempt did already, or at which a test may kill."""
        redone = self.attempt.redone
        if redone:
            self._compare(redone.pop(self.step, ""), trace.mark.chain)
        if self._reached is not ignore:
            trace.flush()
            self._saving.wait()
            self._reached("step")
            self._reached(f"step={self.step}")
        self._watched = bool(redone) or self._reached is not ignore
        if self._replaying is not None:
            self._show(self._replaying)

    def _show(self, replaying: Replaying) -> None:
        """A step was done again, to be looked at."""
        if self.step == replaying.first - 1:
            self.attempt.show_output()
        if self.step == replaying.last:
            raise Replayed(0)

    def _compare(self, expected: str, found: str) -> None:
        """A step that an earlier attempt did already must come out as it did then."""
        if expected and expected != found and self.diverged_at is None:
            self.diverged_at = self.step
            before, depends = "in the attempt before", "something that the program depends on is"
            then = "not restored. `detrain show` keeps this on record"
            if self._replaying is not None:
                before, depends = "recorded", "the program, or something that it depends on, is"
                then = "not what it was"
            self.attempt.attention(
                f"step {self.step} did not come out as {before}: {depends} {then}"
            )

    def _leave(self, level: Level) -> None:
        """A loop is over: passed over, exhausted, or left by break, return or an error."""
        if level.gone or level.parent is None:
            return
        level.gone = True
        parent = self._top = level.parent
        if self._free is level:
            self._free = None
        if level.under_way:
            # Whether it was left by an error is known only when the program goes on.
            self._ended = level
        passed = level.passed
        exit_state: Snapshot | SavedState | None = passed.exit if passed is not None else None
        live = self._rebuild is None
        if live and not level.whole and not self._saving.off and level.habits.followed is not False:
            exit_state = exit_state or self._states.copy_all(level)
        if live and level.whole and parent is self._base:
            # The one was said at the loop's head, the other will be when the run ends.
            with contextlib.suppress(UncapturableState, DamageFoundLate):
                self._final = self._states.digest_end(level)
        finished = Finished(level, exit_state)
        parent.finished.append(finished)
        parent.observed.append(finished)

    def _settle(self) -> None:
        """The program goes on: what it left by break or return was an ordinary iteration."""
        ended, self._ended = self._ended, None
        if ended is not None:
            self._finish_iteration(ended)

    # ---------------------------------------------------------------- resuming

    def _put_back(self, level: Level, saved: SavedLevel) -> None:
        """Give the program the state at the head of this loop; go live if it is the innermost."""
        assert self._rebuild is not None
        is_innermost = self._rebuild.is_innermost()
        self._states.put_back(level, saved.state, for_good=is_innermost)
        level.head, level.opaque = saved.state, self._states.opaque_in(saved.state)
        self.attempt.feed(saved.observed)
        self._rebuild.enter(saved)
        if is_innermost:
            self._go_live()

    def _go_live(self) -> None:
        assert self._rebuild is not None
        manifest, self._rebuild = self._rebuild.manifest, None
        self.step, self._values, self._is_fresh = manifest.step, {}, True
        self.attempt.go_live(manifest)
        self.attempt.opened.clear()
        self._saving.resumed(manifest)


def _checked(objects: Mapping[str, Any]) -> Mapping[str, Any]:
    """Declared objects must be such that they can be restored in place."""
    for name, value in objects.items():
        if type(value) in PLAIN or isinstance(value, tuple | frozenset):
            raise UsageError(
                f"{name}={value!r}: a {type(value).__name__} can't be restored in place. "
                "Plain variables of the function that runs the loop are carried by themselves; "
                "leave it out, or keep it in a list, a dictionary or an object"
            )
    return objects
