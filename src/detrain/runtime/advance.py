"""Iterators that go on in the middle: skipped by index where that can be, consumed where not.

`enumerate`, `zip` and `tqdm` around a loader are seen through. An iterator of the program's own
class is restored by its fields. What nothing is known of is consumed again, which is exact as long
as its items depend on the random generators alone: a digest of the items is compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from inspect import GEN_CREATED, getgeneratorstate
from types import GeneratorType
from typing import Any

import xxhash

from detrain.capture.hidden import hidden_base
from detrain.capture.own import not_a_library
from detrain.frameworks import find
from detrain.frameworks.base import Positioned
from detrain.frameworks.find import Positions, positions_now, reposition
from detrain.state import PLAIN

__all__ = ["Advancing", "advancing"]


class Advancing:
    """An iterator that knows how to be further on. `parts` are the positioned ones inside it."""

    def __init__(self, iterator: Iterator[Any], parts: tuple[Positioned, ...]) -> None:
        self.iterator = iterator
        self.parts = parts

    def origin(self) -> str:
        """Where the parts' own generators stood at the start."""
        return "|".join(part.origin() for part in self.parts)

    def order(self) -> str:
        """Which items the parts gave so far."""
        return "|".join(part.order() for part in self.parts)

    def generators(self) -> list[Any]:
        """Generators of the parts' own, and iterators that are restored by their fields."""
        return [generator for part in self.parts for generator in part.generators()]

    def held(self) -> list[Any]:
        """What the loop alone may hold on to: loaders, with their datasets."""
        return [part.owner() for part in self.parts] + self.generators()

    def is_loader(self) -> bool:
        """Whether its items come from loaders and the like: what happens there is no training."""
        return bool(self.parts) and not self.consumes()

    def consumes(self) -> bool:
        """Whether something in it can be further on only by giving its items again."""
        return not all(part.by_index for part in self.parts)

    def obstacle(self) -> str:
        """Why the loop can't be taken up in the middle; empty if it can."""
        return next((part.obstacle for part in self.parts if isinstance(part, Consumed)), "")

    def advance(self, count: int, origin: str) -> None:
        """Pass over `count` items of an iteration that was begun at `origin`."""
        self.iterator = _advance(self.iterator, count, iter(origin.split("|")))


class Consumed:
    """An iterator that nothing is known of: passed over by consuming it again.

    That is exact if its items depend on nothing but themselves and the random generators: where it
    draws, the generators' positions are kept and set again, and a digest of the items is compared.
    """

    by_index = False
    most = 200
    """How many draws are kept; an iterator with more is not taken up in the middle."""

    def __init__(self, inner: Iterator[Any]) -> None:
        self._inner = inner
        self._count = 0
        self._draws: dict[int, Positions] = {}
        self._digest = xxhash.xxh3_64()
        self.obstacle = ""

    def __iter__(self) -> Consumed:
        return self

    def __next__(self) -> Any:
        before = positions_now()
        item = next(self._inner)
        if len(self._draws) <= self.most and positions_now() != before:
            self._draws[self._count] = before
            if len(self._draws) > self.most:
                self.obstacle = (
                    f"draws random numbers between its items, more than {self.most} times, so that "
                    "it can't be taken up in the middle: give it a generator of its own"
                )
        self._seen(item)
        return item

    def _seen(self, item: Any) -> None:
        self._count += 1
        self._digest.update(_item_digest(item))

    def origin(self) -> str:
        """Where the generators stood at the items that drew from them."""
        return json.dumps(self._draws).replace("|", " ")

    def order(self) -> str:
        """A digest of all items so far."""
        return self._digest.hexdigest()

    def generators(self) -> list[Any]:
        """None that could be found."""
        return []

    def owner(self) -> Any:
        """Nothing that could be captured."""
        return None

    def advance(self, count: int, origin: str) -> None:
        """Consume items, with the generators where they stood."""
        draws = {int(at): stand for at, stand in json.loads(origin or "{}").items()}
        stand = positions_now()
        try:
            for at in range(count):
                if at in draws:
                    reposition(draws[at])
                self._seen(next(self._inner))
        finally:
            reposition(stand)
        self._draws = draws


class ByFields:
    """An iterator of the program's own making, whose fields say where it is."""

    by_index = True

    def __init__(self, inner: Iterator[Any]) -> None:
        self._inner = inner

    def __iter__(self) -> ByFields:
        return self

    def __next__(self) -> Any:
        return next(self._inner)

    def origin(self) -> str:
        """Not needed: its fields are restored."""
        return ""

    def order(self) -> str:
        """Not needed: its fields are restored."""
        return ""

    def generators(self) -> list[Any]:
        """The iterator itself is state."""
        return [self._inner]

    def owner(self) -> Any:
        """The iterator itself is state."""
        return self._inner

    def advance(self, count: int, origin: str) -> None:
        """Its fields are restored with all other state."""


def _item_digest(item: Any) -> bytes:
    """A digest of arrays and plain data in an item; of other objects, only their class counts."""
    if isinstance(item, list | tuple):
        return b"(" + b",".join(map(_item_digest, item)) + b")"
    if isinstance(item, dict):
        return b"{" + b",".join(map(_item_digest, item.values())) + b"}"
    if type(item) in PLAIN:
        return repr(item).encode()
    for framework in find.loaded():
        try:
            view = framework.view(item)
        except ValueError:
            break
        if view is not None:
            buffer = bytearray(view.nbytes)
            if buffer:
                framework.copy_out(item, memoryview(buffer))
            return xxhash.xxh3_64_digest(buffer)
    return type(item).__qualname__.encode()


def advancing(iterable: Any) -> Advancing:
    """Begin to iterate, as `iter` does."""
    parts: list[Positioned] = []
    iterator = _known(iter(iterable), parts)
    return Advancing(iterator, tuple(parts))


_EMPTY: tuple[Any, ...] = ([], (), range(0), range(1 << 70), "", {}, {}.items(), {}.values())
_BY_INDEX = tuple(type(iter(empty)) for empty in _EMPTY)


def _known(iterator: Any, parts: list[Positioned]) -> Any:
    """An iterator that gives the same items and can be advanced; `parts` takes what is inside."""
    if isinstance(iterator, Positioned):
        parts.append(iterator)
        return iterator
    if type(iterator) is enumerate:
        arguments: Any = iterator.__reduce__()[1]
        return enumerate(_known(arguments[0], parts), arguments[1])
    if type(iterator) is zip:
        strict = bool(iterator.__reduce__()[2:])
        return zip(*[_known(inner, parts) for inner in _inside(iterator)], strict=strict)
    bar = _bar_of(iterator)
    if bar is not None:
        # A bar that has not begun takes its items from here when it does.
        bar.iterable = _known(iter(bar.iterable), parts)
        return iterator
    if type(iterator) in _BY_INDEX:
        return iterator
    own = not_a_library(
        getattr(sys.modules.get(type(iterator).__module__), "__file__", None) or "<"
    )
    part = ByFields(iterator) if own and hidden_base(type(iterator)) is None else Consumed(iterator)
    parts.append(part)
    return part


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
