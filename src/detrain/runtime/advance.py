"""Iterators that go on in the middle: skipped by index where that can be, consumed where not.

`enumerate`, `zip` and `tqdm` around a loader are seen through. What can't be skipped is consumed,
which is exact as long as the iterable draws no random numbers between its items: that is watched,
and a loop whose iterable does is never checkpointed inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import GEN_CREATED, getgeneratorstate
from types import GeneratorType
from typing import Any

from detrain.frameworks.base import Positioned

__all__ = ["Advancing", "advancing"]


class Advancing:
    """An iterator that knows how to be further on. `parts` are the positioned ones inside it."""

    def __init__(
        self, iterator: Iterator[Any], parts: tuple[Positioned, ...], by_index: bool
    ) -> None:
        self.iterator = iterator
        self.parts = parts
        self.by_index = by_index

    def origin(self) -> str:
        """Where the parts' own generators stood at the start."""
        return "|".join(part.origin() for part in self.parts)

    def order(self) -> str:
        """Which items the parts gave so far."""
        return "|".join(part.order() for part in self.parts)

    def generators(self) -> list[Any]:
        """Generators of the parts' own."""
        return [generator for part in self.parts for generator in part.generators()]

    def advance(self, count: int, origin: str) -> None:
        """Pass over `count` items of an iteration that was begun at `origin`."""
        if self.by_index:
            self.iterator = _advance(self.iterator, count, iter(origin.split("|")))
        else:
            for _ in range(count):
                next(self.iterator)


def advancing(iterable: Any) -> Advancing:
    """Begin to iterate, as `iter` does."""
    iterator = iter(iterable)
    parts: list[Positioned] = []
    by_index = _collect(iterator, parts)
    return Advancing(iterator, tuple(parts), by_index)


_EMPTY: tuple[Any, ...] = ([], (), range(0), range(1 << 70), "", {}, {}.items(), {}.values())
_BY_INDEX = tuple(type(iter(empty)) for empty in _EMPTY)


def _collect(iterator: Any, parts: list[Positioned]) -> bool:
    """Find the positioned iterators inside; whether all of it can be skipped by index."""
    if isinstance(iterator, Positioned):
        parts.append(iterator)
        return iterator.by_index
    if type(iterator) in (enumerate, zip):
        found = [_collect(inner, parts) for inner in _inside(iterator)]
        return all(found)
    bar = _bar_of(iterator)
    if bar is not None:
        # A bar that has not begun takes its items from here when it does.
        bar.iterable = iter(bar.iterable)
        return _collect(bar.iterable, parts)
    return type(iterator) in _BY_INDEX


def _advance(iterator: Any, count: int, origins: Iterator[str]) -> Any:
    """The iterator `count` items further on."""
    if isinstance(iterator, Positioned):
        iterator.advance(count, next(origins))
        return iterator
    if type(iterator) is enumerate:
        arguments: Any = iterator.__reduce__()[1]
        inner, start = arguments
        return enumerate(_advance(inner, count, origins), start + count)
    if type(iterator) is zip:
        strict = bool(iterator.__reduce__()[2:])
        return zip(*[_advance(inner, count, origins) for inner in _inside(iterator)], strict=strict)
    bar = _bar_of(iterator)
    if bar is not None:
        bar.iterable = _advance(bar.iterable, count, origins)
        bar.n = bar.initial = bar.last_print_n = count
        return iterator
    for _ in range(count):
        next(iterator)
    return iterator


def _inside(iterator: Any) -> tuple[Any, ...]:
    """The iterators that an `enumerate` or `zip` draws from."""
    arguments = iterator.__reduce__()[1]
    return tuple(arguments[:1]) if type(iterator) is enumerate else tuple(arguments)


def _bar_of(iterator: Any) -> Any | None:
    """The progress bar (tqdm's) that an iterator, which has not begun yet, belongs to."""
    if not isinstance(iterator, GeneratorType) or iterator.__name__ != "__iter__":
        return None
    frame = iterator.gi_frame
    if frame is None or getgeneratorstate(iterator) != GEN_CREATED:
        return None
    bar = frame.f_locals.get("self")
    module = type(bar).__module__.partition(".")[0]
    return bar if module == "tqdm" and hasattr(bar, "iterable") else None
