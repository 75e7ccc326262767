"""From snapshots to a published checkpoint, and from a store back to the newest good one.

Order is all: data files first, each durable before the next step; then the manifest that names
them; only then is anything older removed. Each step has a name in `CRASH_POINTS`; a process killed
at any of them leaves the old checkpoint or the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from detrain.checkpoint.copying import Abandoned
from detrain.checkpoint.format import encode_header
from detrain.checkpoint.lending import part
from detrain.checkpoint.manifest import (
    Borrowed,
    Manifest,
    SavedState,
    decode_manifest,
    encode_manifest,
)
from detrain.checkpoint.reading import Arrays
from detrain.checkpoint.retention import Retention, garbage, retired
from detrain.errors import DamagedCheckpoint, DamageFoundLate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from detrain.checkpoint.format import ArrayBytes
    from detrain.checkpoint.snapshot import Snapshot
    from detrain.checkpoint.store import Store

__all__ = [
    "CRASH_POINTS",
    "Lent",
    "collect",
    "load_newest",
    "manifest_name",
    "manifest_steps",
    "packed_name",
    "publish",
    "read_checkpoint",
    "retire",
    "save_state",
    "set_aside",
]

_STAGES = ("begun", "partly-written", "written", "synced", "renamed", "durable")
CRASH_POINTS = (
    "step",
    "cut",
    *(f"data-{stage}" for stage in _STAGES),
    "output-synced",
    *(f"manifest-{stage}" for stage in _STAGES),
    "manifests-retired",
    "data-collected",
)
"""The end of every step of a run, and every step of a commit, in order."""

_MANIFEST = ".json"
_DATA = ".safetensors"
_PACKED = f"-packed{_DATA}"
_ASIDE = ".damaged"
_PIECE = 64 << 20
"""Bytes that are written in one piece at the most, unless an array is larger."""


@dataclass(frozen=True)
class Lent:
    """Arrays, by digest, that lie in files already, for the state that is saved next.

    `named` are files that every manifest which names the state names too. `changing` are arrays of
    the state that are known to change from one checkpoint to the next: they are not looked up, so
    that they can be written before their digests are known.
    """

    arrays: Mapping[str, Borrowed] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    changing: frozenset[str] = frozenset()


def save_state(store: Store, snapshot: Snapshot, name: str, lent: Lent | None = None) -> SavedState:
    """Make a snapshot durable; `Abandoned` if it is given up meanwhile.

    Arrays that are lent are not written again. The snapshot may be still under way: its arrays are
    written as they come.
    """
    lent = lent or Lent()
    own: Sequence[ArrayBytes] = snapshot.arrays
    looked_up, borrowed = dict[str, str](), dict[str, Borrowed]()
    if lent.arrays:
        looked_up = {x.name: snapshot.digest(x) for x in own if x.name not in lent.changing}
    if looked_up:
        sizes = {array.name: len(array.data) for array in own}
        parted = part(looked_up, sizes, lent.arrays, lent.named)
        borrowed |= parted.borrowed
        if parted.lasting:
            file, lasting = f"{name}-lasting{_DATA}", _chosen(snapshot, parted.lasting)
            size = store.put(file, _pieces(snapshot, lasting), "data")
            borrowed |= {array.name: Borrowed(file, size, array.name) for array in lasting}
        own = _chosen(snapshot, sizes.keys() - borrowed.keys()) if borrowed else own
    file = name + _DATA
    passing = snapshot.left.isdisjoint(looked_up)
    size = store.put(file, _pieces(snapshot, own, passing=passing), "data")
    return SavedState(
        snapshot.tree,
        snapshot.positions,
        file,
        size,
        snapshot.digests(looked_up),
        snapshot.rebuilt,
        snapshot.gradients,
        snapshot.left_out,
        borrowed,
    )


def _chosen(snapshot: Snapshot, names: Collection[str]) -> list[ArrayBytes]:
    return [array for array in snapshot.arrays if array.name in names]


def _pieces(
    snapshot: Snapshot, arrays: Sequence[ArrayBytes], *, passing: bool = False
) -> Iterator[bytes | bytearray | memoryview]:
    """The header, then the bytes of the arrays, as soon as they are copied.

    Those that lie side by side in memory come in one piece, if it need not be waited for. Those
    that are left to who writes, all of them, are copied here if they are to be `passing`.
    """
    yield encode_header(arrays)
    last = snapshot.at_once if arrays is snapshot.arrays else None
    if last is not None:  # they lie side by side, and nobody has to ask for each of them
        arrays = arrays[: len(snapshot.under_way)]
    if passing and snapshot.overlap is not None:
        yield from snapshot.overlap.copying.pieces()
        arrays = arrays[len(snapshot.left) :]
    block: Any = None
    start = end = 0
    under_way = snapshot.under_way
    for array in arrays:
        data = array.data
        if array.name in under_way:
            if block is not None and not snapshot.is_copied(array):
                yield memoryview(block)[start:end]
                block = None
            data = snapshot.wait_for(array)
        if snapshot.given_up:
            raise Abandoned
        if not len(data):
            continue
        own = data.obj if array.at >= 0 and isinstance(data, memoryview) else None
        follows = own is not None and own is block and array.at == end
        if follows and array.at + len(data) - start <= _PIECE:
            end += len(data)
            continue
        if block is not None:
            yield memoryview(block)[start:end]
        block, start, end = own, array.at, array.at + len(data)
        if own is None:
            yield data
    if block is not None:
        yield memoryview(block)[start:end]
    if last is not None:
        if snapshot.given_up:
            raise Abandoned
        yield last


def publish(store: Store, manifest: Manifest, kind: str = "manifest") -> None:
    """Make a checkpoint the newest one. Its data files must be durable."""
    store.put(manifest_name(manifest.step), [encode_manifest(manifest)], kind)


def retire(
    store: Store,
    rule: Retention,
    reached: Callable[[str], None],
    known: dict[int, Manifest],
    in_use: Collection[str] = (),
) -> Manifest | None:
    """Give up old checkpoints, then the data files that no kept one names; gives the oldest kept.

    `known` are manifests that need not be read again; it is brought up to date. `in_use` are files
    that the next manifest may name. None if a kept one is damaged: what it named is not known, and
    nothing is collected.
    """
    with store.protecting() as protected:
        gone = retired(manifest_steps(store), rule, protected)
        if gone:
            store.remove(manifest_name(step) for step in gone)
    reached("manifests-retired")
    kept = collect(store, known, in_use)
    if kept is None:
        return None
    reached("data-collected")
    return kept[0] if kept else None


def collect(
    store: Store, known: dict[int, Manifest], in_use: Collection[str] = ()
) -> list[Manifest] | None:
    """Remove the data files that no manifest names; gives the manifests, or None as `retire` does.

    Nobody publishes a compacted manifest meanwhile. Whether somebody has since `known` was read
    shows in a packed file that those do not name; then all are read again.
    """
    with store.protecting():
        files = [name for name in store.names() if name.endswith(_DATA)]
        try:
            kept = [
                known.get(step) or read_checkpoint(store, step) for step in manifest_steps(store)
            ]
            unnamed = garbage(files, _named(kept) | set(in_use))
            if any(name.endswith(_PACKED) for name in unnamed):
                kept = [read_checkpoint(store, manifest.step) for manifest in kept]
                unnamed = garbage(files, _named(kept) | set(in_use))
        except DamagedCheckpoint:
            return None
        known.clear()
        known.update((manifest.step, manifest) for manifest in kept)
        if unnamed:
            store.remove(unnamed)
    return kept


def _named(manifests: Iterable[Manifest]) -> set[str]:
    return {name for manifest in manifests for name in manifest.data_files()}


def packed_name(file: str) -> str:
    """The name of the file that a data file is compacted into."""
    return file.removesuffix(_DATA) + _PACKED


def manifest_name(step: int) -> str:
    """The name of a step's manifest."""
    return f"{step:010d}{_MANIFEST}"


