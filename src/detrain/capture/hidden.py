"""State that an object's fields don't show.

A class written in C keeps its state in the object's memory, beyond what `__dict__` and `__slots__`
reach: a csv writer, a compiled tokenizer, a live generator. Restoring the fields of such an object
would look right and be wrong, so it is found by its size and refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["hidden_base", "slot_names"]

_Fact = TypeVar("_Fact")

_WORD = 8


def _once(fact: Callable[[type[Any]], _Fact]) -> Callable[[type[Any]], _Fact]:
    """Remember a fact about a class; classes are few and don't change their layout."""
    remembered: Callable[..., _Fact] = lru_cache(maxsize=4096)(fact)
    return remembered


# Classes whose own memory is fully described elsewhere, or constant after construction.
_KNOWN = frozenset({object, BaseException, Exception, type})


@_once
def hidden_base(kind: type[Any]) -> type | None:
    """The class, `kind` or an ancestor, whose objects keep state that fields don't show."""
    for cls in kind.__mro__:
        base = cls.__base__
        if cls in _KNOWN or base is None:
            continue
        slots = sum(name not in ("__dict__", "__weakref__") for name in _own_slots(cls))
        # A dictionary or weak-reference list lies in the object only where its offset says so.
        extras = (cls.__dictoffset__ > 0 and base.__dictoffset__ <= 0) + (
            cls.__weakrefoffset__ > 0 and base.__weakrefoffset__ <= 0
        )
        if cls.__basicsize__ - base.__basicsize__ > _WORD * (slots + extras):
            return cls
    return None


@_once
def slot_names(kind: type[Any]) -> tuple[str, ...]:
    """The attribute names of all slots, mangled as the class statement mangles them."""
    names = []
    for cls in reversed(kind.__mro__):
        for name in _own_slots(cls):
            if name in ("__dict__", "__weakref__"):
                continue
            private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{cls.__name__.lstrip('_')}{name}" if private else name)
    return tuple(names)


def _own_slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
