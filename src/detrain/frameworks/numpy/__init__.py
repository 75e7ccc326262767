"""numpy: its arrays, scalars, dtypes and generators."""

from __future__ import annotations

import ast
import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import bit_generator

from detrain.frameworks.bare import Bare
from detrain.frameworks.base import ArrayView
from detrain.frameworks.numpy.keyed import (
    NumpyFollower,
    generator_at,
    note_position,
    numpy_fill,
    rekey,
    stand,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.frameworks.base import Follower
    from detrain.rng import Address, Fill
    from detrain.state import ArrayFacts

__all__ = ["ADAPTER"]

_GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState)


_FOR_FILES = frozenset(
    {"load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile",
     "fromregex", "memmap", "test", "show_config", "get_include"}
)  # fmt: skip


class Numpy(Bare):
    """Answers for numpy."""

    name = "numpy"

    def __init__(self) -> None:
        self._entropy_seed, self._entropy_count = 0, 0
        self._plain_entropy: Any = None
        self.followed: Callable[[int], int | None] | None = None

    @property
    def fast_words(self) -> Fill:
        """By numpy's own Philox and SFC64."""
        return numpy_fill()

    def prepare(self) -> None:
        """Let generators that the program does not seed take their seed from the run's."""
        if self._plain_entropy is None and hasattr(bit_generator, "randbits"):
            self._plain_entropy = bit_generator.randbits
            vars(bit_generator)["randbits"] = self._entropy

    def release(self) -> None:
        """Give unseeded generators the system's entropy again."""
        if self._plain_entropy is not None:
            vars(bit_generator)["randbits"] = self._plain_entropy
            self._plain_entropy = None

    def _entropy(self, bits: int) -> int:
        """What numpy asks the system for in `default_rng()` and the like."""
        if self.followed is not None and (answer := self.followed(bits)) is not None:
            return answer
        self._entropy_count += 1
        text = f"{self._entropy_seed} {self._entropy_count}".encode()
        return int.from_bytes(hashlib.blake2b(text).digest(), "little") % (1 << bits)

    def fingerprint(self) -> dict[str, str]:
        """The version decides the streams of `Generator`."""
        return {"numpy": np.__version__}

    def seeders(self) -> list[tuple[Any, str]]:
        """`numpy.random.seed`."""
        return [(np.random, "seed")]

    def seed(self, seed: int) -> None:
        """Seed the legacy global generator; it takes 32 bits, so a longer seed is hashed."""
        small = 0 <= seed < 1 << 32
        digest = hashlib.blake2b(str(seed).encode(), digest_size=4).digest()
        np.random.seed(seed if small else int.from_bytes(digest, "little"))
        self._entropy_seed, self._entropy_count = seed, 0

    def note_positions(self) -> Callable[[], dict[str, str]]:
        """The legacy global generator's state, and how many seeds were given out."""
        note, seeds = note_position(), f"{self._entropy_seed} {self._entropy_count}"
        return lambda: {"global": note(), "seeds": seeds}

    def stand(self) -> bytes:
        """The legacy global generator's; not how many seeds were given out, as none sets that."""
        return stand()

    def reposition(self, positions: Mapping[str, str]) -> None:
        """Put the legacy global generator back."""
        name, pos, has_gauss, gauss, words = positions["global"].split(" ")
        key = np.frombuffer(bytes.fromhex(words), "<u4")
        _check_places({"state": {"pos": int(pos)}, "has_gauss": int(has_gauss)})
        np.random.set_state((name, key, int(pos), int(has_gauss), float(gauss)))
        seed, count = positions.get("seeds", "0 0").split(" ")
        self._entropy_seed, self._entropy_count = int(seed), int(count)

    def follower(self) -> Follower:
        """For the functions of `numpy.random`, and generators that are made without a seed."""
        return NumpyFollower(self)

    def is_generator(self, obj: Any) -> bool:
        """A `Generator`, a bit generator or a legacy `RandomState`."""
        return isinstance(obj, _GENERATORS)

    def generator_at(self, address: Address) -> Any:
        """A `Generator` that is driven by Philox itself."""
        return generator_at(address)

    def rekey(self, obj: Any, address: Address, fill: Fill) -> None:
        """Put a generator object to the first number of an address."""
        rekey(obj, address, fill)

    def generator_state(self, obj: Any) -> Any:
        """The state of a `Generator`, a bit generator or a legacy `RandomState`."""
        if isinstance(obj, np.random.Generator):
            return obj.bit_generator.state
        if isinstance(obj, np.random.BitGenerator):
            return obj.state
        if isinstance(obj, np.random.RandomState):
            return obj.get_state(legacy=False)
        return None

    def set_generator_state(self, obj: Any, state: Any) -> None:
        """Put a generator object back."""
        _check_places(state)
        if isinstance(obj, np.random.Generator):
            obj.bit_generator.state = state
        elif isinstance(obj, np.random.BitGenerator):
            obj.state = state
        else:
            obj.set_state(state)

    def new_generator(self, kind: type[Any]) -> Any:
        """A generator; what drives a `Generator` is numpy's default, as in `default_rng()`."""
        drawing: Any = (np.random.Generator, np.random.BitGenerator, np.random.RandomState)
        if not issubclass(kind, drawing):
            raise TypeError(f"{kind} is no generator of numpy's")
        return np.random.default_rng(0) if kind is np.random.Generator else kind(0)

    def computes(self, obj: Any) -> bool:
        """The classes of scalars, and all functions but those for files."""
        if isinstance(obj, type):
            return issubclass(obj, np.generic)
        name = getattr(obj, "__name__", "")
        return name not in _FOR_FILES and getattr(np, name, None) is obj

    def encode_value(self, obj: Any) -> str | None:
        """dtypes, and the scalars that indexing and reductions give."""
        if isinstance(obj, np.dtype) and not obj.hasobject and obj.names is None:
            return str(obj.str)
        if isinstance(obj, np.generic) and not obj.dtype.hasobject and obj.dtype.names is None:
            return f"{obj.dtype.str} {obj.tobytes().hex()}"
        return None

    def decode_value(self, kind: str, text: str) -> Any:
        """Read what `encode_value` wrote."""
        if " " not in text:
            return np.dtype(text)
        dtype, data = text.split(" ")
        return np.frombuffer(bytes.fromhex(data), np.dtype(dtype))[0]

    def decompose(self, obj: Any) -> dict[str, Any] | None:
        """Arrays of Python objects: their elements."""
        if type(obj) is np.ndarray and obj.dtype == object:
            return {"shape": obj.shape, "elements": list(obj.reshape(-1))}
        return None

    def compose(self, parts: Mapping[str, Any], live: Any | None) -> Any:
        """An array of Python objects; the live one, if it has the shape."""
        if len(parts["elements"]) != math.prod(parts["shape"]):
            raise ValueError(f"{len(parts['elements'])} elements of shape {parts['shape']}")
        array = np.empty(parts["shape"], object) if live is None else live
        if array.shape != parts["shape"]:
            array.resize(parts["shape"], refcheck=False)
        for number, element in enumerate(parts["elements"]):
            array.flat[number] = element
        return array

    def view(self, obj: Any) -> ArrayView | None:
        """Arrays of numbers, and of fixed-length text."""
        if not isinstance(obj, np.ndarray):
            return None
        if type(obj) is not np.ndarray:
            raise ValueError(f"its class is a {type(obj).__name__}, whose content lies elsewhere")
        if obj.dtype.hasobject:
            raise ValueError("its elements are Python objects")
        base = obj
        while isinstance(base.base, np.ndarray):
            base = base.base
        start = base.__array_interface__["data"][0]
        return ArrayView(
            dtype=str(obj.dtype.str if obj.dtype.names is None else obj.dtype.descr),
            shape=obj.shape,
            nbytes=obj.nbytes,
            memory=start if base.nbytes else id(base),
            memory_bytes=base.nbytes,
            offset=obj.__array_interface__["data"][0] - start,
            strides=None if obj.flags.c_contiguous else obj.strides,
        )

    def copy_out(self, obj: Any, into: memoryview) -> None:
        """Copy in C order."""
        np.frombuffer(into, np.uint8)[:] = np.ascontiguousarray(obj).reshape(-1).view(np.uint8)

    def address(self, obj: Any) -> int | None:
        """Where the elements begin, if they follow each other."""
        if not obj.flags.c_contiguous:
            return None
        return int(obj.__array_interface__["data"][0])

    def fill(self, obj: Any, facts: ArrayFacts, data: memoryview) -> None:
        """Write the elements in place."""
        source = np.frombuffer(data, obj.dtype).reshape(facts.shape)
        if obj.shape != facts.shape:
            obj.resize(facts.shape, refcheck=False)
        if obj.flags.writeable:
            obj[...] = source
        elif obj.tobytes() != source.tobytes():
            raise ValueError("the array is read-only and its content differs")

    def create(
        self, kind: type[Any], facts: ArrayFacts, data: memoryview, shared: Any | None
    ) -> Any:
        """A new array, or a view of the memory that another one looks into, to be filled."""
        dtype = np.dtype(ast.literal_eval(facts.dtype) if facts.dtype[0] == "[" else facts.dtype)
        source = np.frombuffer(data, dtype).reshape(facts.shape)
        if shared is None and facts.strides is None:
            return np.empty_like(source)
        if shared is None and not facts.storage_bytes:
            return _like(source, facts)
        memory = np.empty(facts.storage_bytes, np.uint8) if shared is None else shared
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        flat = memory.reshape(-1).view(np.uint8)
        return np.ndarray(facts.shape, dtype, flat, facts.offset, facts.strides)


_PLACES = {"pos": 624, "buffer_pos": 4, "has_gauss": 1, "has_uint32": 1}
"""How far a generator can be in what it has drawn ahead. numpy reads there without looking."""


def _check_places(state: Any) -> None:
    """`ValueError` if a generator's state points outside of the generator."""
    parts = [state, state.get("state")] if isinstance(state, dict) else []
    for part in parts:
        for name, most in _PLACES.items():
            found = part.get(name, 0) if isinstance(part, dict) else 0
            if not 0 <= int(found) <= most:
                raise ValueError(f"a generator's {name} is {found}, expected 0 to {most}")


def _like(source: Any, facts: ArrayFacts) -> Any:
    """A copy in memory of its own, laid out by the captured strides: they can decide bits."""
    strides = facts.strides or ()
    extents = [(size - 1) * step for size, step in zip(facts.shape, strides, strict=True)]
    start = -sum(extent for extent in extents if extent < 0)
    span = sum(map(abs, extents)) + source.itemsize
    memory = np.zeros(span if source.size else 0, np.uint8)
    made = np.ndarray(facts.shape, source.dtype, memory, start if source.size else 0, strides)
    made[...] = source
    return made


ADAPTER = Numpy()
