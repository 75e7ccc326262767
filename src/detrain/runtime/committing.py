"""From a snapshot to a published checkpoint, behind the program's back.

The data files of a checkpoint are written as soon as it is copied, by the writer's thread. Whether
it is any good shows only when the iteration after it is over: then its manifest is published, or
the data is garbage. Order is kept: the data of a checkpoint is durable before its manifest, and a
manifest is published before the data of the next checkpoint is begun.

Nothing here is called by the program except the first few methods of `Committing`; `_write`,
`_publish` and what they call run on the writer's thread.
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from operator import attrgetter, ne
from typing import TYPE_CHECKING

from detrain.checkpoint.commit import Lent, collect, manifest_steps, publish, retire, save_state
from detrain.checkpoint.copying import Abandoned
from detrain.checkpoint.manifest import Borrowed, Manifest, SavedLevel, SavedLoop, SavedState
from detrain.checkpoint.writer import Writer
from detrain.runtime.compacting import Compacting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detrain.checkpoint.retention import Retention
    from detrain.checkpoint.snapshot import Snapshot
    from detrain.checkpoint.store import LocalStore
    from detrain.state import Scalar
    from detrain.trace.log import TraceMark

__all__ = ["Committing", "Learned", "LevelParts", "LoopParts", "Marks", "Order"]

Observed = tuple[tuple[str, "Scalar"], ...]

_NONE: frozenset[str] = frozenset()

_name = attrgetter("name")


@dataclass(frozen=True)
class Marks:
    """How far the run's own files, and the program's, went at a cut."""

    trace: TraceMark
    output: dict[str, int]
    journal: int = 0
    files: dict[str, int] = field(default_factory=dict)
    answers: int = 0


@dataclass(frozen=True)
class LoopParts:
    """A `SavedLoop` whose state may not be durable yet."""

    site: str
    entry: str
    exit: Snapshot | SavedState | None


@dataclass(frozen=True)
class LevelParts:
    """A `SavedLevel` whose state may not be durable yet."""

    site: str
    iteration: int
    entry: str
    origin: str
    order: str
    finished: tuple[LoopParts, ...]
    state: Snapshot | SavedState
    observed: Observed


@dataclass(frozen=True)
class Learned:
    """What was seen of the program that later attempts need to know, by the paths of loops.

    Places that its plan leaves out and that are saved all the same, and arrays that are copied at
    once.
    """

    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hasty: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(eq=False)
class Order:
    """A checkpoint to be written. All of it is as it was at the cut."""

    step: int
    path: tuple[str, ...]
    """The loops from the outermost to the one that it was taken at."""
    cut: Snapshot
    finished: tuple[LoopParts, ...]
    levels: tuple[LevelParts, ...]
    marks: Marks
    observed: Observed
    failure: BaseException | None = None
    is_ordered: bool = False
    """Whether it is to be published, or is."""

    def states(self) -> list[Snapshot | SavedState]:
        """What has to be durable, in order: what others borrow from first."""
        found = [loop.exit for loop in self.finished]
        for level in self.levels:
            found += [level.state, *(loop.exit for loop in level.finished)]
        return [state for state in found if state is not None]


class Committing:
    """Writes and publishes the checkpoints of one run, in order."""

    def __init__(
        self,
        store: LocalStore,
        reached: Callable[[str], None],
        retired: Callable[[Manifest], None],
    ) -> None:
        self._store, self._reached, self._retired = store, reached, retired
        self.writer = Writer()
        self.compacting = Compacting(store.folder)
        self._failures: list[tuple[int, BaseException]] = []
        self._oldest: Manifest | None = None
        self.newest: int | None = None
        """The step of the newest checkpoint that this attempt published."""
        numbers = [re.match(r"(\d+)[-.]", name) for name in store.names()]
        self._number = max((int(found[1]) for found in numbers if found), default=0)
        self._published: dict[int, Manifest] = {}
        self._saved: list[weakref.ref[Snapshot]] = []
        self._before: dict[tuple[str, ...], dict[str, str]] = {}
        self._changing: dict[tuple[str, ...], frozenset[str]] = {}

    # ---------------------------------------------------------------- on the program's thread

    def begin(self, order: Order) -> None:
        """Write the data of a checkpoint. If that is behind, wait for it: there is one copy."""
        self.writer.wait(left=2)
        self.writer.submit(partial(self._write, order))

    def changing(self, path: tuple[str, ...]) -> frozenset[str]:
        """Arrays that were different at the last two checkpoints of a loop. Any thread may ask."""
        return self._changing.get(path, _NONE)

    def publish(
        self,
        order: Order,
        sync: Callable[[], None],
        rule: Retention,
        learned: Learned,
        *,
        if_good: bool = False,
    ) -> None:
        """Publish a checkpoint that was begun. `sync` makes the run's own files durable.

        If it is not known yet whether an array changed under the copy, only `if_good`.
        """
        order.is_ordered = True
        published = partial(self._publish, order, sync, rule, learned)
        self.writer.submit(partial(self._if_good, order, published) if if_good else published)

    def save_now(self, state: Snapshot) -> BaseException | None:
        """Make a state durable, and wait for it; gives the reason if it can't be."""
        failures: list[BaseException] = []
        self.writer.submit(partial(self._save_alone, state, failures))
        self.writer.wait()
        return failures[0] if failures else None

    def resumed(self, manifest: Manifest) -> None:
        """The run goes on from this checkpoint: what it has need not be written again."""
        self._published[manifest.step] = manifest

    def tell(self) -> list[tuple[int, BaseException]]:
        """What has failed since the last time: steps and reasons."""
        self.writer.check()
        oldest, self._oldest = self._oldest, None
        if oldest is not None:
            self._retired(oldest)
        failures, self._failures = self._failures, []
        return failures

    # ---------------------------------------------------------------- on the writer's thread

    def _write(self, order: Order) -> None:
        try:
            if order.cut.overlap is not None:
                order.cut.overlap.copying.start()
            self._save_all(order)
        except (OSError, Abandoned) as error:
            order.failure = error
        finally:
            if order.cut.saved is None:
                order.cut.give_up()
                order.cut.release()

    def _save_all(self, order: Order) -> None:
        lenders = self._published_last()
        named: frozenset[str] = frozenset()
        others_are_new = False
        for state in order.states():
            saved = state if isinstance(state, SavedState) else state.saved
            if saved is None:
                assert not isinstance(state, SavedState)
                is_cut = state is order.cut
                known = is_cut and not others_are_new
                changing = self.changing(order.path) | state.left if known else frozenset()
                all_change = changing.issuperset(map(_name, state.arrays))
                lent = {} if all_change else _lent_by(lenders)
                saved = self._save(state, Lent(lent, named, changing))
                others_are_new = others_are_new or not is_cut
            lenders.append(saved)
            named |= saved.files()
        assert order.cut.saved is not None
        digests, before = order.cut.saved.digests, self._before.get(order.path, {})
        last = map(before.get, digests, digests.values())
        changing = frozenset(compress(digests, map(ne, last, digests.values())))
        if changing != self.changing(order.path):  # who has seen that one knows this one
            self._changing[order.path] = changing
        self._before[order.path] = digests

    def _save_alone(self, state: Snapshot, failures: list[BaseException]) -> None:
        """Write a state that a later checkpoint may name; those before it may be garbage."""
        try:
            if any(each() is None for each in self._saved):
                collect(self._store, self._published, self._in_use())
            self._save(state, Lent(_lent_by(self._published_last())))
        except (OSError, Abandoned) as error:
            failures.append(error)
            state.give_up()
            state.release()

    def _save(self, state: Snapshot, lent: Lent) -> SavedState:
        """A state is written once, however many checkpoints name it."""
        if state.given_up:
            raise Abandoned
        self._number += 1
        state.saved = save_state(self._store, state, f"{self._number:08d}", lent)
        state.release()
        self._saved.append(weakref.ref(state))
        return state.saved

    def _published_last(self) -> list[SavedState]:
        """The states of the checkpoint that was published last."""
        return self._published[max(self._published)].states() if self._published else []

    def _publish(
        self,
        order: Order,
        sync: Callable[[], None],
        rule: Retention,
        learned: Learned,
    ) -> None:
        try:
            if order.failure is not None:
                raise order.failure
            sync()
            self._reached("output-synced")
            manifest = _manifest(order, learned)
            publish(self._store, manifest)
            self.newest = order.step
            self._published[order.step] = manifest
            in_use = self._in_use()
            if self.compacting.ended():  # manifests have changed
                self._published = {order.step: manifest}
            self._oldest = retire(self._store, rule, self._reached, self._published, in_use)
            if rule.compact:
                history = frozenset(manifest_steps(self._store)[: -rule.last])
                self.compacting.begin(history, rule.last)
        except (OSError, Abandoned) as error:
            self._failures.append((order.step, error))

    def _if_good(self, order: Order, published: Callable[[], None]) -> None:
        cut = order.cut
        if cut.saved is not None and (cut.overlap is None or cut.overlap.is_good()):
            published()
        elif order.failure is not None and not isinstance(order.failure, Abandoned):
            self._failures.append((order.step, order.failure))

    def _in_use(self) -> set[str]:
        """Files of states that are durable, and that a later checkpoint may still name."""
        alive = [state for state in (each() for each in self._saved) if state is not None]
        self._saved = [weakref.ref(state) for state in alive]
        return {file for state in alive if state.saved for file in state.saved.files()}


