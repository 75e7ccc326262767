"""The forms of containers: lists, queues, dictionaries, sets and tuples, and their subclasses.

Content is read and written by the built-in type's own methods, past what a subclass overrides.
"""

from __future__ import annotations

import ast
import contextlib
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

import msgspec

from detrain.capture.form import (
    Form,
    Pairs,
    field_pairs,
    fields_of,
    identical,
    set_fields,
    type_name,
)
from detrain.state import Node, decode_scalar

if TYPE_CHECKING:
    from detrain.capture.restore import Restore
    from detrain.capture.walk import Walk

__all__ = ["DequeForm", "DictForm", "FrozenSetForm", "ListForm", "SetForm", "TupleForm"]


_MANY = 32
_NUMBERS = frozenset({int, bool, type(None)})


def _are_numbers(items: list[Any]) -> bool:
    """Whether a list holds integers, or tuples of them, alone: it is written as one text.

    Lists of samples and of indices are long, and to describe each element takes its time.
    """
    kinds = set(map(type, items))
    if not kinds <= {*_NUMBERS, tuple}:
        return False
    return tuple not in kinds or all(
        _NUMBERS.issuperset(map(type, item)) for item in items if type(item) is tuple
    )


class ListForm(Form):
    """Lists and subclasses."""

    name = "list"

    def describe(self, obj: list[Any], path: str, walk: Walk) -> Node:
        kind = type(obj)
        if kind is list and len(obj) >= _MANY and _are_numbers(obj):
            with contextlib.suppress(ValueError):  # of integers with thousands of digits
                return Node("list", type_name(kind), text=repr(obj))
        fields = () if kind is list else walk.fields(fields_of(obj), path)
        return Node("list", type_name(kind), walk.refs(list.__iter__(obj), path), fields=fields)

    def children(self, node: Node, live: list[Any]) -> Pairs:
        yield from zip(node.items, list.__iter__(live), strict=False)
        yield from field_pairs(node, live)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        kind: Any = restore.resolve_type(node, path)
        return kind.__new__(kind)

    def fill(self, node: Node, live: list[Any], restore: Restore, path: str) -> None:
        if node.text:
            if repr(live) != node.text:
                live[:] = ast.literal_eval(node.text)
            return
        list.__setitem__(live, slice(None), [restore.get(ref) for ref in node.items])
        set_fields(node, live, restore)


class DequeForm(Form):
    """Double-ended queues."""

    name = "deque"

    def describe(self, obj: deque[Any], path: str, walk: Walk) -> Node:
        return Node("deque", type_name(type(obj)), walk.refs(obj, path), text=repr(obj.maxlen))

    def matches(self, node: Node, live: Any) -> bool:
        return super().matches(node, live) and repr(live.maxlen) == node.text

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        kind = restore.resolve_type(node, path)
        return kind(maxlen=None if node.text == "None" else int(node.text))

    def fill(self, node: Node, live: deque[Any], restore: Restore, path: str) -> None:
        live.clear()
        live.extend([restore.get(ref) for ref in node.items])


class DictForm(Form):
    """Dictionaries: plain, ordered, with a default, and subclasses. Their order is state."""

    name = "dict"

    def describe(self, obj: dict[Any, Any], path: str, walk: Walk) -> Node:
        kind = type(obj)
        items = list(_methods(obj).items(obj))
        keys, values = walk.items(obj, items, path)
        extra = [] if kind in (dict, OrderedDict, defaultdict) else fields_of(obj)
        if isinstance(obj, defaultdict):
            extra.append(("default_factory", obj.default_factory))
        return Node("dict", type_name(kind), values, keys, walk.fields(extra, path))

    def children(self, node: Node, live: dict[Any, Any]) -> Pairs:
        return self._pairs(node, live) if node.keys or node.fields else ()

    def _pairs(self, node: Node, live: dict[Any, Any]) -> Pairs:
        # Values under keys that are objects are paired later, when the keys are: see `restore`.
        methods = _methods(live)
        for key, value in zip(node.keys, node.items, strict=True):
            if not isinstance(key, int):
                constant = decode_scalar(key)
                if methods.__contains__(live, constant):
                    yield value, methods.__getitem__(live, constant)
        for name, ref in node.fields:
            if name == "default_factory" and isinstance(live, defaultdict):
                yield ref, live.default_factory
        yield from field_pairs(node, live)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        kind: Any = restore.resolve_type(node, path)
        return kind.__new__(kind)

    def fill(self, node: Node, live: dict[Any, Any], restore: Restore, path: str) -> None:
        if not live and not node.keys and not node.fields:
            return  # most that a model holds are empty
        new = [
            (restore.get(key), restore.get(value))
            for key, value in zip(node.keys, node.items, strict=True)
        ]
        methods = _methods(live)
        methods.clear(live)
        for key, value in new:
            methods.__setitem__(live, key, value)
        fields = dict(node.fields)
        if isinstance(live, defaultdict):
            live.default_factory = restore.get(fields.pop("default_factory"))
        if type(live) not in (dict, OrderedDict, defaultdict):
            rest = tuple(fields.items())
            set_fields(msgspec.structs.replace(node, fields=rest), live, restore)


class SetForm(Form):
    """Sets that can change."""

    name = "set"

    def describe(self, obj: set[Any], path: str, walk: Walk) -> Node:
        return Node("set", type_name(type(obj)), walk.refs(obj, path))

    def children(self, node: Node, live: set[Any]) -> Pairs:
        return ()

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        return restore.resolve_type(node, path)()

    def fill(self, node: Node, live: set[Any], restore: Restore, path: str) -> None:
        new = [restore.get(ref) for ref in node.items]
        plain = all(isinstance(ref, tuple) for ref in node.items)
        if set(new) == live and (not plain or list(live) == new):
            return
        if not _fill_in_order(live, new) and plain:
            restore.note(
                f"{path} is a set that lists its {len(new)} elements in another order than before. "
                "If the program goes through it, sort it there: sorted(…)"
            )


def _fill_in_order(live: set[Any], wanted: list[Any]) -> bool:
    """Give a set these elements; whether it lists them in this order.

    The order depends on the size of the hash table, which grows and never shrinks by itself, and on
    who came first to a place in it: a few ways to get there are tried.
    """
    size = len(wanted)
    for empty, step in ((0, 1), (0, -1), (2 * size, 1), (8 * size, 1)):
        live.clear()
        others = [object() for _ in range(empty)]
        live.update(others)
        live.difference_update(others)
        live.update(wanted[::step])
        if list(live) == wanted:
            return True
    live.clear()
    live.update(wanted)
    return False


class FrozenSetForm(SetForm):
    """Sets that can't change."""

    name = "frozenset"
    mutable = False

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        return Node("frozenset", type_name(type(obj)), walk.refs(obj, path))

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        return restore.resolve_type(node, path)(restore.get(ref) for ref in node.items)

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        return bool(live == frozenset(restore.get(ref) for ref in node.items))


class TupleForm(Form):
    """Tuples and named tuples."""

    name = "tuple"
    mutable = False

    def describe(self, obj: tuple[Any, ...], path: str, walk: Walk) -> Node:
        return Node("tuple", type_name(type(obj)), walk.refs(tuple.__iter__(obj), path))

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        kind = restore.resolve_type(node, path)
        return tuple.__new__(kind, [restore.get(ref) for ref in node.items])

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        return len(live) == len(node.items) and identical(live, map(restore.get, node.items))


def _methods(live: Any) -> Any:
    # An OrderedDict keeps its order beside the dictionary: only its own methods know both.
    return OrderedDict if isinstance(live, OrderedDict) else dict
