"""Philox4x64-10 in plain Python: what the numbers of an address are, for where numpy is not.

The counter is (block, draw, sample, epoch), the key (seed, stream). As in numpy, the first block is
that of the counter after the one given. numpy's own is about a hundred times faster; the two are
compared by a test.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from detrain.rng.address import ENTROPY

if TYPE_CHECKING:
    from detrain.rng.address import Address

__all__ = ["LANE", "Fill", "entropy", "fill", "philox"]

Fill = Callable[["Address", int, int], Any]
"""Gives so many 64-bit words of a lane of an address, as a buffer in the machine's byte order."""

LANE = 48
"""A lane has 2^48 blocks of four words."""

_MASK = (1 << 64) - 1
_MULTIPLY = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_BUMP = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """One block: four words."""
    a, b, c, d = counter
    left, right = key
    for _ in range(10):
        first, second = a * _MULTIPLY[0], c * _MULTIPLY[1]
        a, b = second >> 64 ^ b ^ left, second & _MASK
        c, d = first >> 64 ^ d ^ right, first & _MASK
        left, right = left + _BUMP[0] & _MASK, right + _BUMP[1] & _MASK
    return a, b, c, d


def fill(address: Address, lane: int, count: int) -> bytes:
    """The first `count` words of a lane."""
    words = (address.seed, address.stream, address.epoch, address.sample, address.draw)
    if not all(0 <= word <= _MASK for word in words):
        raise ValueError(f"a word of {address} is not a whole number from 0 to 2^64 - 1")
    start, key = (lane << LANE) + 1, (address.seed, address.stream)
    found: list[int] = []
    for block in range(start, start + -(-count // 4)):
        found += philox((block, address.draw, address.sample, address.epoch), key)
    return struct.pack(f"={count}Q", *found[:count])


def entropy(address: Address, asker: int, asked: int, bits: int) -> int:
    """What the system would be asked for; `asked` counts an asker's questions at one address."""
    words = -(-bits // 64)
    # An answer has room for 2^16 bits, an asker for 2^32 questions.
    start = (ENTROPY << LANE) + (asker << 40) + (asked << 8) + 1
    key = (address.seed, address.stream)
    number = 0
    for block in range(-(-words // 4)):
        counter = (start + block, address.draw, address.sample, address.epoch)
        for place, word in enumerate(philox(counter, key)):
            number |= word << 64 * (4 * block + place)
    return number & (1 << bits) - 1
