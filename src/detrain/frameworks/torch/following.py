"""Torch's generators at the first number of an address.

The state of the CPU's generator is that of a Mersenne Twister: 24 bytes (seed, numbers left until
the words are mixed anew, whether it was seeded, next word), 624 words of which the lower half
counts, and normal numbers to spare. Our words are its words.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import torch

from detrain.rng import HELD

if TYPE_CHECKING:
    from detrain.rng import Address, Fill

__all__ = ["TorchFollower", "rekey"]

_WORDS = 312
_HEAD = struct.Struct("=QiiQ")
_HALF = 8 * _WORDS


class _State:
    """A state of the CPU's generator, in memory that can be written."""

    def __init__(self) -> None:
        plain = torch.Generator().get_state()
        raw = bytearray(plain.numel())
        self.tensor = torch.frombuffer(raw, dtype=torch.uint8)
        memory = memoryview(raw)
        self._head = memory[: _HEAD.size]
        _HEAD.pack_into(self._head, 0, 0, 624, 1, 0)
        self._seed = memory[:8]
        # The lower halves of the first 312 words are those of our words; shifted by four bytes,
        # their upper halves are the lower ones of the rest.
        start = _HEAD.size
        self._first = memory[start : start + _HALF]
        self._word = memory[start : start + 8]
        self._rest = memory[start + _HALF - 4 : start + 2 * _HALF - 4]

    def put(self, words: memoryview) -> torch.Tensor:
        """The state that gives out these words, tempered."""
        self._first[:] = words
        self._rest[:] = words
        # Its seed, which programs ask for, is its first word.
        self._seed[:] = self._word
        return self.tensor


class TorchFollower:
    """The default generator of the CPU."""

    name = "torch"
    asked = 0

    def __init__(self) -> None:
        self._state = _State()
        self._generator = torch.default_generator
        self._before: Any = None

    def begin(self) -> None:
        """Remember where it stands."""
        self._before = self._generator.get_state()

    def follow(self, address: Address, words: memoryview) -> None:
        """Begin anew."""
        self._generator.set_state(self._state.put(words))

    def end(self) -> None:
        """Put it back."""
        self._generator.set_state(self._before)


def rekey(generator: torch.Generator, address: Address, fill: Fill) -> None:
    """Put a generator object to the first number of an address."""
    words = memoryview(fill(address, HELD, _WORDS)).cast("B")
    if generator.device.type == "cpu":
        generator.set_state(_State().put(words))
    else:
        generator.manual_seed(int.from_bytes(words[:8], "little"))
