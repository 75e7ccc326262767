"""numpy's generators at the first number of an address.

The counter of a Philox and the words of a Mersenne Twister are written where they lie in memory,
which numpy gives the address of; what was written is checked once against numpy's own account.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from detrain import rng
from detrain.frameworks.find import memory_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from detrain.rng import Address, Fill

__all__ = ["NumpyFollower", "generator_at", "note_position", "numpy_fill", "rekey", "stand"]

_WORDS = 312
_LOCAL = threading.local()
_random: Any = np.random
_NO_SPARE = bytes(8)
_POSITION, _BLOCK = 16, 24
"""Where Philox keeps its position in the words that it has made, and these."""
_BEGINNING = struct.Struct("=i44x2Q4Q")
"""From the position on: none of the words is left, nor of a half one, and then key and counter."""


def numpy_fill() -> Fill:
    """What gives the words of an address in the calling thread, the same ones as `rng.fill`."""
    if not hasattr(_LOCAL, "fill"):
        _LOCAL.fill = _new_fill()
    fill: Fill = _LOCAL.fill
    return fill


def _new_fill() -> Fill:
    philox, sfc = np.random.Philox(0), np.random.SFC64(0)
    base, words_at = philox.ctypes.state_address, sfc.ctypes.state_address
    if not (_is_philox(philox, base) and _is_sfc(sfc, words_at)):
        return _slow_fill
    beginning = memory_at(base + _POSITION, _BEGINNING.size)
    block, words = memory_at(base + _BLOCK, 32), memory_at(words_at, 32)
    put, shift, first, raw = _BEGINNING.pack_into, rng.LANE, philox.random_raw, sfc.random_raw

    def fill(address: Address, lane: int, count: int) -> Any:
        seed, stream, draw = address.seed, address.stream, address.draw
        put(beginning, 0, 4, seed, stream, lane << shift, draw, address.sample, address.epoch)
        first()  # makes the block
        words[:] = block
        return raw(count)

    return fill


def _is_philox(generator: Any, base: int) -> bool:
    """Whether all lies where it seems to: within the object, and by numpy's account."""
    start, end = id(generator), id(generator) + type(generator).__basicsize__
    if not start < base < base + _POSITION + _BEGINNING.size <= end:
        return False
    generator.state = _philox_state(rng.Address(11, 12, 13, 14, 15), 16)
    words = 11, 12, 16 << rng.LANE, 15, 14, 13
    if ctypes.string_at(base + _POSITION, _BEGINNING.size) != _BEGINNING.pack(4, *words):
        return False
    generator.random_raw()
    return bool(ctypes.string_at(base + _BLOCK, 32) == generator.state["buffer"].tobytes())


def _is_sfc(generator: Any, words_at: int) -> bool:
    """Likewise."""
    start, size = id(generator), type(generator).__basicsize__
    generator.random_raw()
    found = generator.state["state"]["state"].tobytes()
    return bool(start < words_at < start + size and ctypes.string_at(words_at, 32) == found)


def _philox_state(address: Address, lane: int) -> dict[str, Any]:
    counter = [lane << rng.LANE, address.draw, address.sample, address.epoch]
    words = {"counter": np.array(counter, np.uint64), "key": np.array(
        [address.seed, address.stream], np.uint64)}  # fmt: skip
    return {
        "bit_generator": "Philox", "state": words, "buffer": np.zeros(4, np.uint64),
        "buffer_pos": 4, "has_uint32": 0, "uinteger": 0,
    }  # fmt: skip


def _slow_fill(address: Address, lane: int, count: int) -> Any:
    philox: Any = np.random.Philox(0)
    philox.state = _philox_state(address, lane)
    sfc: Any = np.random.SFC64(0)
    words = {"state": philox.random_raw(4)}
    sfc.state = {"bit_generator": "SFC64", "state": words, "has_uint32": 0, "uinteger": 0}
    return sfc.random_raw(count)


