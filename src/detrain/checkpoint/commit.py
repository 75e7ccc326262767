"""From snapshots to a published checkpoint, and from a store back to the newest good one.

Order is all: data files first, each durable before the next step; then the manifest that names
them; only then is anything older removed. Each step has a name in `CRASH_POINTS`; a process killed
at any of them leaves the old checkpoint or the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detrain.checkpoint.format import encode_header
from detrain.checkpoint.manifest import (
    Borrowed,
    Manifest,
    SavedState,
    decode_manifest,
    encode_manifest,
)
from detrain.checkpoint.retention import Retention, garbage, retired
from detrain.errors import DamagedCheckpoint
from detrain.trace.digest import digest_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.checkpoint.snapshot import Snapshot
    from detrain.checkpoint.store import Store

__all__ = [
    "CRASH_POINTS",
    "load_newest",
    "manifest_steps",
    "publish",
    "read_checkpoint",
    "retire",
    "save_state",
    "set_aside",
    "verified_arrays",
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
_ASIDE = ".damaged"
_WORTH_BORROWING = 1024
"""Bytes: to say where an array lies takes some, too."""


def save_state(
    store: Store, snapshot: Snapshot, name: str, lent: Mapping[str, Borrowed] | None = None
) -> SavedState:
    """Make a snapshot durable.

    `lent` are arrays, by digest, that lie in files which every manifest that will name this state
    names too: they are not written again.
    """
    file = name + _DATA
    digests = {array.name: digest_array(array.data) for array in snapshot.arrays}
    borrowed = {
        array.name: lent[digests[array.name]]
        for array in snapshot.arrays
        if lent and len(array.data) >= _WORTH_BORROWING and digests[array.name] in lent
    }
    own = [array for array in snapshot.arrays if array.name not in borrowed]
    size = store.put(file, [encode_header(own), *(array.data for array in own)], "data")
    return SavedState(
        snapshot.tree,
        snapshot.positions,
        file,
        size,
        digests,
        snapshot.rebuilt,
        snapshot.gradients,
        snapshot.left_out,
        borrowed,
    )


def publish(store: Store, manifest: Manifest) -> None:
    """Make a checkpoint the newest one. Its data files must be durable."""
    name = f"{manifest.step:010d}{_MANIFEST}"
    store.put(name, [encode_manifest(manifest)], "manifest")


def retire(
    store: Store, rule: Retention, reached: Callable[[str], None], known: dict[int, Manifest]
) -> Manifest | None:
    """Give up old checkpoints, then the data files that no kept one names; gives the oldest kept.

    `known` are manifests that need not be read again; it is brought up to date. None if a kept one
    is damaged: what it named is not known, and nothing is collected.
    """
    with store.protecting() as protected:
        gone = retired(manifest_steps(store), rule, protected)
        if gone:
            store.remove(f"{step:010d}{_MANIFEST}" for step in gone)
    reached("manifests-retired")
    try:
        kept = [known.get(step) or read_checkpoint(store, step) for step in manifest_steps(store)]
    except DamagedCheckpoint:
        return None
    known.clear()
    known.update((manifest.step, manifest) for manifest in kept)
    named = {name for manifest in kept for name in manifest.data_files()}
    files = [name for name in store.names() if name.endswith(_DATA)]
    unnamed = garbage(files, named)
    if unnamed:
        store.remove(unnamed)
    reached("data-collected")
    return kept[0] if kept else None


def manifest_steps(store: Store) -> list[int]:
    """The steps that have a checkpoint, ascending."""
    found = [name.removesuffix(_MANIFEST) for name in store.names() if name.endswith(_MANIFEST)]
    return sorted(int(step) for step in found if step.isascii() and step.isdigit())


def verified_arrays(store: Store, state: SavedState) -> dict[str, memoryview]:
    """The arrays of a state, each checked against its digest."""
    arrays = {**store.arrays(state.file, state.bytes), **_borrowed_arrays(store, state)}
    if arrays.keys() != state.digests.keys():
        odd = sorted(arrays.keys() ^ state.digests.keys())[0]
        raise DamagedCheckpoint(state.file, f"array {odd!r} is in only one of file and manifest")
    for name, expected in state.digests.items():
        found = digest_array(arrays[name])
        if found != expected:
            raise DamagedCheckpoint(
                state.file, f"array {name!r} was altered: digest {found}, {expected} was written"
            )
    for node in state.tree.nodes:
        if node.array is None or node.anchor == "dead":
            continue
        if node.array.leaf not in (state.rebuilt if node.anchor else arrays):
            raise DamagedCheckpoint(state.file, f"array {node.array.leaf!r} is missing")
    return arrays


def _borrowed_arrays(store: Store, state: SavedState) -> dict[str, memoryview]:
    files = {each.file: each.bytes for each in state.borrowed.values()}
    lenders = {file: store.arrays(file, size) for file, size in files.items()}
    for name, each in state.borrowed.items():
        if each.name not in lenders[each.file]:
            raise DamagedCheckpoint(
                each.file, f"array {each.name!r}, which is {name!r} of {state.file}, is missing"
            )
    return {name: lenders[each.file][each.name] for name, each in state.borrowed.items()}


def load_newest(
    store: Store,
    damaged: Callable[[DamagedCheckpoint, int], None],
    check: Callable[[Manifest], None] = lambda _: None,
) -> Manifest | None:
    """The newest checkpoint that is good in every byte; None if there is none at all.

    `damaged` is told of each newer one that is not. If all are damaged that is an error: starting
    over by oneself would throw the run away. `check` raises one of what else may be wrong.
    """
    steps = manifest_steps(store)
    first: DamagedCheckpoint | None = None
    for step in reversed(steps):
        try:
            manifest = read_checkpoint(store, step)
            check(manifest)
            for state in {state.file: state for state in manifest.states()}.values():
                verified_arrays(store, state)
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
    name = f"{step:010d}{_MANIFEST}"
    raw = store.read(name)
    store.put(name + _ASIDE, [raw], "aside")
    store.remove([name])


def read_checkpoint(store: Store, step: int) -> Manifest:
    """The manifest of a step; `DamagedCheckpoint` if it can't be read."""
    name = f"{step:010d}{_MANIFEST}"
    manifest = decode_manifest(store.read(name), name)
    if manifest.step != step or not manifest.levels:
        raise DamagedCheckpoint(name, f"says that it is of step {manifest.step}")
    return manifest
