"""Generators of the program that it holds on to and asks for one item now and then.

Where running code is can't be saved; but a generator that was made by a call of a function is as
far as that call with so many items taken. Where it drew random numbers, the positions of the
generators are kept, and set again when the items are taken anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping
from typing import Any

from detrain.frameworks.find import Positions, positions_now, reposition

__all__ = ["HeldGenerator", "held"]


class HeldGenerator:
    """A generator that knows how it was made. Looped over, it gives the plain one away."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.count = 0
        self.draws: dict[int, Positions] = {}
        self.given_away = False
        self._plain: Generator[Any, Any, Any] = function(*args, **kwargs)

    def __iter__(self) -> Generator[Any, Any, Any]:
        self.given_away = True
        return self._plain

    def __next__(self) -> Any:
        before = positions_now()
        item = next(self._plain)
        if positions_now() != before:
            self.draws[self.count] = before
        self.count += 1
        return item

    def __getattr__(self, name: str) -> Any:
        self.given_away = True  # send, throw: what was sent is not known afterwards
        return getattr(object.__getattribute__(self, "_plain"), name)

    def is_finished(self) -> bool:
        """Whether nothing can come of it any more."""
        return self._plain.gi_frame is None  # type: ignore[attr-defined]

    def take_again(self, count: int, draws: Mapping[int, Positions]) -> None:
        """Be where `count` items have been taken; the global generators stay where they stand."""
        if (self.count, self.draws) == (count, draws):
            return
        stand = positions_now()
        if self.count > count:
            self._plain = self.function(*self.args, **self.kwargs)
            self.count = 0
        try:
            for number in range(self.count, count):
                if number in draws:
                    reposition(draws[number])
                next(self._plain)
        finally:
            reposition(stand)
        self.count, self.draws = count, dict(draws)


def held(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function whose generators know how they were made."""

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> HeldGenerator:
        return HeldGenerator(function, args, kwargs)

    return make