def generator_at(address: Address) -> Any:
    """A generator whose numbers are the blocks of the lane of objects' own generators."""
    driver: Any = np.random.Philox(0)
    driver.state = _philox_state(address, rng.HELD)
    return np.random.Generator(driver)


class _Owner(Protocol):
    """Who is asked for seeds of generators that are made without one."""

    followed: Callable[[int], int | None] | None

    def prepare(self) -> None: ...


class NumpyFollower:
    """The functions of `numpy.random`: their Mersenne Twister is given words, and put back.

    If another generator drives them, a Mersenne Twister stands in its place meanwhile, so that a
    program may go on to seed it.
    """

    name = "numpy"

    def __init__(self, owner: _Owner) -> None:
        self._owner = owner
        self._seen: Any = None
        self._driver: Any = None
        self._put: Any = None
        self._memory: memoryview | None = None
        self._spare = _spare_memory()
        self._before: Any = None
        self._address: Address | None = None
        self.asked = 0
        self._thread = 0

    def begin(self) -> None:
        """Remember who stands behind the functions, where, and the spare normal number."""
        self._owner.prepare()
        plain, state = _random.get_bit_generator(), None
        spare = None if self._spare is not None and not any(self._spare) else _spare()
        if plain is not self._seen:
            self._take(plain)
        if plain is self._driver and self._memory is not None:
            state = bytes(self._memory)
        else:
            _random.set_bit_generator(self._driver)
        self._before = plain, state, spare, self._owner.followed
        self._thread = threading.get_ident()
        self._owner.followed = self._entropy

    def _take(self, plain: Any) -> None:
        """Follow with what stands there, if all of it can be put back, or with another."""
        in_place = self._spare is not None and type(plain) is np.random.MT19937 and _is_twister()
        self._seen, self._driver = plain, plain if in_place else np.random.MT19937(0)
        self._put = _twister_put(self._driver)
        self._memory = _twister_memory(plain) if in_place else None

    def follow(self, address: Address, words: memoryview) -> None:
        """Begin anew."""
        self._address, self.asked = address, 0
        self._put(words)
        if self._spare is None:
            # This is also what forgets a spare normal number.
            _random.set_bit_generator(self._driver)
        else:
            self._spare[:] = _NO_SPARE

    def end(self) -> None:
        """Put back what stood there."""
        plain, state, spare, self._owner.followed = self._before
        if _random.get_bit_generator() is not plain:
            _random.set_bit_generator(plain)
        if state is not None and self._memory is not None:
            self._memory[:] = state
        if self._spare is not None:
            self._spare[:] = _NO_SPARE
        if spare is not None:
            np.random.set_state({**np.random.get_state(legacy=False), **spare})

    def _entropy(self, bits: int) -> int | None:
        if self._address is None or threading.get_ident() != self._thread:
            return None
        self.asked += 1
        return rng.entropy(self._address, 1, self.asked, bits)


def stand() -> bytes:
    """Where `numpy.random` stands."""
    driver: Any = _random.get_bit_generator()
    if type(driver) is not np.random.MT19937 or not _is_twister():
        return repr(np.random.get_state(legacy=False)).encode()
    return bytes(_twister_memory(driver)) + repr(_spare()).encode()


def note_position() -> Callable[[], str]:
    """Note where `numpy.random` stands; gives that as text: what its `set_state` takes."""
    driver: Any = _random.get_bit_generator()
    plainly = sys.byteorder == "little" and type(driver) is np.random.MT19937 and _is_twister()
    if plainly and _spare() is None:
        memory = bytes(_memory_of_global(driver))
        return lambda: _as_text(memory)
    name, key, at, has_gauss, gauss = np.random.get_state(legacy=True)
    words = np.asarray(key).astype("<u4").tobytes()
    return lambda: f"{name} {at} {has_gauss} {float(gauss)!r} {words.hex()}"


def _as_text(memory: bytes) -> str:
    """A Mersenne Twister without a spare normal number."""
    (at,) = struct.unpack("=i", memory[8 * _WORDS :])
    return f"MT19937 {at} 0 0.0 {memory[: 8 * _WORDS].hex()}"


