"""Compaction: checkpoints that are kept for long are written again, packed, in less room.

The newest checkpoints stay as they are. Of each older one, oldest first: its arrays are packed into
a new file, as what is different from the compacted checkpoint before where that is less; the file
is read back and compared with the digests; then a manifest that names it takes the place of the
old one, atomically; the old files are removed as all that no manifest names. A process killed
anywhere leaves the old manifest or the new one, and all files of either.

It may be done by a process of its own while the run goes on (`python -m
detrain.checkpoint.compaction`): between looking and publishing it holds the lock that the run
takes to give checkpoints up. Until then its file has a name that nobody else looks at.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from detrain.checkpoint.commit import (
    collect,
    manifest_name,
    manifest_steps,
    packed_name,
    publish,
    read_checkpoint,
)
from detrain.checkpoint.durable import PACKING, ignore, sync_directory
from detrain.checkpoint.manifest import Manifest, Packed, SavedLoop, SavedState
from detrain.checkpoint.packed_state import Known, Packing, relinked
from detrain.checkpoint.reading import Files
from detrain.checkpoint.sound import MOST_LAYERS
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint, DetrainError

__all__ = ["COMPACT_POINTS", "Compacted", "compact"]

COMPACT_POINTS = (
    "packed-partly-written",
    "packed-synced",
    "packed-verified",
    "packed-renamed",
    "packed-durable",
    "compacted-begun",
    "compacted-partly-written",
    "compacted-written",
    "compacted-synced",
    "compacted-renamed",
    "compacted-durable",
    "compacted-collected",
)
"""Every step of a compaction, in order."""

_LOCK = "compaction.lock"
_PASSES = 3
"""What a pass has packed, the next may have others refer to; and what it found gone, because the
run gives checkpoints up meanwhile, the next does not look for."""


@dataclass
class Compacted:
    """What was done: the steps, and the bytes of their files before and after."""

    steps: list[int] = field(default_factory=list)
    before: int = 0
    after: int = 0
    troubles: list[str] = field(default_factory=list)
    """Checkpoints that could not be compacted, and why. They stay as they are."""


def compact(
    store: LocalStore,
    newest: int,
    reached: Callable[[str], None] = ignore,
    wanted: Callable[[], bool] = lambda: True,
    *,
    alone: bool,
) -> Compacted:
    """Compact all checkpoints but the newest ones; gives what was done.

    It ends early if it is no longer `wanted`, and does nothing if another process is at it. Whoever
    works `alone`, because no run is, also removes the files that are not needed any more.
    """
    done = Compacted()
    with _at_it(store.folder) as mine:
        if not mine:
            return done
        _sweep(store.folder)
        before = _room(store)
        for _ in range(_PASSES):
            count, done.troubles = len(done.steps), []
            _go_over(_Pass(store, max(newest, 1), reached, done), wanted, done)
            if len(done.steps) == count and not done.troubles:
                break
        if alone:
            collect(store, {})
        reached("compacted-collected")
        done.steps = sorted({*done.steps})
        done.before, done.after = before, _room(store)
    return done


def _go_over(over: _Pass, wanted: Callable[[], bool], done: Compacted) -> None:
    for step in over.history:
        if not wanted():
            return
        try:
            over.compact(step)
        except (DamagedCheckpoint, OSError) as error:
            if over.is_there(step):
                done.troubles.append(f"the checkpoint of step {step} stays as it is: {error}")


@contextlib.contextmanager
def _at_it(folder: Path) -> Iterator[bool]:
    """Whether this process is the one that compacts; the lock ends with it."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove what was packed and not published."""
    for path in folder.glob(f"*{PACKING}"):
        path.unlink(missing_ok=True)


def _room(store: LocalStore) -> int:
    room = 0
    for path in store.folder.glob("*.safetensors"):
        with contextlib.suppress(FileNotFoundError):  # the run has just given it up
            room += path.stat().st_size
    return room


