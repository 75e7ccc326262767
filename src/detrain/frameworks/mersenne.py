"""The Mersenne Twister of Python's `random`, read and written in place.

`setstate` takes a tuple of 625 numbers, which is slow. Where they lie in memory is found out once
by asking: an object is looked at, changed, looked at again. On an interpreter that answers
otherwise, `setstate` is used.
"""

from __future__ import annotations

import _random
import ctypes
import random
import struct
from array import array
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WORDS", "Twister"]

WORDS = 312
"""64-bit words of a whole state."""

_SIZE = 4 + 8 * WORDS


class Twister:
    """A `random.Random` that can be put into a state of raw words, and back."""

    def __init__(self, generator: random.Random) -> None:
        self._generator: Any = generator
        offset = _offset()
        self._memory: memoryview | None = None
        if offset is not None:
            raw = (ctypes.c_ubyte * _SIZE).from_address(id(generator) + offset)
            self._memory = memory = memoryview(raw).cast("B")
            self._place, self._words = memory[:4], memory[4:]

    def put(self, words: memoryview) -> None:
        """Begin with those words: they are the first 624 numbers of 32 bits, tempered."""
        if self._memory is None:
            self._generator.setstate((3, (*array("I", bytes(words)), 0), None))
            return
        self._words[:] = words
        self._place[:] = b"\0\0\0\0"
        self._generator.gauss_next = None

    def state(self) -> Any:
        """Where it stands, for `set_state` of the same object."""
        if self._memory is None:
            return self._generator.getstate()
        return bytes(self._memory), self._generator.gauss_next

    def note_position(self) -> Callable[[], str]:
        """Note where it stands; gives that as text: the spare normal number, the words, the next
        word's place.
        """
        if self._memory is None:
            _, words, spare = self._generator.getstate()
            return lambda: f"{spare!r} {array('I', words).tobytes().hex()}"
        memory, spare = self.state()
        return lambda: f"{spare!r} {memory[4:].hex()}{memory[:4].hex()}"

    def set_state(self, state: Any) -> None:
        """Stand there again."""
        if self._memory is None:
            self._generator.setstate(state)
        else:
            self._memory[:], self._generator.gauss_next = state


@cache
def _offset() -> int | None:
    """Where index and words begin in an object; None if that can't be told for sure."""
    probe = random.Random(5)
    size = _random.Random.__basicsize__
    if size < _SIZE:
        return None

    def memory() -> bytes:
        return ctypes.string_at(id(probe), size)

    def expected() -> bytes:
        *words, index = probe.getstate()[1]
        return struct.pack("=i624I", index, *words)

    offset = memory().find(expected())
    if offset < 0 or memory().find(expected(), offset + 1) >= 0:
        return None
    for _ in range(3):
        probe.random()
        if memory()[offset : offset + _SIZE] != expected():
            return None
    return offset