def _spare() -> dict[str, Any] | None:
    """The spare normal number of `numpy.random`, which is lost when the generator is swapped."""
    memory = _spare_memory()
    if memory is not None and memory == _NO_SPARE:
        return None
    state: Any = np.random.get_state(legacy=False)
    return {name: state[name] for name in ("has_gauss", "gauss")} if state["has_gauss"] else None


@cache
def _spare_memory() -> memoryview | None:
    """Where `numpy.random` keeps whether it has a spare number."""
    offset, singleton = _spare_offset(), _random.get_state.__self__
    if offset is None:
        return None
    return memory_at(id(singleton) + offset, 8)


@cache
def _spare_offset() -> int | None:
    """Where an object says whether it has a spare number, as asking for its state is slow."""
    # `RandomState(5)` would first ask for a seed that it does not use.
    probe = np.random.RandomState(np.random.MT19937(5))
    size = type(probe).__basicsize__

    def memory() -> bytes:
        return ctypes.string_at(id(probe), size)

    without = memory()
    probe.standard_normal()
    state: Any = probe.get_state(legacy=False)
    offset = memory().find(struct.pack("=qd", 1, state["gauss"]))
    if offset < 0 or without[offset : offset + 16] != bytes(16):
        return None
    probe.standard_normal()
    return offset if memory()[offset : offset + 8] == bytes(8) else None


def _twister_put(generator: Any) -> Callable[[memoryview], None]:
    """A function that gives a Mersenne Twister its words, to be given out from the first."""
    if not _is_twister():

        def put_slowly(words: memoryview) -> None:
            state = {"key": np.frombuffer(words, np.uint32).copy(), "pos": 0}
            generator.state = {"bit_generator": "MT19937", "state": state}

        return put_slowly
    memory = _twister_memory(generator)
    key, position = memory[: 8 * _WORDS], memory[8 * _WORDS :]

    def put(words: memoryview) -> None:
        key[:] = words
        position[:] = b"\0\0\0\0"

    return put


def _twister_memory(generator: Any) -> memoryview:
    """The words of a Mersenne Twister, and its position."""
    return memory_at(generator.ctypes.state_address, 8 * _WORDS + 4)


@lru_cache(maxsize=1)
def _memory_of_global(driver: Any) -> memoryview:
    """The same, of the one that drives `numpy.random`: hardly ever another than last time."""
    return _twister_memory(driver)


@cache
def _is_twister() -> bool:
    """Whether words and position lie where they seem to."""
    probe = np.random.MT19937(5)
    probe.random_raw(3)
    found: Any = probe.state["state"]
    expected: bytes = found["key"].tobytes() + struct.pack("=i", found["pos"])
    return ctypes.string_at(probe.ctypes.state_address, len(expected)) == expected


def rekey(obj: Any, address: Address, fill: Fill) -> None:
    """Put a generator object, whatever drives it, to the first number of an address."""
    if isinstance(obj, np.random.RandomState):
        driver = obj._bit_generator
        if isinstance(driver, np.random.MT19937):
            words = np.frombuffer(fill(address, rng.HELD, _WORDS), np.uint32)
            obj.set_state(("MT19937", words, 0, 0, 0.0))
            return
        obj.set_state({**obj.get_state(legacy=False), "has_gauss": 0, "gauss": 0.0})
    else:
        driver = obj.bit_generator if isinstance(obj, np.random.Generator) else obj
    if type(driver) in (np.random.PCG64, np.random.PCG64DXSM):
        a, b, c, d = struct.unpack("=4Q", fill(address, rng.HELD, 4))
        state = {"state": a | b << 64, "inc": c | d << 64 | 1}
        driver.state = {
            "bit_generator": type(driver).__name__, "state": state, "has_uint32": 0, "uinteger": 0,
        }  # fmt: skip
    else:
        seeds = np.random.SeedSequence(struct.unpack("=4Q", fill(address, rng.HELD, 4)))
        driver.state = type(driver)(seeds).state
