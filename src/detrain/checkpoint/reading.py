"""The arrays of a state, from the files that they lie in: found, unpacked, checked.

Whoever gets an array from here has the bytes that were written, or an error that names the file.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from detrain.checkpoint.packing import unpack
from detrain.errors import DamagedCheckpoint
from detrain.frameworks.beside import WORTH_A_THREAD, beside
from detrain.trace.digest import digest_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from detrain.checkpoint.manifest import Borrowed, Packed, SavedState
    from detrain.checkpoint.store import Store

__all__ = ["Files", "verified_arrays"]


class Files:
    """Data files of a store, each opened once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened: dict[str, dict[str, memoryview]] = {}

    def arrays(self, file: str, size: int) -> dict[str, memoryview]:
        """All that lies in a file of that size."""
        if file not in self._opened:
            self._opened[file] = self._store.arrays(file, size)
        return self._opened[file]

    def at(self, place: Borrowed) -> memoryview:
        """What lies in one place; `DamagedCheckpoint` if nothing does."""
        found = self.arrays(place.file, place.bytes).get(place.name)
        if found is None:
            raise DamagedCheckpoint(place.file, f"array {place.name!r} is missing")
        return found

    def layers(self, packed: Packed) -> list[memoryview]:
        """What an array that was compacted is unpacked from."""
        return [self.at(layer) for layer in packed.layers]


def verified_arrays(store: Store, state: SavedState) -> dict[str, memoryview]:
    """The arrays of a state, each checked against its digest."""
    files = Files(store)
    own = files.arrays(state.file, state.bytes)
    layers = {
        each.name
        for packed in state.packed.values()
        for each in packed.layers
        if each.file == state.file
    }
    plain = state.digests.keys() - state.borrowed.keys() - state.packed.keys()
    odd = sorted(own.keys() ^ (plain | layers)) or sorted(plain & layers)
    if odd:
        raise DamagedCheckpoint(state.file, f"array {odd[0]!r} is in only one of file and manifest")
    arrays = {name: own[name] for name in own if name in plain}
    arrays |= {name: files.at(place) for name, place in state.borrowed.items()}
    arrays |= _unpacked(files, state)
    digests = _digested(arrays)
    for name in arrays:
        found, expected = digests[name], state.digests[name]
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


def _unpacked(files: Files, state: SavedState) -> dict[str, memoryview]:
    """Arrays that were compacted; those of one content once."""
    found: dict[Packed, memoryview] = {}
    for packed in state.packed.values():
        if packed not in found:
            layers = files.layers(packed)
            found[packed] = unpack(layers, packed.size, packed.width, packed.layers[-1].file)
    return {name: found[packed] for name, packed in state.packed.items()}


def _digested(arrays: Mapping[str, memoryview]) -> dict[str, str]:
    """The digest of each array. Large ones are read from the disk and digested side by side."""
    found: dict[str, str] = {}

    def digest(name: str) -> None:
        found[name] = digest_array(arrays[name])

    large = []
    for name, data in arrays.items():
        if len(data) >= WORTH_A_THREAD:
            large.append(functools.partial(digest, name))
        else:
            digest(name)
    beside(large)
    return found
