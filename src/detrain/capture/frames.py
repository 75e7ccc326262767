"""The plain variables of a running function.

A number can't be changed in place, so variables that hold plain data (numbers, text, and lists,
dictionaries and the like of them) are read from the frame of the function that runs a loop, and
bound there again. Objects are not: they are declared to the loop and restored in place.
"""

from __future__ import annotations

import ctypes
import sys
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

from detrain.state import PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

__all__ = ["bind", "is_plain", "plain_variables"]

_SEQUENCES = frozenset({list, tuple, set, frozenset, deque})
_MAPPINGS = frozenset({dict, OrderedDict, defaultdict})


def plain_variables(frame: FrameType) -> dict[str, Any]:
    """The variables that hold plain data; of a module, its global names."""
    return {
        name: value
        for name, value in sorted(frame.f_locals.items(), key=lambda item: item[0])
        if not name.startswith((".", "__")) and is_plain(value)
    }


def is_plain(value: Any) -> bool:
    """Whether a value is made of nothing but constants and the built-in containers."""
    todo, seen = [value], set()
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind in PLAIN:
            continue
        if kind not in _SEQUENCES and kind not in _MAPPINGS:
            return False
        if id(item) in seen:
            continue
        seen.add(id(item))
        if kind in _MAPPINGS:
            if kind is defaultdict and type(item.default_factory) not in (type(None), type):
                return False
            todo.extend(item.keys())
            todo.extend(item.values())
        else:
            todo.extend(item)
    return True


def bind(frame: FrameType, variables: Mapping[str, Any]) -> None:
    """Give variables of a suspended or calling function new values."""
    names = frame.f_locals
    for name, value in variables.items():
        names[name] = value
    if sys.version_info < (3, 13) and names is not frame.f_globals:
        # Up to 3.12 `f_locals` of a function is a copy, written back by this call alone.
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
