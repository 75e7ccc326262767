"""How the arrays of a state are arranged: which are copied late, which at once, in what order.

Arrays follow each other without gaps, in memory as in the file. From one checkpoint to the next the
same arrays lie in the same places, nearly always, and what was arranged for them stands.
"""

from __future__ import annotations

from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.windows import Late, Row
from detrain.frameworks.find import live_bytes, memory_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from detrain.frameworks.base import LiveLeaf

__all__ = ["Arranged", "Laid", "arrange", "in_file_order"]

_ROUND = 64
"""Bytes: a multiple of what any element takes."""

_nbytes = attrgetter("nbytes")


class Laid:
    """Arrays that follow each other in a memory."""

    def __init__(self, leaves: Sequence[LiveLeaf]) -> None:
        self.leaves = leaves
        starts = [0, *accumulate(map(_nbytes, leaves))]
        self._spans = [*zip(leaves, starts, starts[1:], strict=False)]
        self.nbytes = starts[-1]
        """How many bytes they have."""
        self._block, self._base = object(), 0
        self._arrays: tuple[ArrayBytes, ...] = ()

    def within(self, memory: memoryview, base: int = 0) -> tuple[ArrayBytes, ...]:
        """The arrays in a memory, which begins at `base` of its block; the same for the same."""
        if self._block is not memory.obj or self._base != base:
            self._block, self._base = memory.obj, base
            self._arrays = tuple(
                [
                    ArrayBytes(x.name, x.dtype, x.shape, memory[start:end], base + start)
                    for x, start, end in self._spans
                ]
            )
        return self._arrays


class Arranged:
    """Arrays that are copied late, where they lie, and others that are copied at once."""

    def __init__(
        self, late: Sequence[LiveLeaf], row: Row, places: Mapping[LiveLeaf, memoryview | None]
    ) -> None:
        """`places` are where those lie that are copied at once; None if not in C order."""
        self.row, self._by_leaf = row, places
        self.late, self.early = Laid(late), Laid(in_file_order(places))
        self._places = [places[leaf] for leaf in self.early.leaves]
        self._scattered = [at for at, place in enumerate(self._places) if place is None]

    def with_others(self, leaves: Collection[LiveLeaf]) -> Arranged:
        """The same, and these, which are copied at once."""
        if not leaves:
            return self
        return Arranged(self.late.leaves, self.row, {**self._by_leaf, **_placed(leaves)})

    def gathered(self) -> memoryview:
        """The bytes of those that are copied at once, in new memory."""
        pieces: list[Any] = self._places
        if self._scattered:
            pieces = list(pieces)
            for at in self._scattered:
                leaf = self.early.leaves[at]
                pieces[at] = live_bytes(leaf.framework, leaf.array, leaf.nbytes)
        return memoryview(bytearray().join(pieces))


def arrange(
    leaves: Iterable[LiveLeaf], addresses: Mapping[str, int], changing: Collection[str] = ()
) -> Arranged:
    """Arrange arrays: those with addresses are copied late.

    Those among them that are known to be `changing` will be written; they are left to who does it.
    """
    leaves = tuple(leaves)
    late = in_file_order(leaf for leaf in leaves if leaf.name in addresses)
    # Of a round size, so that all that follows in the file lies right.
    left = [x for x in late if x.name in changing and x.nbytes % _ROUND == 0]
    if left:
        names = {leaf.name for leaf in left}
        late = (*left, *(leaf for leaf in late if leaf.name not in names))
    row = Row([Late(x.name, addresses[x.name], x.nbytes) for x in late], len(left))
    return Arranged(late, row, _placed(leaf for leaf in leaves if leaf.name not in addresses))


def in_file_order(leaves: Iterable[LiveLeaf]) -> tuple[LiveLeaf, ...]:
    """Those of round sizes first, so that all lie right."""
    return tuple(sorted(leaves, key=lambda leaf: -min(leaf.nbytes & -leaf.nbytes, _ROUND)))


def _placed(leaves: Iterable[LiveLeaf]) -> dict[LiveLeaf, memoryview | None]:
    return {leaf: _place(leaf) for leaf in leaves}


def _place(leaf: LiveLeaf) -> memoryview | None:
    """Where an array lies, if it lies in C order in the memory of this process."""
    address = leaf.framework.address(leaf.array) if leaf.nbytes else None
    if address is not None:
        return memory_at(address, leaf.nbytes)
    return None if leaf.nbytes else memoryview(b"")
