"""The way out into a checkpoint: when one is due, where one may be taken, how it is published.

A checkpoint is decided and copied at a loop's head and published when the next item has come: a
loop that is just ending has no iteration left in which its variables would be bound again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from detrain.checkpoint.commit import publish, retire, save_state
from detrain.checkpoint.manifest import Manifest, SavedLevel, SavedLoop, SavedState
from detrain.checkpoint.snapshot import Snapshot

if TYPE_CHECKING:
    from detrain.checkpoint.store import LocalStore
    from detrain.runtime.level import Finished, Level
    from detrain.runtime.options import Options
    from detrain.trace.log import TraceMark

__all__ = ["Saving", "obstacle"]


def obstacle(level: Level, known: dict[tuple[str, ...], dict[str, object]]) -> str | None:
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
    each: Level | None = level
    while each is not None:
        if each.draws:
            return (
                f"the iterable of the loop {each.site} (line {each.line}) draws random numbers "
                "between its items, so that it can't be taken up in the middle: give it a "
                "generator of its own, or draw at its start"
            )
        if each is not level and each.parent is not None and each.head is None:
            return ""  # an inner loop that was not expected; the next iteration keeps its way
        if any(loop.exit is None for loop in each.finished):
            return ""
        each = each.parent
    return None


class Saving:
    """Takes checkpoints of one run. All methods run on the thread of the loop."""

    def __init__(
        self,
        store: LocalStore,
        options: Options,
        reached: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self.options, self._reached, self._clock = store, options, reached, clock
        numbers = [re.match(r"(\d+)\.safetensors", name) for name in store.names()]
        self._number = max((int(found[1]) for found in numbers if found), default=0)
        self.last_step = 0
        self._last_time = clock()
        self._pending: tuple[Level, Snapshot, int, TraceMark, dict[str, int]] | None = None

    @property
    def off(self) -> bool:
        """Whether this run is never to be checkpointed."""
        return self.options.save_every.never

    def due(self, step: int) -> bool:
        """Whether a checkpoint is due at this step."""
        every = self.options.save_every
        if every.seconds is None:
            return every.due(step - self.last_step, 0.0)
        return every.due(step - self.last_step, self._clock() - self._last_time)

    def hold(
        self, level: Level, snapshot: Snapshot, step: int, trace: TraceMark, output: dict[str, int]
    ) -> None:
        """Keep what is to be published when the loop's next item has come."""
        self._pending = (level, snapshot, step, trace, output)
        self._reached("cut")

    def resumed(self, step: int) -> None:
        """The run goes on from the checkpoint of this step."""
        self.last_step, self._last_time = step, self._clock()

    def drop(self) -> None:
        """The loop ended instead."""
        self._pending = None

    def publish(self, sync: Callable[[], None]) -> None:
        """Make the held checkpoint durable and the newest; `sync` makes the run's own files so."""
        if self._pending is None:
            return
        level, snapshot, step, trace, output = self._pending
        self._pending = None
        level.head = snapshot
        levels = tuple(self._saved_level(each) for each in level.stack())
        root = level
        while root.parent is not None:
            root = root.parent
        finished = self._saved_loops(root.finished)
        sync()
        self._reached("output-synced")
        manifest = Manifest(step, time.time(), finished, levels, trace, output)
        publish(self._store, manifest)
        self.last_step, self._last_time = step, self._clock()
        retire(self._store, self.options.keep, self._reached)

    def _saved_level(self, level: Level) -> SavedLevel:
        assert level.head is not None
        assert level.source is not None
        level.head = self._durable(level.head)
        return SavedLevel(
            site=level.site,
            iteration=level.iteration,
            entry=level.entry,
            origin=level.source.origin(),
            order=level.order,
            finished=self._saved_loops(level.finished),
            state=level.head,
        )

    def _saved_loops(self, loops: list[Finished]) -> tuple[SavedLoop, ...]:
        saved = []
        for loop in loops:
            assert loop.exit is not None
            loop.exit = self._durable(loop.exit)
            saved.append(SavedLoop(loop.site, loop.entry, loop.exit))
        return tuple(saved)

    def _durable(self, state: Snapshot | SavedState) -> SavedState:
        """A state is written once, however many checkpoints name it."""
        if isinstance(state, SavedState):
            return state
        self._number += 1
        return save_state(self._store, state, f"{self._number:08d}")
