"""The settings of an optimizer or a scheduler: all of it that is plain, and not what it trains.

The way to a loop often looks at a learning rate, and hardly ever at the parameters and moments that
the same object holds. Settings are written as a flat dictionary from paths to plain values.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ReferenceType

from detrain.capture.frames import is_plain
from detrain.frameworks import find
from detrain.state import PLAIN

__all__ = ["SETTINGS", "put_settings", "settings_of"]

SETTINGS = "<settings>"
"""How a place names them."""

Path = tuple[str | int, ...]

_TRAINED = "params"
"""The key under which an optimizer's groups hold what is trained."""
_CODE = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, ReferenceType)
_DEEPEST = 6


def settings_of(owner: Any) -> dict[str, Any]:
    """The settings of an object; `LookupError` if some may lie where they are not looked for."""
    found: dict[str, Any] = {}
    _gather(owner, (), found, {id(owner)})
    return found


def put_settings(owner: Any, settings: dict[str, Any]) -> None:
    """Give an object its settings back; `LookupError` if it has no place for one."""
    for text in settings_of(owner).keys() - settings.keys():
        home, last = _home(owner, text)
        if not isinstance(home, list):
            del home[last]
    for text, value in settings.items():
        home, last = _home(owner, text)
        home[last] = value


def _home(owner: Any, text: str) -> tuple[Any, str | int]:
    """What holds a setting, a list or a dictionary, and under what."""
    *way, last = _path(text)
    for step in way:
        owner = _part(owner, step)
    return (owner if isinstance(owner, dict | list) else vars(owner)), last


def _gather(value: Any, path: Path, found: dict[str, Any], seen: set[int]) -> None:
    if len(path) > _DEEPEST:
        raise LookupError(_text(path))
    for step, part in _parts(value):
        here = (*path, step)
        if is_plain(part):
            found[_text(here)] = part
        elif step == _TRAINED or isinstance(part, _CODE) or id(part) in seen:
            continue
        elif isinstance(part, dict) and all(type(key) not in PLAIN for key in part):
            continue  # by parameter: what an optimizer has learnt of each
        elif any(framework.view(part) is not None for framework in find.loaded()):
            raise LookupError(_text(here))
        elif isinstance(part, dict | list | tuple) or hasattr(part, "__dict__"):
            if hasattr(part, "param_groups"):
                continue  # an optimizer's settings are a place of their own
            seen.add(id(part))
            _gather(part, here, found, seen)
        else:
            raise LookupError(_text(here))


def _parts(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return [(key, part) for key, part in value.items() if isinstance(key, str | int)]
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    return list(vars(value).items())


def _part(value: Any, step: str | int) -> Any:
    for name, part in _parts(value):
        if name == step:
            return part
    raise LookupError(str(step))


def _text(path: Path) -> str:
    """A path as a key: numbers are told from texts by their mark."""
    return "/".join(f"#{step}" if isinstance(step, int) else step for step in path)


def _path(text: str) -> list[str | int]:
    return [int(step[1:]) if step.startswith("#") else step for step in text.split("/")]
