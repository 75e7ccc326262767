"""Python's own random numbers, as an adapter like any other."""

from __future__ import annotations

import functools
import os
import platform
import random
import sys
import threading
from array import array
from typing import TYPE_CHECKING, Any

from detrain.frameworks.bare import Bare
from detrain.frameworks.base import ArrayView
from detrain.frameworks.mersenne import WORDS, Twister
from detrain.rng import HELD, entropy, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.frameworks.base import Follower
    from detrain.rng import Address, Fill
    from detrain.state import ArrayFacts

__all__ = ["ADAPTER"]


class Stdlib(Bare):
    """Answers for the `random` module and the interpreter."""

    name = "python"

    def __init__(self) -> None:
        # Asked for the seed of a generator that is made without one.
        self.followed: Callable[[], int | None] | None = None

    def prepare(self) -> None:
        """Let a generator that is made unseeded while an address is followed ask the address."""
        if vars(random.Random)["seed"] is _PLAIN_SEED:
            random.Random.seed = _seed  # type: ignore[method-assign, assignment]

    def release(self) -> None:
        """Let all ask the system again."""
        if vars(random.Random)["seed"] is _seed:
            random.Random.seed = _PLAIN_SEED  # type: ignore[method-assign]

    def fingerprint(self) -> dict[str, str]:
        """The interpreter and the machine."""
        return {
            "hash seed": os.environ.get("PYTHONHASHSEED", "random"),
            "python": platform.python_version(),
            "implementation": sys.implementation.name,
            "machine": platform.machine(),
            "system": platform.system(),
        }

    def seeders(self) -> list[tuple[Any, str]]:
        """`random.seed`."""
        return [(random, "seed")]

    def seed(self, seed: int) -> None:
        """Seed `random`."""
        random.seed(seed)

    def note_positions(self) -> Callable[[], dict[str, str]]:
        """The Mersenne Twister's words and the spare normal number."""
        note = _global_twister().note_position()
        return lambda: {"global": f"{random.Random.VERSION} {note()}"}

    def stand(self) -> bytes:
        """The words as they lie in memory, and the spare normal number."""
        words, spare = _global_twister().state()[:2]
        return (words if isinstance(words, bytes) else repr(words).encode()) + repr(spare).encode()

    def reposition(self, positions: Mapping[str, str]) -> None:
        """Put `random` back."""
        version, spare, words = positions["global"].split(" ")
        state = tuple(array("I", bytes.fromhex(words)))
        random.setstate((int(version), state, None if spare == "None" else float(spare)))

    def follower(self) -> Follower:
        """For the functions of `random`, and `random.Random()` without a seed."""
        return _RandomFollower(self)

    def is_generator(self, obj: Any) -> bool:
        """A `random.Random`; one that draws from the system has no state."""
        return isinstance(obj, random.Random) and not isinstance(obj, random.SystemRandom)

    def generator_at(self, address: Address) -> Any:
        """A `random.Random`."""
        made = random.Random(0)
        self.rekey(made, address, fill)
        return made

    def rekey(self, obj: Any, address: Address, fill: Fill) -> None:
        """Put a `random.Random` to the first number of an address."""
        Twister(obj).put(memoryview(fill(address, HELD, WORDS)).cast("B"))

    def generator_state(self, obj: Any) -> Any:
        """The state of a `random.Random`; one that draws from the system has none."""
        return obj.getstate() if self.is_generator(obj) else None

    def set_generator_state(self, obj: Any, state: Any) -> None:
        """Put a `random.Random` back."""
        obj.setstate(state)

    def new_generator(self, kind: type[Any]) -> Any:
        """A `random.Random`; a subclass is made without its constructor."""
        if not issubclass(kind, random.Random):
            raise TypeError(f"{kind} is no random.Random")
        make: Any = random.Random.__new__
        return make(kind)

    def encode_value(self, obj: Any) -> str | None:
        """No values of its own: `capture.forms` knows the standard library's."""
        return None

    def decode_value(self, kind: str, text: str) -> Any:
        """Never called, as `encode_value` claims nothing."""
        raise ValueError(f"{kind} is not a value of Python's standard library")

    def view(self, obj: Any) -> ArrayView | None:
        """The `array.array` and `bytearray` types."""
        if type(obj) is bytearray:
            return ArrayView("B", (len(obj),), len(obj), id(obj), len(obj))
        if type(obj) is array and obj.typecode not in "uw":
            size = len(obj) * obj.itemsize
            return ArrayView(obj.typecode, (len(obj),), size, id(obj), size)
        return None

    def copy_out(self, obj: Any, into: memoryview) -> None:
        """Copy the items as they lie in memory."""
        into[:] = memoryview(obj).cast("B")

    def address(self, obj: Any) -> int | None:
        """They can be resized at any time: a copy is taken."""
        return None

    def fill(self, obj: Any, facts: ArrayFacts, data: memoryview) -> None:
        """Replace the items."""
        obj[:] = bytes(data) if isinstance(obj, bytearray) else array(facts.dtype, bytes(data))

    def create(
        self, kind: type[Any], facts: ArrayFacts, data: memoryview, shared: Any | None
    ) -> Any:
        """A new array with those items."""
        return bytearray(data) if kind is bytearray else array(facts.dtype, bytes(data))


class _RandomFollower:
    """The functions of `random`. `Random()` asks the address for its seed instead of the system."""

    name = "python"

    def __init__(self, owner: Stdlib) -> None:
        self._owner = owner
        self._twister = Twister(_GLOBAL)
        self._before: Any = None
        self._address: Address | None = None
        self.asked = 0
        self._thread = 0

    def begin(self) -> None:
        self._owner.prepare()
        self._before = self._twister.state(), self._owner.followed
        self._thread = threading.get_ident()
        self._owner.followed = self._entropy

    def follow(self, address: Address, words: memoryview) -> None:
        self._address, self.asked = address, 0
        self._twister.put(words)

    def end(self) -> None:
        state, self._owner.followed = self._before
        self._twister.set_state(state)

    def _entropy(self) -> int | None:
        # The threads of queues make generators too, for the names of files.
        if self._address is None or threading.get_ident() != self._thread:
            return None
        self.asked += 1
        return entropy(self._address, 0, self.asked, 256)


_GLOBAL: random.Random = vars(random)["_inst"]


@functools.cache
def _global_twister() -> Twister:
    return Twister(_GLOBAL)


_PLAIN_SEED = random.Random.seed

ADAPTER = Stdlib()


@functools.wraps(_PLAIN_SEED)
def _seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
    if a is None and ADAPTER.followed is not None:
        a = ADAPTER.followed()
    _PLAIN_SEED(generator, a, version)
