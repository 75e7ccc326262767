"""One state, written again with its arrays packed, and read back before anybody relies on it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from detrain.checkpoint.format import encode_sizes, item_size, read_arrays
from detrain.checkpoint.manifest import Borrowed, Packed, SavedState
from detrain.checkpoint.packing import pack, pieces, unpacked_pieces
from detrain.checkpoint.sound import WIDTHS
from detrain.errors import DamagedCheckpoint
from detrain.trace.digest import digest_array, digest_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from detrain.checkpoint.reading import Files

__all__ = ["WORTH_PACKING", "Known", "Packing", "relinked"]

WORTH_PACKING = 4096
"""Bytes of an array."""
_SAMPLE = 4
"""Pieces of an array by which it is decided what it is packed as."""


@dataclass
class Known:
    """Arrays that are packed already: by digest, and those that were unpacked and compared."""

    contents: dict[str, Packed] = field(default_factory=dict)
    sound: set[Packed] = field(default_factory=set)


def relinked(files: Files, state: SavedState, known: Known, pinned: Collection[str]) -> SavedState:
    """A packed state whose borrowed arrays are taken from packed files, where there are any.

    When it was packed, the files that they lie in were still needed by others.
    """
    found = {
        name: known.contents[state.digests[name]]
        for name, place in state.borrowed.items()
        if place.file not in pinned and state.digests[name] in known.contents
    }
    for name, each in found.items():
        if each not in known.sound:
            data = unpacked_pieces(files.layers(each), each.size, each.width, each.layers[-1].file)
            _compare(state, name, digest_pieces(data))
            known.sound.add(each)
    borrowed = {name: place for name, place in state.borrowed.items() if name not in found}
    return msgspec.structs.replace(state, borrowed=borrowed, packed={**state.packed, **found})


def _compare(state: SavedState, name: str, found: str) -> None:
    expected = state.digests[name]
    if found != expected:
        raise DamagedCheckpoint(
            state.file, f"array {name!r} has the digest {found}, {expected} was expected"
        )


class Packing:
    """Packs a state into a file that will have the name `file`, and is `staged` until then."""

    def __init__(
        self,
        files: Files,
        state: SavedState,
        file: str,
        staged: Path,
        reached: Callable[[str], None],
    ) -> None:
        self._files, self._state, self._file = files, state, file
        self._staged, self._reached = staged, reached
        dtypes = {node.array.leaf: node.array.dtype for node in state.tree.nodes if node.array}
        self._widths = {name: item_size(dtype) for name, dtype in dtypes.items()}

    def pack(
        self,
        base_of: Callable[[str, int], Packed | None],
        known: Known,
        pinned: Collection[str],
    ) -> SavedState:
        """Write the file, durably, and compare what comes out of it with the digests.

        `base_of` gives what an array of a name and a size may be compared with. Arrays that are
        borrowed from `pinned` files stay there.
        """
        state = self._state
        borrowed = {n: place for n, place in state.borrowed.items() if place.file in pinned}
        packed: dict[str, Packed] = {}
        new: dict[str, memoryview] = {}
        for name, digest in state.digests.items():
            if name in borrowed:
                continue
            place = state.borrowed.get(name) or Borrowed(state.file, state.bytes, name)
            data = self._files.at(place)
            if len(data) >= WORTH_PACKING and digest in known.contents:
                packed[name] = known.contents[digest]
            else:
                new[name] = data
        if not packed and all(len(data) < WORTH_PACKING for data in new.values()):
            return state  # nothing to gain
        size, bases = self._write(new, base_of)
        for name, base in bases.items():
            before = base.layers if base is not None else ()
            layers = (*before, Borrowed(self._file, size, name))
            packed[name] = Packed(len(new[name]), self._width(name), layers)
        self._verify(new, packed, known)
        self._reached("packed-verified")
        return msgspec.structs.replace(
            state, file=self._file, bytes=size, borrowed=borrowed, packed=packed
        )

    def _width(self, name: str) -> int:
        width = self._widths.get(name, 1)
        return width if width in WIDTHS else 1

    def _write(
        self, new: dict[str, memoryview], base_of: Callable[[str, int], Packed | None]
    ) -> tuple[int, dict[str, Packed | None]]:
        """Write arrays; gives the size of the file, and the base of each one that was packed.

        How long they are is known only afterwards, so room is left for the header.
        """
        room = len(encode_sizes((name, 2 * len(data) + 4096) for name, data in new.items()))
        sizes: list[tuple[str, int]] = []
        bases: dict[str, Packed | None] = {}
        with self._staged.open("wb") as file:
            file.seek(room)
            for name, data in new.items():
                start, width = file.tell(), self._width(name)
                if len(data) < WORTH_PACKING:
                    file.write(data)
                else:
                    base = bases[name] = self._better(data, width, base_of(name, len(data)))
                    against = self._pieces(base) if base is not None else None
                    file.writelines(pack(pieces(data), len(data), width, against))
                sizes.append((name, file.tell() - start))
                self._reached("packed-partly-written")
            size = file.tell()
            file.seek(0)
            file.write(encode_sizes(sizes, room))
            file.flush()
            os.fsync(file.fileno())
        self._reached("packed-synced")
        return size, bases

    def _pieces(self, packed: Packed) -> Iterator[bytes]:
        layers = self._files.layers(packed)
        return unpacked_pieces(layers, packed.size, packed.width, packed.layers[-1].file)

    def _better(self, data: memoryview, width: int, base: Packed | None) -> Packed | None:
        """The base, if the beginning of the array takes less room with it than without."""
        if base is None:
            return None
        first = list(islice(pieces(data), _SAMPLE))
        size = sum(map(len, first))
        against = list(islice(self._pieces(base), len(first)))
        alone = sum(map(len, pack(first, size, width)))
        return base if sum(map(len, pack(first, size, width, against))) < alone else None

    def _verify(self, new: dict[str, memoryview], packed: dict[str, Packed], known: Known) -> None:
        """`DamagedCheckpoint` if what would be read is not what is to be there."""
        own = read_arrays(self._staged)
        for name in new.keys() - packed.keys():
            _compare(self._state, name, digest_array(own[name]))
        for name, each in packed.items():
            if each in known.sound:
                continue
            here = each.layers[-1].file == self._file
            before = Packed(each.size, each.width, each.layers[:-1]) if here else each
            layers = [*self._files.layers(before), *([own[name]] if here else [])]
            file = each.layers[-1].file
            _compare(
                self._state,
                name,
                digest_pieces(unpacked_pieces(layers, each.size, each.width, file)),
            )
            known.sound.add(each)