class _Pass:
    """One pass over the checkpoints of a run, oldest first."""

    def __init__(
        self, store: LocalStore, newest: int, reached: Callable[[str], None], done: Compacted
    ) -> None:
        self._store, self._reached, self._done = store, reached, done
        with store.protecting():  # nothing is given up between looking and reading
            steps = manifest_steps(store)
            last = [read_checkpoint(store, step) for step in steps[-newest:]]
        self.history = steps[:-newest]
        self._pinned = {file for manifest in last for file in manifest.data_files()}
        """Files that stay in any case: to pack what lies there would gain nothing."""
        self._states: dict[str, SavedState] = {}
        """States that were compacted, by the names of their files."""
        self._known = Known()
        self._before: dict[tuple[str, str], Packed] = {}
        """The array of the last compacted checkpoint, by the place of its state and its name."""
        for step in self.history:
            with contextlib.suppress(DamagedCheckpoint):  # it is said when its turn comes
                for state in read_checkpoint(store, step).states():
                    self._learn(state)

    def is_there(self, step: int) -> bool:
        """Whether a checkpoint was not given up meanwhile."""
        return manifest_name(step) in self._store.names()

    def compact(self, step: int) -> None:
        """Compact the checkpoint of one step, if it is not yet."""
        raw = self._store.read(manifest_name(step))
        manifest = read_checkpoint(self._store, step)
        new: dict[str, SavedState] = {}
        try:
            for place, state in _placed(manifest):
                if state.file in self._pinned or state.file in new:
                    continue
                packed = self._packed(place, state)
                if packed != state:
                    new[state.file] = packed
            changed = _with_states(manifest, lambda state: new.get(state.file, state))
            if new:
                if not self._publish(changed, raw):
                    return
                self._done.steps.append(step)
            for place, state in _placed(changed):
                self._note(place, state)
        finally:
            _sweep(self._store.folder)

    def _note(self, place: str, state: SavedState) -> None:
        """What is packed already is what the next one may be packed against."""
        self._learn(state)
        for name, each in state.packed.items():
            self._before[place, name] = each

    def _learn(self, state: SavedState) -> None:
        """What is packed already need not be packed again."""
        if state.packed:
            self._states[state.file] = state
        for name, each in state.packed.items():
            self._known.contents.setdefault(state.digests[name], each)

    def _packed(self, place: str, state: SavedState) -> SavedState:
        if state.packed:
            return relinked(Files(self._store), state, self._known, self._pinned)
        file = packed_name(state.file)
        there = self._states.get(file)
        if there is None:
            staged = self._store.folder / f"{file}{PACKING}"
            packing = Packing(Files(self._store), state, file, staged, self._reached)
            return packing.pack(lambda *array: self._base(place, *array), self._known, self._pinned)
        if there.digests != state.digests:
            raise DamagedCheckpoint(file, f"is of another state than {state.file}")
        return msgspec.structs.replace(
            state,
            file=there.file,
            bytes=there.bytes,
            borrowed=there.borrowed,
            packed=there.packed,
        )

    def _base(self, place: str, name: str, size: int) -> Packed | None:
        """The array that this one is compared with."""
        base = self._before.get((place, name))
        if base is None or base.size != size or len(base.layers) >= MOST_LAYERS:
            return None
        return base

    def _publish(self, manifest: Manifest, expected: bytes) -> bool:
        """Put a manifest in the place of the old one, if that is still there and all files are."""
        store, name = self._store, manifest_name(manifest.step)
        with store.protecting():
            if name not in store.names() or store.read(name) != expected:
                return False  # it was given up meanwhile
            for file, size in manifest.data_files().items():
                staged = store.folder / f"{file}{PACKING}"
                if staged.exists():
                    staged.replace(store.folder / file)
                elif not (store.folder / file).exists():
                    raise DamagedCheckpoint(file, f"of {size} bytes was given up meanwhile")
            self._reached("packed-renamed")
            sync_directory(store.folder)
            self._reached("packed-durable")
            publish(store, manifest, "compacted")
        return True


def _placed(manifest: Manifest) -> Iterator[tuple[str, SavedState]]:
    """The states of a checkpoint, with names for their places that stay from one to the next."""
    path = ""
    yield from _exits(path, manifest.finished)
    for level in manifest.levels:
        path += f" {level.site}"
        yield path, level.state
        yield from _exits(path, level.finished)


def _exits(path: str, loops: tuple[SavedLoop, ...]) -> Iterator[tuple[str, SavedState]]:
    for loop in loops:
        if loop.exit is not None:
            yield f"{path} after {loop.site}", loop.exit


def _with_states(manifest: Manifest, new: Callable[[SavedState], SavedState]) -> Manifest:
    def loops(found: tuple[SavedLoop, ...]) -> tuple[SavedLoop, ...]:
        replace = msgspec.structs.replace
        return tuple(
            loop if loop.exit is None else replace(loop, exit=new(loop.exit)) for loop in found
        )

    levels = tuple(
        msgspec.structs.replace(level, state=new(level.state), finished=loops(level.finished))
        for level in manifest.levels
    )
    return msgspec.structs.replace(manifest, finished=loops(manifest.finished), levels=levels)


def main(folder: str, newest: str, owner: str) -> int:
    """Compact for a run that is at work, as long as it is; says what failed."""
    os.nice(19)
    try:
        done = compact(
            LocalStore(Path(folder)),
            int(newest),
            wanted=lambda: os.getppid() == int(owner),
            alone=False,
        )
    except (DetrainError, OSError) as error:
        print(error)
        return 1
    for trouble in done.troubles:
        print(trouble)
    return 1 if done.troubles else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
