"""Python's own random numbers, as an adapter like any other."""

from __future__ import annotations

import os
import platform
import random
import sys
from array import array
from typing import TYPE_CHECKING, Any

from detrain.frameworks.bare import Bare
from detrain.frameworks.base import ArrayView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from detrain.state import ArrayFacts

__all__ = ["ADAPTER"]


class Stdlib(Bare):
    """Answers for the `random` module and the interpreter."""

    name = "python"

    def fingerprint(self) -> dict[str, str]:
        """The interpreter and the machine."""
        return {
            "hash seed": os.environ.get("PYTHONHASHSEED", "random"),
            "python": platform.python_version(),
            "implementation": sys.implementation.name,
            "machine": platform.machine(),
            "system": platform.system(),
        }

    def seed(self, seed: int) -> None:
        """Seed `random`."""
        random.seed(seed)

    def positions(self) -> dict[str, str]:
        """The Mersenne Twister's words and the spare normal number."""
        version, words, spare = random.getstate()
        return {"global": f"{version} {spare!r} {array('I', words).tobytes().hex()}"}

    def reposition(self, positions: Mapping[str, str]) -> None:
        """Put `random` back."""
        version, spare, words = positions["global"].split(" ")
        state = tuple(array("I", bytes.fromhex(words)))
        random.setstate((int(version), state, None if spare == "None" else float(spare)))

    def generator_state(self, obj: Any) -> Any:
        """The state of a `random.Random`; one that draws from the system has none."""
        if isinstance(obj, random.Random) and not isinstance(obj, random.SystemRandom):
            return obj.getstate()
        return None

    def set_generator_state(self, obj: Any, state: Any) -> None:
        """Put a `random.Random` back."""
        obj.setstate(state)

    def new_generator(self, kind: type[Any]) -> Any:
        """A `random.Random` or subclass."""
        return kind(0)

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


ADAPTER = Stdlib()
