"""Sets of numbered things, fast enough for whole programs: one integer, a bit for each member.

A `Numbering` gives numbers to the things of one kind, and its sets are immutable values that behave
as any set does. That they are integers is known here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from typing import Any, Generic, TypeVar

__all__ = ["BitSet", "Numbering", "closures"]

T = TypeVar("T", bound=Hashable)


class Numbering(Generic[T]):
    """The numbers of things, in the order in which they are met."""

    def __init__(self) -> None:
        self.things: list[T] = []
        self._numbers: dict[T, int] = {}
        self.nothing: BitSet[T] = BitSet(self, 0)

    def bit(self, thing: T) -> int:
        """The bit of a thing, which has a number from now on."""
        number = self._numbers.get(thing)
        if number is None:
            number = self._numbers[thing] = len(self.things)
            self.things.append(thing)
        return 1 << number

    def set(self, things: Iterable[T]) -> BitSet[T]:
        """The set of some things."""
        if isinstance(things, BitSet) and things.numbering is self:
            return things
        bits = 0
        for thing in things:
            bits |= self.bit(thing)
        return BitSet(self, bits)

    def union(self, sets: Iterable[BitSet[T]]) -> BitSet[T]:
        """All that is in any of some sets."""
        bits = 0
        for each in sets:
            bits |= each.bits
        return BitSet(self, bits)


class BitSet(Set[T]):
    """An immutable set of things of one numbering, iterated in the order of their numbers."""

    __slots__ = ("bits", "numbering")

    def __init__(self, numbering: Numbering[T], bits: int) -> None:
        self.numbering = numbering
        self.bits = bits

    def _of(self, other: Set[Any]) -> int:
        return other.bits if isinstance(other, BitSet) else self.numbering.set(other).bits

    def __contains__(self, thing: Any) -> bool:
        return bool(self.bits & self.numbering.bit(thing))

    def __iter__(self) -> Iterator[T]:
        things, bits = self.numbering.things, self.bits
        if bits.bit_count() < 8:  # writing all digits down is dearer than looking for a few
            while bits:
                lowest = bits & -bits
                yield things[lowest.bit_length() - 1]
                bits ^= lowest
            return
        digits = bin(bits)[:1:-1]
        at = digits.find("1")
        while at >= 0:
            yield things[at]
            at = digits.find("1", at + 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Set) and self.bits == self._of(other)

    def __hash__(self) -> int:
        return hash(self.bits)

    def __or__(self, other: Set[Any]) -> BitSet[T]:
        return BitSet(self.numbering, self.bits | self._of(other))

    def __and__(self, other: Set[Any]) -> BitSet[T]:
        return BitSet(self.numbering, self.bits & self._of(other))

    def __sub__(self, other: Set[Any]) -> BitSet[T]:
        return BitSet(self.numbering, self.bits & ~self._of(other))

    def __xor__(self, other: Set[Any]) -> BitSet[T]:
        return BitSet(self.numbering, self.bits ^ self._of(other))

    def __rsub__(self, other: Set[Any]) -> BitSet[T]:
        return BitSet(self.numbering, self._of(other) & ~self.bits)

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__

    def __le__(self, other: Set[Any]) -> bool:
        return not self.bits & ~self._of(other)

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Whether the sets have nothing in common."""
        if isinstance(other, BitSet):
            return not self.bits & other.bits
        return not self.bits & self.numbering.set(other).bits

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self)) + "}"


def closures(
    own: Sequence[BitSet[T]], following: Callable[[int], Iterable[int]]
) -> list[BitSet[T]]:
    """For each node of a graph, all that it and the nodes that can be reached from it own.

    Tarjan's algorithm: nodes that reach each other have one answer, found when all that lies
    beyond them has one. Not recursive, as the graphs are deep.
    """
    entered = [0] * len(own)  # when a node was met, from 1
    lowest = [0] * len(own)
    found: list[BitSet[T] | None] = [None] * len(own)
    waiting: list[int] = []
    count = 0
    for start in range(len(own)):
        if entered[start]:
            continue
        count += 1
        entered[start] = lowest[start] = count
        waiting.append(start)
        way = [(start, iter(following(start)))]
        while way:
            node, rest = way[-1]
            for other in rest:
                if not entered[other]:
                    count += 1
                    entered[other] = lowest[other] = count
                    waiting.append(other)
                    way.append((other, iter(following(other))))
                    break
                if found[other] is None and entered[other] < lowest[node]:
                    lowest[node] = entered[other]
            else:
                way.pop()
                if way and lowest[node] < lowest[way[-1][0]]:
                    lowest[way[-1][0]] = lowest[node]
                if lowest[node] == entered[node]:
                    _close(node, own, following, waiting, found)
    return [each for each in found if each is not None]


def _close(
    root: int,
    own: Sequence[BitSet[T]],
    following: Callable[[int], Iterable[int]],
    waiting: list[int],
    found: list[BitSet[T] | None],
) -> None:
    """Give one answer to the nodes from `root` on, which reach each other."""
    at = len(waiting) - 1
    while waiting[at] != root:
        at -= 1
    members = waiting[at:]
    del waiting[at:]
    bits = 0
    for node in members:
        bits |= own[node].bits
        for other in following(node):
            made = found[other]
            if made is not None:
                bits |= made.bits
    answer = BitSet(own[root].numbering, bits)
    for node in members:
        found[node] = answer