def manifest_steps(store: Store) -> list[int]:
    """The steps that have a checkpoint, ascending."""
    found = [name.removesuffix(_MANIFEST) for name in store.names() if name.endswith(_MANIFEST)]
    return sorted(int(step) for step in found if step.isascii() and step.isdigit())


def load_newest(
    store: Store,
    damaged: Callable[[DamagedCheckpoint, int], None],
    check: Callable[[Manifest], None] = lambda _: None,
    opened: dict[str, Arrays] | None = None,
    found_late: Callable[[DamageFoundLate], None] | None = None,
) -> Manifest | None:
    """The newest checkpoint that is good in every byte; None if there is none at all.

    `damaged` is told of each newer one that is not. If all are damaged that is an error: starting
    over by oneself would throw the run away. `check` raises one of what else may be wrong.
    `opened` is given the arrays of its states, by the names of their files, so that nobody need
    verify them again. If there is somebody to be told that damage was `found_late`, arrays of the
    innermost state that a program does not need at once are verified only when they are used.
    """
    steps = manifest_steps(store)
    first: DamagedCheckpoint | None = None
    for step in reversed(steps):
        try:
            manifest = read_checkpoint(store, step)
            check(manifest)
            innermost = manifest.levels[-1].state
            arrays = {
                state.file: Arrays(
                    store, state, found_late=found_late if state is innermost else None
                )
                for state in {state.file: state for state in manifest.states()}.values()
            }
            if opened is not None:
                opened.update(arrays)
            return manifest
        except DamagedCheckpoint as error:
            first = first or error
            damaged(error, step)
    if first is not None:
        raise DamagedCheckpoint(
            first.file,
            f"{first.reason}. No checkpoint of the run is whole; nothing was changed. Put a good "
            "copy back, or start a new run with --fresh",
        )
    return None


def set_aside(store: Store, step: int) -> None:
    """Rename a damaged manifest, so that it is kept for inspection and never taken again."""
    name = manifest_name(step)
    raw = store.read(name)
    store.put(name + _ASIDE, [raw], "aside")
    store.remove([name])


def read_checkpoint(store: Store, step: int) -> Manifest:
    """The manifest of a step; `DamagedCheckpoint` if it can't be read."""
    name = manifest_name(step)
    manifest = decode_manifest(store.read(name), name)
    if manifest.step != step or not manifest.levels:
        raise DamagedCheckpoint(name, f"says that it is of step {manifest.step}")
    return manifest
