"""What the draws of parallel tasks are keyed by: where the caller's generators stand, and a count.

A call of a pool draws nothing itself, so two calls may find the generators at one place; then they
are told apart by their number there. Each framework is keyed by its own generators: a program that
seeds numpy alone has the same draws of numpy in every run. The count is a position like any other:
checkpoints hold it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from detrain.rng import Address, address_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CALLS", "NAME", "Calls", "Keys", "key_of_task", "nested"]

Keys = dict[str, Address]
"""Addresses by framework; "" is for those that the caller has not imported."""

NAME = "pools"
"""Under which name the count stands among the positions of generators."""


class Calls:
    """Counts the calls that find a framework's generators where the call before found them."""

    def __init__(self) -> None:
        self._stands: dict[str, tuple[str, int]] = {}
        self._lock = threading.Lock()

    def next(self, stands: Mapping[str, str]) -> Keys:
        """The keys of another call; `stands` are digests of where generators stand."""
        with self._lock:
            for name, digest in stands.items():
                before, count = self._stands.get(name, ("", 0))
                self._stands[name] = digest, count + 1 if before == digest else 0
            found = {name: self._stands[name] for name in stands}
        keys = {name: address_of(NAME, name, *stand) for name, stand in found.items()}
        words = [word for name, stand in sorted(found.items()) for word in (name, *stand)]
        return {**keys, "": address_of(NAME, "", *words)}

    def position(self) -> dict[str, str]:
        """The count as text; empty if there was no call."""
        return {name: f"{digest} {count}" for name, (digest, count) in self._stands.items()}

    def put(self, position: Mapping[str, str]) -> None:
        """Go on from what `position` gave."""
        split = {name: text.split(" ") for name, text in position.items()}
        self._stands = {name: (digest, int(count)) for name, (digest, count) in split.items()}


def key_of_task(keys: Keys, index: int) -> Keys:
    """The keys of one task of a call, by its number."""
    return {
        name: Address(each.seed, each.stream, each.epoch, index, each.draw)
        for name, each in keys.items()
    }


def nested(keys: Keys, count: int) -> Keys:
    """The keys of a call that a task makes, by its number in the task."""
    return {
        name: address_of(NAME, each.seed, each.stream, each.epoch, each.sample, each.draw, count)
        for name, each in keys.items()
    }


CALLS = Calls()
