"""Sights: what one look at an object gives, to tell at another look whether it is as it was.

Constants and children are compared by what they are, not by what they are equal to. A program holds
hundreds of objects that never change for each one that does: these are looked at together, in a few
calls (`Together`).
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from itertools import chain
from operator import attrgetter, is_, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from detrain.capture.hidden import slot_names
from detrain.capture.versions import Versions, versions_of
from detrain.frameworks import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from detrain.frameworks.base import Glance
    from detrain.state import Node

__all__ = ["ARRAY", "OTHER", "Sight", "Together", "is_as_seen", "look"]

_EMPTY, _DICT, _FIELDS, _ITEMS, ARRAY, _FIXED, OTHER = range(7)

_BUILT_IN = frozenset({dict, OrderedDict, defaultdict, list, tuple, set, frozenset})

_OF_PYTHON = 1 << 9
"""The flag of classes that were made by Python code: all others can't be changed."""

_fields: Callable[[Any], dict[str, Any]] = attrgetter("__dict__")
_values: Callable[[Any], Iterable[Any]] = methodcaller("values")
_factory: Callable[[Any], Any] = attrgetter("default_factory")


class Sight(NamedTuple):
    """What a look at an object gave: as long as another gives the same, its node stands."""

    way: int
    kind: type[Any]
    keys: Any = ()
    values: Any = ()
    factory: Any = None

    @property
    def is_plain(self) -> bool:
        """Whether it was an array or a plain container: one can always be made anew."""
        return self.way == ARRAY or self.kind in _BUILT_IN


def look(obj: Any, node: Node) -> Sight:
    """Look at an object that is described by a node."""
    kind = type(obj)
    if node.array is not None:
        glance = find.by_name(node.array.framework).glance
        # What hangs on an array is not seen at a glance.
        return Sight(ARRAY, kind, glance, None if node.fields else glance([obj]))
    if kind in _BUILT_IN:
        factory = _factory(obj) if kind is defaultdict else None
        if not obj and factory is None:
            return Sight(_EMPTY, kind)
        if issubclass(kind, dict):
            return Sight(_DICT, kind, list(obj), list(obj.values()), factory)
        return Sight(_ITEMS, kind, (), list(obj))
    if kind is type and not obj.__flags__ & _OF_PYTHON:
        return Sight(_FIXED, kind)
    if node.form == "object" and not slot_names(kind) and hasattr(obj, "__dict__"):
        held = _fields(obj)
        return Sight(_FIELDS, kind, list(held), list(held.values()))
    return Sight(OTHER, kind)


def is_as_seen(obj: Any, sight: Sight) -> bool:
    """Whether another look at an object, whose class is what it was, gives the same."""
    way, kind, keys, values, factory = sight
    if way == ARRAY:
        return values is not None and bool(values.is_same([obj]))
    if way == _EMPTY:
        return not obj
    if way == _ITEMS:
        return len(obj) == len(values) and all(map(is_, obj, values))
    if way == _FIXED:
        return True
    if way == OTHER:
        return False
    if kind is defaultdict and _factory(obj) is not factory:
        return False
    held = _fields(obj) if way == _FIELDS else obj
    return (
        len(held) == len(values)
        and all(map(is_, held.values(), values))
        and all(map(is_, held, keys))
    )


class Together:
    """Objects that are looked at all at once; all of them must be as they were seen."""

    def __init__(self, seen: Sequence[tuple[Any, Sight]]) -> None:
        by_way: dict[int, list[tuple[Any, Sight]]] = {way: [] for way in range(OTHER)}
        for obj, sight in seen:
            by_way[sight.way].append((obj, sight))
        # The class of one that is built in can't be changed, that of an array is seen at a glance.
        others = [(o, s.kind) for o, s in seen if s.kind not in _BUILT_IN and s.way != ARRAY]
        self._others, self._kinds = _parted(others)
        self._empty = _each_first(by_way[_EMPTY])
        ordered = [each for each in by_way[_DICT] if each[1].kind is OrderedDict]
        dicts = [each for each in by_way[_DICT] if each[1].kind is not OrderedDict]
        self._keyed = (_Keyed(by_way[_FIELDS], dicts), _Keyed([], ordered))
        self._items = _each_first(by_way[_ITEMS])
        self._sizes = [len(sight.values) for _, sight in by_way[_ITEMS]]
        self._each_item = [*chain(*(sight.values for _, sight in by_way[_ITEMS]))]
        defaults = [(obj, s.factory) for obj, s in by_way[_DICT] if s.kind is defaultdict]
        self._defaults, self._factories = _parted(defaults)
        by_glance: dict[Callable[[Sequence[Any]], Glance | None], list[Any]] = {}
        for obj, sight in by_way[ARRAY]:
            by_glance.setdefault(sight.keys, []).append(obj)
        self._glances = [(glance(arrays), arrays) for glance, arrays in by_glance.items()]

    def are_as_seen(self) -> bool:
        """Whether each of them is as it was."""
        return (
            not any(self._empty)
            and all(map(is_, map(type, self._others), self._kinds))
            and [*map(len, self._items)] == self._sizes
            and all(map(is_, chain.from_iterable(self._items), self._each_item))
            and all(keyed.are_as_seen() for keyed in self._keyed)
            and all(map(is_, map(_factory, self._defaults), self._factories))
            and all(glance and glance.is_same(arrays) for glance, arrays in self._glances)
        )


class _Keyed:
    """Objects with fields, and dictionaries, that are looked at all at once."""

    def __init__(
        self, with_fields: Sequence[tuple[Any, Sight]], dicts: Sequence[tuple[Any, Sight]]
    ) -> None:
        self._with_fields, self._dicts = _each_first(with_fields), _each_first(dicts)
        sights = [sight for _, sight in (*with_fields, *dicts)]
        self._sizes = [len(sight.values) for sight in sights]
        self._keys = [*chain(*(sight.keys for sight in sights))]
        self._values = [*chain(*(sight.values for sight in sights))]
        self._held: list[dict[Any, Any]] = []
        self._versions: Versions | None = None

    def are_as_seen(self) -> bool:
        """Whether each of them is as it was."""
        held = [*map(_fields, self._with_fields), *self._dicts]
        before = self._versions
        if before is not None and all(map(is_, held, self._held)) and before.are_same():
            return True
        # Noted before they are compared: another thread may change one of them in between.
        versions = versions_of(held)
        same = (
            [*map(len, held)] == self._sizes
            and all(map(is_, chain.from_iterable(map(_values, held)), self._values))
            and all(map(is_, chain.from_iterable(held), self._keys))
        )
        self._held, self._versions = held, versions if same else None
        return same


def _each_first(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    return [first for first, _ in pairs]


def _parted(pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return _each_first(pairs), [second for _, second in pairs]
