"""What a form is: how one kind of object is described, matched, made anew and filled.

`describe` gives the node of a live object; `children` pairs the node's children with those of a
live object, so that restore can find what corresponds to what; `make` gives a new object; `fill`
puts the captured content into a live one, keeping its identity. An object that can't change has no
`fill`: it is kept if it is the `same`, and made anew otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from detrain.capture.hidden import slot_names
from detrain.state import LEFT_OUT, PLAIN, Node, Ref

if TYPE_CHECKING:
    from detrain.capture.restore import Restore
    from detrain.capture.walk import Walk

__all__ = [
    "Form",
    "Pairs",
    "field_pairs",
    "fields_of",
    "identical",
    "set_fields",
    "type_name",
]

Pairs = Iterable[tuple[Ref, Any]]
"""Captured and live children that correspond."""


def type_name(kind: type[Any]) -> str:
    """A class as "module:qualified.name"."""
    return f"{kind.__module__}:{kind.__qualname__}"


class Form:
    """How one kind of object is captured and restored; see the module's text."""

    name: ClassVar[str]
    mutable: ClassVar[bool] = True

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        """The node of a live object."""
        raise NotImplementedError

    def matches(self, node: Node, live: Any) -> bool:
        """Whether a live object may become the captured one."""
        return type_name(type(live)) == node.type

    def children(self, node: Node, live: Any) -> Pairs:
        """Pairs of captured and live children that correspond."""
        return zip(node.items, live, strict=False)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        """A new object: complete if the form is immutable, empty otherwise."""
        raise NotImplementedError

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        """Whether a live object that can't change is the captured one already."""
        return False

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        """Put the captured content into an object."""


def fields_of(obj: Any) -> list[tuple[str, Any]]:
    """The fields of an object: its dictionary's, then its slots'."""
    fields = list(getattr(obj, "__dict__", {}).items())
    fields += [(name, getattr(obj, name)) for name in slot_names(type(obj)) if hasattr(obj, name)]
    return [(name, value) for name, value in fields if isinstance(name, str)]


def field_pairs(node: Node, live: Any) -> Pairs:
    """Fields that both the node and the live object have."""
    found = dict(fields_of(live))
    return [(ref, found[name]) for name, ref in node.fields if name in found]


def set_fields(node: Node, live: Any, restore: Restore) -> None:
    """Give an object exactly the captured fields, past any `__setattr__` of its class.

    Those that are made again by the program stay as they are.
    """
    slots = slot_names(type(live))
    own: dict[str, Any] | None = getattr(live, "__dict__", None)
    there = dict(fields_of(live))
    new = {name: there[name] if ref == LEFT_OUT else restore.get(ref) for name, ref in node.fields}
    for name in slots:
        if name in new:
            object.__setattr__(live, name, new.pop(name))
        elif hasattr(live, name):
            object.__delattr__(live, name)
    if own is not None and not (own.keys() == new.keys() and identical(own.values(), new.values())):
        own.clear()
        own.update(new)


def identical(left: Iterable[Any], right: Iterable[Any]) -> bool:
    """Whether two equally long series hold the same objects, constants being the same by value."""
    return all(
        a is b or (type(a) is type(b) and type(a) in PLAIN and repr(a) == repr(b))
        for a, b in zip(left, right, strict=True)
    )
