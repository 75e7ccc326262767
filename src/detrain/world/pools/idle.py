"""Which pools there are, and which of their tasks a checkpoint has to wait for.

Workers without a task hold nothing that counts: the program makes the pool again when it is
resumed, and what tasks draw is keyed. So they don't stand in the way of a checkpoint. A task that
was submitted and is not done does: it is waited for. Tasks of a map that is being looped over are
not waited for, as the loop asks for them again when it is resumed.
"""

from __future__ import annotations

import time
import weakref
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import wait as plain_wait
from multiprocessing.pool import IMapIterator, Pool, ThreadPool
from typing import Any

__all__ = ["made", "settle", "submitted", "workers"]

_PATIENCE = 10.0
"""Seconds that a checkpoint waits for tasks; for those that it has waited for, not again."""

_pools: weakref.WeakSet[Any] = weakref.WeakSet()
_pending: weakref.WeakSet[Any] = weakref.WeakSet()
_endless: weakref.WeakSet[Any] = weakref.WeakSet()


def made(pool: Any) -> None:
    """There is another pool."""
    _pools.add(pool)


def submitted(future: Future[Any], *, of_map: bool = False) -> Future[Any]:
    """There is another task; one of a map is asked for again."""
    if not of_map and not future.done():
        _pending.add(future)
    return future


def workers() -> set[int]:
    """The process numbers of all workers of pools."""
    found: set[int] = set()
    for pool in list(_pools):
        if isinstance(pool, ProcessPoolExecutor):
            found.update(pool._processes or ())
        elif isinstance(pool, Pool) and not isinstance(pool, ThreadPool):
            found.update(each.pid for each in pool._pool)  # type: ignore[attr-defined]
    return found


def settle() -> int:
    """Wait for tasks that a checkpoint can't be taken without; how many are still not done."""
    if not _pending and not _pools:
        return 0
    tasks = _tasks()
    end = time.monotonic() + _PATIENCE
    for each in tasks:
        left = 0.0 if each in _endless else max(0.0, end - time.monotonic())
        if isinstance(each, Future):
            plain_wait([each], left)
        else:
            each.wait(left)
        if not _is_done(each):
            _endless.add(each)
    return sum(not _is_done(each) for each in tasks)


def _tasks() -> list[Any]:
    for each in [each for each in _pending if each.done()]:
        _pending.discard(each)
    found: list[Any] = list(_pending)
    for pool in list(_pools):
        if isinstance(pool, Pool):
            results = list(pool._cache.values())  # type: ignore[attr-defined]
            found += [each for each in results if not isinstance(each, IMapIterator)]
    return found


def _is_done(each: Any) -> bool:
    return bool(each.done() if isinstance(each, Future) else each.ready())