def _lent_by(states: Iterable[SavedState]) -> dict[str, Borrowed]:
    """The arrays of some states, by digest; those of later ones first."""
    return {digest: place for each in states for digest, place in each.lends().items()}


def _manifest(order: Order, learned: Learned) -> Manifest:
    return Manifest(
        step=order.step,
        created=time.time(),
        finished=_loops(order.finished),
        levels=tuple(
            SavedLevel(
                site=level.site,
                iteration=level.iteration,
                entry=level.entry,
                origin=level.origin,
                order=level.order,
                finished=_loops(level.finished),
                state=_durable(level.state),
                observed=level.observed,
            )
            for level in order.levels
        ),
        trace=order.marks.trace,
        output=order.marks.output,
        observed=order.observed,
        journal=order.marks.journal,
        files=order.marks.files,
        kept=learned.kept,
        answers=order.marks.answers,
        hasty=learned.hasty,
    )


def _loops(loops: tuple[LoopParts, ...]) -> tuple[SavedLoop, ...]:
    return tuple(
        SavedLoop(loop.site, loop.entry, None if loop.exit is None else _durable(loop.exit))
        for loop in loops
    )


def _durable(state: Snapshot | SavedState) -> SavedState:
    saved = state if isinstance(state, SavedState) else state.saved
    assert saved is not None
    return saved
