"""Random numbers that are a pure function of what they are for.

- An `Address` is five words of 64 bits: seed, stream, epoch, sample, draw. All bits of all of them
  count: they are the key and the upper counter words of Philox4x64, with nothing hashed or cut off,
  so that two addresses never share a block of numbers.
- Below an address there are 2^16 *lanes* of 2^48 blocks, for the generators that serve it. The
  first block of a lane is the state of an SFC64, which gives the lane's words.
- A `Permutation` of any length is a function as well: no list is held.

No framework is imported here; numpy makes the same numbers faster (`frameworks/numpy`).
"""

from detrain.rng.address import ENTROPY, GENERATORS, HELD, Address, address_of
from detrain.rng.permutation import Permutation
from detrain.rng.philox import LANE, Fill, entropy, fill, philox

__all__ = [
    "ENTROPY",
    "GENERATORS",
    "HELD",
    "LANE",
    "Address",
    "Fill",
    "Permutation",
    "address_of",
    "entropy",
    "fill",
    "philox",
]
