"""Whether dictionaries were changed, told by the numbers that CPython counts their changes with.

Up to 3.12 each dictionary has one, by PEP 509: it is new, and no other's, whenever a key or a value
of the dictionary becomes another. To read it touches a dictionary once, where to compare what is in
it touches all of that. Later versions of Python have no such number.
"""

from __future__ import annotations

import ctypes
import sys
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

from detrain.frameworks.find import memory_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Versions", "are_kept", "versions_of"]

_AT = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
"""Where the number stands: behind what every object begins with, and how many keys there are."""

_NUMBERED = frozenset({dict, defaultdict})
"""An `OrderedDict` keeps its order elsewhere, and its number does not tell of that."""


class Versions:
    """The numbers of some dictionaries, as they were when they were noted."""

    def __init__(self, dictionaries: Sequence[dict[Any, Any]]) -> None:
        self._dictionaries = dictionaries  # what is read here must not be freed
        self._places = [memory_at(id(each) + _AT, 8) for each in dictionaries]
        self._noted = b"".join(self._places)

    def are_same(self) -> bool:
        """Whether none was changed since."""
        return b"".join(self._places) == self._noted

    def note(self) -> None:
        """Note them anew."""
        self._noted = b"".join(self._places)


def versions_of(dictionaries: Sequence[Any]) -> Versions | None:
    """Note the numbers of some dictionaries; None if they, or this Python, have none."""
    if not are_kept() or not _NUMBERED.issuperset(map(type, dictionaries)):
        return None
    return Versions(dictionaries)


@cache
def are_kept() -> bool:
    """Whether this Python has such numbers, where they are looked for."""
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 13):
        return False
    changes, looks = map(_shown, _CHANGES), map(_shown, _LOOKS)
    return all(seen == {True} for seen in changes) and all(seen == {False} for seen in looks)


class _Thing:
    def __init__(self) -> None:
        self.field = 0


def _shown(act: Callable[[_Thing, dict[str, Any]], Any]) -> set[bool]:
    """Whether something that is done to an object with those fields changes their number."""
    thing, shown = _Thing(), set[bool]()
    fields = thing.__dict__
    versions = Versions([fields])
    for turn in range(64):  # often enough for the interpreter to take its shortcuts
        fields.clear()
        fields.update(field=0, other=turn)
        versions.note()
        act(thing, fields)
        shown.add(not versions.are_same())
    return shown


def _set_field(thing: _Thing, _: dict[str, Any]) -> None:
    thing.field = object()  # type: ignore[assignment]


def _delete_field(thing: _Thing, _: dict[str, Any]) -> None:
    del thing.field


def _set_item(_: _Thing, fields: dict[str, Any]) -> None:
    fields["field"] = object()


def _delete_item(_: _Thing, fields: dict[str, Any]) -> None:
    del fields["field"]


_CHANGES: tuple[Callable[[_Thing, dict[str, Any]], Any], ...] = (
    _set_field,
    _delete_field,
    _set_item,
    _delete_item,
    lambda thing, _: setattr(thing, "field", object()),
    lambda thing, _: setattr(thing, "third", 1),
    lambda _, fields: fields.update(field=object()),
    lambda _, fields: fields.setdefault("third", 1),
    lambda _, fields: fields.pop("field"),
    lambda _, fields: fields.popitem(),
    lambda _, fields: fields.__ior__({"third": 1}),
    lambda _, fields: fields.clear(),
)
_LOOKS: tuple[Callable[[_Thing, dict[str, Any]], Any], ...] = (
    lambda thing, _: thing.field,
    lambda _, fields: fields.get("field"),
    lambda _, fields: [*fields.items()],
)
