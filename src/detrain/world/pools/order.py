"""Results in the order of submission, for what asks for them in the order of completion.

Every future that the program gets has a number. `as_completed` and `wait` go by it; of sets of
futures the elements come by it; callbacks of a process pool are called by it.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future
from concurrent.futures import as_completed as plain_as_completed
from concurrent.futures import wait as plain_wait
from concurrent.futures._base import DoneAndNotDoneFutures
from multiprocessing.pool import ApplyResult, MapResult
from typing import Any

__all__ = ["InOrder", "OrderedApply", "OrderedMap", "as_completed", "number", "wait"]

Futures = Iterable["Future[Any]"]

_NUMBER, _GIVEN = "_detrain_number", "_detrain_given"
_numbers = itertools.count()


def number(future: Future[Any]) -> Future[Any]:
    """Number a future that was just submitted."""
    future.__dict__[_NUMBER] = next(_numbers)
    return future


def _number_of(future: Any) -> int:
    found: int = future.__dict__[_NUMBER]
    return found


def _are_numbered(futures: Futures) -> bool:
    return all(_NUMBER in getattr(each, "__dict__", {}) for each in futures)


class InOrder(set[Any]):
    """A set of futures whose elements come in the order of submission."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=_number_of))

    def pop(self) -> Any:
        """Take the first."""
        for each in self:
            self.remove(each)
            return each
        raise KeyError("pop from an empty set")

    def copy(self) -> Any:
        """The same elements."""
        return _in_order(set.copy(self))

    def __or__(self, other: Any) -> Any:
        return _in_order(set.__or__(self, other))

    def __and__(self, other: Any) -> Any:
        return _in_order(set.__and__(self, other))

    def __sub__(self, other: Any) -> Any:
        return _in_order(set.__sub__(self, other))

    def union(self, *others: Any) -> Any:
        """The elements of all."""
        return _in_order(set.union(self, *others))

    def difference(self, *others: Any) -> Any:
        """The elements that no other has."""
        return _in_order(set.difference(self, *others))


def _in_order(found: Any) -> Any:
    is_set = isinstance(found, set)
    return InOrder(found) if is_set and _are_numbered(found) else found


def as_completed(fs: Futures, timeout: float | None = None) -> Iterator[Future[Any]]:
    """Each future when it is done, the first submitted first."""
    futures = set(fs)
    if not _are_numbered(futures):
        yield from plain_as_completed(futures, timeout)
        return
    end = None if timeout is None else time.monotonic() + timeout
    todo = sorted(futures, key=_number_of, reverse=True)
    total = len(todo)
    while todo:
        left = None if end is None else max(0.0, end - time.monotonic())
        if not plain_wait([todo[-1]], left).done:
            raise TimeoutError(f"{len(todo)} (of {total}) futures unfinished")
        yield todo.pop()


def wait(fs: Futures, timeout: float | None = None, return_when: str = "ALL_COMPLETED") -> Any:
    """Wait as Python does; the first to be done is the first submitted that was not given before.

    With a timeout the clock decides, as it does without DETrain.
    """
    futures = set(fs)
    if not _are_numbered(futures):
        return plain_wait(futures, timeout, return_when)
    if timeout is not None or return_when not in (FIRST_COMPLETED, FIRST_EXCEPTION):
        found = plain_wait(futures, timeout, return_when)
        return DoneAndNotDoneFutures(InOrder(found.done), InOrder(found.not_done))
    done = InOrder(each for each in futures if _GIVEN in each.__dict__)
    for each in sorted(futures - done, key=_number_of):
        plain_wait([each])
        each.__dict__[_GIVEN] = True
        done.add(each)
        failed = not each.cancelled() and each.exception() is not None
        if return_when == FIRST_COMPLETED or failed:
            break
    return DoneAndNotDoneFutures(done, InOrder(futures - done))


class _Queue:
    """Results of one pool that have callbacks: each is set after those submitted before it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Any] = deque()
        self._arrived: dict[int, Any] = {}
        self._is_setting = False

    def join(self, result: Any) -> None:
        """A result will come."""
        with self._lock:
            self._waiting.append(result)

    def arrived(self, result: Any, complete: Any) -> None:
        """A result is there: set it, and those after it that waited for it."""
        with self._lock:
            self._arrived[id(result)] = complete
            if self._is_setting:
                return
            self._is_setting = True
        try:
            while (complete := self._next()) is not None:
                complete()  # without the lock: it calls the program
        finally:
            self._is_setting = False

    def _next(self) -> Any:
        with self._lock:
            if self._waiting and id(self._waiting[0]) in self._arrived:
                return self._arrived.pop(id(self._waiting.popleft()))
            self._is_setting = False
            return None


_queues: weakref.WeakKeyDictionary[Any, _Queue] = weakref.WeakKeyDictionary()


class OrderedApply(ApplyResult):  # type: ignore[type-arg]
    """The result of `apply_async`; its callback is called after those submitted before."""

    def __init__(self, pool: Any, callback: Any, error_callback: Any) -> None:
        if isinstance(self, OrderedApply):  # Python's `MapResult` calls this by its name
            self._order = _order_of(self, pool, callback or error_callback)
        ApplyResult.__init__(self, pool, callback, error_callback)

    def _set(self, i: Any, obj: Any) -> None:
        plain = super()._set  # type: ignore[misc]
        if self._order is None:
            plain(i, obj)
        else:
            self._order.arrived(self, lambda: plain(i, obj))


class OrderedMap(MapResult):  # type: ignore[type-arg]
    """The result of `map_async`; likewise."""

    def __init__(
        self, pool: Any, chunksize: int, length: int, callback: Any, error_callback: Any
    ) -> None:
        self._order = _order_of(self, pool, (callback or error_callback) and length)
        super().__init__(pool, chunksize, length, callback, error_callback)

    def _set(self, i: Any, success_result: Any) -> None:
        plain = super()._set  # type: ignore[misc]
        if self._order is None or self._number_left > 1:  # type: ignore[attr-defined]
            plain(i, success_result)
        else:
            self._order.arrived(self, lambda: plain(i, success_result))


def _order_of(result: Any, pool: Any, has_callback: Any) -> _Queue | None:
    if not has_callback:
        return None
    order = _queues.setdefault(pool, _Queue())
    order.join(result)
    return order
