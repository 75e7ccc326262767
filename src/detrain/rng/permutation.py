"""A shuffled order that is computed, not stored.

A Feistel network over pairs of digits, walked until it falls below the length: a bijection for any
key, in constant memory, with both directions at the same cost.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import xxhash

from detrain.rng.philox import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detrain.rng.address import Address

__all__ = ["Permutation"]

_ROUNDS = 12
_DIGIT = struct.Struct("<Q")


class Permutation:
    """The numbers below `length` in an order that the address decides."""

    def __init__(self, length: int, address: Address) -> None:
        if not 0 <= length < 1 << 126:
            raise ValueError(f"a permutation has a length from 0 to 2^126 - 1, not {length}")
        self._length = length
        # One more than the square root: a network that fills its domain exactly could only make
        # even permutations.
        self._base = math.isqrt(max(length - 1, 0)) + 2
        self._keys = struct.unpack(f"={_ROUNDS}Q", fill(address, 0, _ROUNDS))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> int:
        """What is at a place."""
        base, found = self._base, self._within(place)
        while True:
            left, right = divmod(found, base)
            for key in self._keys:
                left, right = right, (left + self._mix(right, key)) % base
            found = left * base + right
            if found < self._length:
                return found

    def place_of(self, item: int) -> int:
        """Where an item is."""
        base, found = self._base, self._within(item)
        while True:
            left, right = divmod(found, base)
            for key in reversed(self._keys):
                left, right = (right - self._mix(left, key)) % base, left
            found = left * base + right
            if found < self._length:
                return found

    def __iter__(self) -> Iterator[int]:
        return map(self.__getitem__, range(self._length))

    def _within(self, number: int) -> int:
        if not 0 <= number < self._length:
            raise IndexError(f"{number} is not below {self._length}")
        return number

    @staticmethod
    def _mix(digit: int, key: int) -> int:
        return xxhash.xxh3_64_intdigest(_DIGIT.pack(digit), key)
