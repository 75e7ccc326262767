"""A digest of what an object holds that can't be captured by its fields.

Tables of pandas, images, fitted estimators: their content lies where Python does not show it, but
they can say what it would take to make them again (as for pickling; nothing is ever made from
that here). Setup makes such an object again on resume; the digest shows that it is the same, and
that the loop did not change it.
"""

from __future__ import annotations

import copyreg
import types
from typing import Any

import xxhash

from detrain.frameworks import find
from detrain.frameworks.base import ArrayView, Framework
from detrain.frameworks.find import live_bytes
from detrain.state import PLAIN, encode_scalar
from detrain.trace.digest import digest_array, digest_text

__all__ = ["content_digest", "digest_live"]

_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)


def content_digest(obj: Any) -> str:
    """The digest; any error (mostly `TypeError`) if the object does not say what it holds."""
    return _Content().digest(obj).hex()


def digest_live(array: Any) -> str:
    """The digest of an array of the program: its type, its shape and its bytes."""
    for framework in find.loaded():
        view = framework.view(array)
        if view is not None:
            return digest_text(
                repr((view.dtype, view.shape)).encode(),
                digest_array(live_bytes(framework, array, view.nbytes)).encode(),
            )
    raise TypeError(type(array))


class _Content:
    """One digest under way; an object that was met before is not looked into again."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._alive: list[Any] = []  # so that no address is used twice

    def digest(self, obj: Any) -> bytes:
        if type(obj) in PLAIN:
            return repr(encode_scalar(obj)).encode()
        known = self._known.get(id(obj))
        if known is None:
            self._alive.append(obj)
            self._known[id(obj)] = b"around"  # what is met again inside itself
            known = xxhash.xxh3_128_digest(self._parts(obj))
            self._known[id(obj)] = known
        return known

    def _parts(self, obj: Any) -> bytes:
        if isinstance(obj, _NAMED):
            return f"{obj.__module__}:{obj.__qualname__}".encode()
        kind = type(obj)
        if kind in (list, tuple):
            return b"[" + b",".join(map(self.digest, obj))
        if kind in (set, frozenset):
            return b"{" + b",".join(sorted(map(self.digest, obj)))
        if kind is dict:
            return b":" + b",".join(self.digest(key) + self.digest(obj[key]) for key in obj)
        for framework in find.loaded():
            text = framework.encode_value(obj)
            if text is not None:
                return text.encode()
            view = _view(framework, obj)
            if view is not None:
                buffer = bytearray(view.nbytes)
                if buffer:
                    framework.copy_out(obj, memoryview(buffer))
                return repr((view.dtype, view.shape)).encode() + buffer
        return self._reduced(obj)

    def _reduced(self, obj: Any) -> bytes:
        reducer = copyreg.dispatch_table.get(type(obj))
        made = obj.__reduce_ex__(4) if reducer is None else reducer(obj)
        if isinstance(made, str):
            return made.encode()
        maker, arguments, state, items, pairs = (*made, None, None, None)[:5]
        parts = [maker, arguments, state, list(items or ()), list(pairs or ())]
        return b"<" + b",".join(map(self.digest, parts))


def _view(framework: Framework, obj: Any) -> ArrayView | None:
    try:
        return framework.view(obj) if framework.decompose(obj) is None else None
    except ValueError:
        return None
