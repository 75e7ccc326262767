"""Places below a variable: `state.best.loss` is found, and set, field by field.

Only fields that an object has itself, and the keys of dictionaries, are gone along: what a property
gives is computed, and what a class gives belongs to all its objects.
"""

from __future__ import annotations

from typing import Any

from detrain.capture.hidden import slot_names
from detrain.frameworks import find
from detrain.runtime.settings import SETTINGS, put_settings, settings_of

__all__ = ["fields_in", "get_place", "set_place"]


def fields_in(place: str) -> tuple[str, tuple[str, ...]]:
    """The variable of a place, and the fields below it; a container is taken whole.

    `m/log.rows[].loss` is the variable `m/log` and the field `rows`.
    """
    space, slash, rest = place.rpartition("/")
    name, *fields = rest.partition("[")[0].split(".")
    return f"{space}{slash}{name}", tuple(fields)


def get_place(value: Any, fields: tuple[str, ...]) -> Any:
    """What lies there; `LookupError` if it can't be told."""
    for name in fields:
        value = settings_of(value) if name == SETTINGS else _home(value, name)[name]
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
