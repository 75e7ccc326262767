"""Plain data as JSON: numbers, texts, and lists, tuples and dictionaries of them.

What torch's planners hand over beside tensors is pickled. It is stored as this instead, so that no
pickle that somebody else wrote is ever read.
"""

from __future__ import annotations

import io
from typing import Any

import msgspec
import torch

from detrain.state import PLAIN, decode_scalar, encode_scalar

__all__ = ["plain_json", "planner_bytes"]

_BOXES: dict[str, Any] = {"list": list, "tuple": tuple}


def plain_json(pickled: bytes) -> bytes:
    """What a planner of this process has just pickled; `TypeError` if it is no plain data."""
    try:
        value = torch.load(io.BytesIO(pickled), weights_only=True)
    except Exception as error:
        raise TypeError(str(error).splitlines()[0]) from None
    return msgspec.json.encode(_boxed(value))


def planner_bytes(data: bytes) -> io.BytesIO:
    """What a planner unpickles, made here of plain data; `ValueError` if it is none."""
    try:
        value = _unboxed(msgspec.json.decode(data))
    except (msgspec.DecodeError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    found = io.BytesIO()
    torch.save(value, found)
    found.seek(0)
    return found


def _boxed(value: Any) -> list[Any]:
    if type(value) in PLAIN:
        return list(encode_scalar(value))
    if isinstance(value, dict):
        return ["dict", [[_boxed(key), _boxed(each)] for key, each in value.items()]]
    for name, kind in _BOXES.items():
        if type(value) is kind:
            return [name, [_boxed(each) for each in value]]
    raise TypeError(f"it holds a {type(value).__name__}")


def _unboxed(boxed: Any) -> Any:
    name, inside = boxed
    if name == "dict":
        return {_unboxed(key): _unboxed(each) for key, each in inside}
    if name in _BOXES:
        return _BOXES[name](_unboxed(each) for each in inside)
    return decode_scalar((name, inside))
