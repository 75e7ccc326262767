"""Places below a variable: `state.best.loss` is found, and set, field by field.

Only fields that an object has itself, and the keys of dictionaries, are gone along: what a property
gives is computed, and what a class gives belongs to all its objects. `members[].policy` is the
field of every element of a list, a tuple or a dictionary.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from detrain.capture.hidden import slot_names
from detrain.frameworks import find
from detrain.runtime.settings import SETTINGS, put_settings, settings_of

__all__ = ["expand", "get_place", "join_place", "set_place", "split_place", "without_elements"]

_STEP = re.compile(r"\.([^.\[\]]+)|(\[[^\]]*\])")
_PLAIN_KEY = re.compile(r"[^.\[\]]*")


def split_place(place: str) -> tuple[str, tuple[str, ...]]:
    """The variable of a place, and the fields and elements below it, as they are written.

    `m/log.rows[].loss` is the variable `m/log`, and `rows`, `[]` and `loss`.
    """
    space, slash, rest = place.rpartition("/")
    name = _PLAIN_KEY.match(rest)
    assert name is not None
    steps = (field or element for field, element in _STEP.findall(rest[name.end() :]))
    return f"{space}{slash}{name[0]}", tuple(steps)


def join_place(variable: str, steps: tuple[str, ...]) -> str:
    """The place that `split_place` splits."""
    return variable + "".join(step if step[0] == "[" else f".{step}" for step in steps)


def without_elements(place: str) -> str:
    """The place in which each element stands for all."""
    variable, steps = split_place(place)
    return join_place(variable, tuple("[]" if step[0] == "[" else step for step in steps))


def expand(value: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All that lies at a place below a value, with the elements named one by one; `LookupError` if
    it can't be told.
    """
    if "[]" not in steps:
        yield steps, get_place(value, steps)
        return
    at = steps.index("[]")
    before, after = steps[:at], steps[at + 1 :]
    for key, element in _elements(get_place(value, before)):
        for found, last in expand(element, after):
            yield (*before, key, *found), last


def _elements(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        yield from ((f"[{number}]", each) for number, each in enumerate(value))
        return
    if not isinstance(value, dict):
        raise LookupError(type(value).__name__)
    for key, each in value.items():
        if type(key) not in (int, str) or not _PLAIN_KEY.fullmatch(str(key)):
            raise LookupError(repr(key))
        yield f"[{key!r}]", each


def get_place(value: Any, steps: tuple[str, ...]) -> Any:
    """What lies there; `LookupError` if it can't be told."""
    for step in steps:
        if step[0] == "[":
            value = value[ast.literal_eval(step[1:-1])]
        else:
            value = settings_of(value) if step == SETTINGS else _home(value, step)[step]
    return value


def set_place(value: Any, fields: tuple[str, ...], new: Any) -> None:
    """Put something there; `LookupError` if it can't be told where that is."""
    owner, last = get_place(value, fields[:-1]), fields[-1]
    if last == SETTINGS:
        put_settings(owner, new)
        return
    if last in slot_names(type(owner)):
        object.__setattr__(owner, last, new)
    else:
        _home(owner, last, new=True)[last] = new


def _home(owner: Any, name: str, *, new: bool = False) -> dict[str, Any]:
    """The dictionary that holds a field of an object."""
    if isinstance(owner, dict):
        homes = [owner]
    else:
        own: dict[str, Any] = getattr(owner, "__dict__", {})
        silent = frozenset().union(*(f.transparent for f in find.loaded()))
        homes = [own, *(own[part] for part in sorted(silent) if isinstance(own.get(part), dict))]
        if name in slot_names(type(owner)) and hasattr(owner, name):
            homes.append({name: getattr(owner, name)})
    for home in homes:
        if name in home:
            return home
    if new and (isinstance(owner, dict) or hasattr(owner, "__dict__")):
        return homes[0]
    raise LookupError(name)
