"""The arrays of a state, from the files that they lie in: found, unpacked, checked.

Whoever gets an array from here has the bytes that were written, or an error that names the file.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING

import xxhash

from detrain.checkpoint.buffers import address_of
from detrain.checkpoint.packing import unpack
from detrain.errors import DamagedCheckpoint, DamageFoundLate
from detrain.frameworks.base import Mapped
from detrain.frameworks.beside import WORTH_A_THREAD, beside
from detrain.trace.digest import digest_array, digest_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from detrain.checkpoint.manifest import Borrowed, Packed, SavedState
    from detrain.checkpoint.store import Store
    from detrain.state import ArrayFacts

__all__ = ["Arrays", "Files", "verified_arrays"]


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


class Arrays:
    """The arrays of a state, each checked against its digest.

    That is done at once; or, if there is somebody to be told that damage was `found_late`, only
    when they are used, for those that a program needs no earlier than at its next update. Whatever
    thread finds it tells.
    """

    def __init__(
        self,
        store: Store,
        state: SavedState,
        found_late: Callable[[DamageFoundLate], None] | None = None,
    ) -> None:
        self._store, self._state, self._found_late = store, state, found_late
        self._arrays = _found(Files(store), state)
        kept = _kept_of_arrays(state) & self._arrays.keys() if found_late is not None else ()
        self._waiting = {name for name in kept if len(self._arrays[name]) >= WORTH_A_THREAD}
        """Those that nobody has checked so far."""
        wrong = self._verify(name for name in self._arrays if name not in self._waiting)
        if wrong:
            raise DamagedCheckpoint(state.file, wrong[0])
        for node in state.tree.nodes:
            if node.array is None or node.anchor == "dead":
                continue
            if node.array.leaf not in (state.rebuilt if node.anchor else self._arrays):
                raise DamagedCheckpoint(state.file, f"array {node.array.leaf!r} is missing")

    def __getitem__(self, name: str) -> memoryview:
        if name in self._waiting:  # the others are wanted as well, then
            waiting, self._waiting = sorted(self._waiting), set()
            wrong = self._verify(waiting)
            if wrong:
                raise self._late(wrong[0])
        return self._arrays[name]

    def all(self) -> dict[str, memoryview]:
        """All of them."""
        return {name: self[name] for name in self._arrays}

    def mapped(self, name: str) -> Mapped:
        """Where an array lies, be it checked or not."""
        data = self._arrays[name]
        return Mapped(data, functools.partial(self._copy, name, data))

    def _copy(self, name: str, data: memoryview, into: memoryview) -> None:
        """Copy an array, which is checked then; `DamageFoundLate` if it is altered."""
        if name not in self._waiting:
            ctypes.memmove(address_of(into), address_of(data), len(data))
            return
        running = xxhash.xxh3_128()
        digest_copy(running, into, address_of(data))
        if self._wrong(name, running.hexdigest()):
            # The program may have written to these pages, which are its own: ask the file.
            wrong = self._wrong_in_file(name)
            if wrong:
                raise self._late(wrong)

    def _verify(self, names: Iterable[str]) -> list[str]:
        """What is wrong with some arrays. Large ones are read and digested side by side.

        The system reads ahead by itself: asked to (MADV_WILLNEED), it took longer.
        """
        digests: dict[str, str] = {}

        def digest(name: str) -> None:
            digests[name] = digest_array(self._arrays[name])

        large = []
        for name in names:
            digests[name] = ""
            if len(self._arrays[name]) >= WORTH_A_THREAD:
                large.append(name)
            else:
                digest(name)
        beside(functools.partial(digest, name) for name in large)
        found = (self._wrong(name, digest) for name, digest in digests.items())
        return [wrong for wrong in found if wrong]

    def _wrong(self, name: str, digest: str) -> str:
        expected = self._state.digests[name]
        if digest == expected:
            return ""
        return f"array {name!r} was altered: digest {digest}, {expected} was written"

    def _wrong_in_file(self, name: str) -> str:
        """What is wrong with an array as the file has it now."""
        try:
            data = Files(self._store).at(self._state.place(name))
        except DamagedCheckpoint as error:
            return error.reason
        return self._wrong(name, digest_array(data))

    def _late(self, wrong: str) -> DamageFoundLate:
        error = DamageFoundLate(
            self._state.file,
            f"{wrong}. The program had gone on from this checkpoint before that was found, and is "
            "ended; the same command goes on from the checkpoint before it",
        )
        if self._found_late is not None:
            self._found_late(error)
        return error


def verified_arrays(store: Store, state: SavedState) -> dict[str, memoryview]:
    """The arrays of a state, each checked against its digest."""
    return Arrays(store, state).all()


def _found(files: Files, state: SavedState) -> dict[str, memoryview]:
    """The arrays of a state, as they are in its files."""
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
    return arrays | _unpacked(files, state)


def _unpacked(files: Files, state: SavedState) -> dict[str, memoryview]:
    """Arrays that were compacted; those of one content once."""
    found: dict[Packed, memoryview] = {}
    for packed in state.packed.values():
        if packed not in found:
            layers = files.layers(packed)
            found[packed] = unpack(layers, packed.size, packed.width, packed.layers[-1].file)
    return {name: found[packed] for name, packed in state.packed.items()}


def _kept_of_arrays(state: SavedState) -> set[str]:
    """Arrays that dictionaries have for arrays, which is what optimizers keep of parameters.

    Only those that lie in a file as they will lie in memory.
    """
    nodes, found = state.tree.nodes, set[str]()
    for node in nodes:
        for key, value in zip(node.keys, node.items, strict=False):
            if isinstance(key, int) and nodes[key].array is not None and isinstance(value, int):
                refs = (value, *nodes[value].items)
                arrays = [nodes[ref].array for ref in refs if isinstance(ref, int)]
                found.update(each.leaf for each in arrays if each is not None and _is_plain(each))
    return found - state.packed.keys()


def _is_plain(array: ArrayFacts) -> bool:
    """Whether an array is all of its memory, in the order of the file, on this machine's CPU."""
    return array.device == "cpu" and not (array.strides or array.offset or array.storage_bytes)
