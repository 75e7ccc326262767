"""What a task of a pool gave: a future, or a result of `multiprocessing.pool`, that is done.

The task itself is not saved, and need not be: a task that is not done is waited for, and its value
is a value like any other. One that failed, was cancelled or does not end is a part of the process.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from concurrent.futures import Future
from concurrent.futures import wait as plain_wait
from multiprocessing.pool import ApplyResult
from typing import TYPE_CHECKING, Any

from detrain.capture.form import Form, Pairs, type_name
from detrain.state import Node

if TYPE_CHECKING:
    from detrain.capture.restore import Restore
    from detrain.capture.walk import Walk

__all__ = ["OUTCOMES", "OutcomeForm", "has_outcome"]

OUTCOMES: tuple[Any, ...] = (Future, ApplyResult)

_PATIENCE = 10.0
_earlier = itertools.count(-(1 << 62))
_endless: weakref.WeakSet[Any] = weakref.WeakSet()


def has_outcome(obj: Any) -> bool:
    """Whether an object is a task's result that is there; it is waited for, once."""
    if isinstance(obj, Future):
        if not obj.done() and obj not in _endless:
            plain_wait([obj], _PATIENCE)
        if not obj.done():
            _endless.add(obj)
        return obj.done() and not obj.cancelled() and obj.exception() is None
    if isinstance(obj, ApplyResult):
        if not obj.ready() and obj not in _endless:
            obj.wait(_PATIENCE)
        if not obj.ready():
            _endless.add(obj)
        return obj.ready() and obj.successful()
    return False


class OutcomeForm(Form):
    """A task's result that is there. It is made anew, since it never changes."""

    name = "outcome"
    mutable = False

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        kind = "future" if isinstance(obj, Future) else "result"
        return Node("outcome", type_name(type(obj)), (walk.ref(_value(obj), path),), text=kind)

    def matches(self, node: Node, live: Any) -> bool:
        return isinstance(live, Future if node.text == "future" else ApplyResult)

    def children(self, node: Node, live: Any) -> Pairs:
        return [(node.items[0], _value(live))] if has_outcome(live) else []

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        value = restore.get(node.items[0])
        if node.text == "future":
            future: Future[Any] = Future()
            future.set_result(value)
            # By this number futures come in the order of submission: it came before all new ones.
            future.__dict__["_detrain_number"] = next(_earlier)
            return future
        result: Any = object.__new__(ApplyResult)
        result.__dict__.update(
            _pool=None, _job=-1, _cache={}, _callback=None, _error_callback=None,
            _event=threading.Event(), _success=True, _value=value,
        )  # fmt: skip
        result._event.set()
        return result


def _value(obj: Any) -> Any:
    return obj.result() if isinstance(obj, Future) else obj.get()
