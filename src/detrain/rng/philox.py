"""What the numbers of an address are, in plain Python, for where numpy is not.

Philox4x64-10 gives a block of four words for each lane of an address: its counter is (lane, draw,
sample, epoch), its key (seed, stream). As in numpy, the first block is that of the counter after
the one given. It is a bijection, so that no two lanes of a key begin with the same block. From
there on SFC64 goes: its whole state is the block. To fill the states of Mersenne Twisters, which
are thousands of bits long, it takes half of the time. numpy has both, about a hundred times faster;
they are compared by a test.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
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
    counter = ((lane << LANE) + 1, address.draw, address.sample, address.epoch)
    block = philox(counter, (address.seed, address.stream))
    return struct.pack(f"={count}Q", *itertools.islice(_sfc64(*block), count))


def _sfc64(a: int, b: int, c: int, counter: int) -> Iterator[int]:
    """Words without end."""
    while True:
        word = a + b + counter & _MASK
        counter = counter + 1 & _MASK
        a = b ^ b >> 11
        b = c + (c << 3) & _MASK
        c = ((c << 24 | c >> 40) + word) & _MASK
        yield word


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
