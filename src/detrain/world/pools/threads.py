"""Pools of threads: their tasks take turns if they may draw, and run side by side if not."""

from __future__ import annotations

import concurrent.futures
import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import wait as plain_wait
from multiprocessing import pool as _pool
from typing import TYPE_CHECKING, Any

from detrain.frameworks.calls import key_of_task
from detrain.world.pools import idle, order
from detrain.world.pools.task import Task, next_keys

if TYPE_CHECKING:
    from detrain.frameworks.calls import Keys
    from detrain.world.pools.turns import Turns

__all__ = ["ThreadPools"]


_module: Any = _pool

_OTHER_INTERPRETERS: Any = getattr(concurrent.futures, "InterpreterPoolExecutor", ())
"""Their tasks have generators of their own."""


class _Done:
    """A handle of a future, or of a result of `multiprocessing.pool`."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def wait(self, timeout: float) -> bool:
        """Wait so long; whether it is done."""
        if isinstance(self.of, Future):
            return bool(plain_wait([self.of], timeout).done)
        self.of.wait(timeout)
        return bool(self.of.ready())


class ThreadPools:
    """What stands before the methods of thread pools."""

    def __init__(self, turns: Turns, is_program: Callable[[Any], bool]) -> None:
        self._turns, self._is_program = turns, is_program

    def submitting(self, plain: Any) -> Any:
        """`ThreadPoolExecutor.submit`."""

        def submit(pool: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            if isinstance(pool, _OTHER_INTERPRETERS):
                return plain(pool, fn, *args, **kwargs)  # type: ignore[no-any-return]
            if isinstance(fn, Task):
                function, keys, args = fn.function, key_of_task(fn.keys, args[0]), args[1:]
            elif self._is_program(fn):
                function, keys = fn, key_of_task(next_keys(), 0)
            else:
                future: Future[Any] = plain(pool, fn, *args, **kwargs)
                return future

            def start(work: Any, here: bool) -> _Done:
                if here:
                    return _Done(_done_here(work, args, kwargs))
                return _Done(plain(pool, work, *args, **kwargs))

            if self._turns.is_free(function):
                future = start(self._turns.free(function, keys), False).of
            else:
                future = self._turns.take(pool, function, keys, start)
            return idle.submitted(order.number(future), of_map=isinstance(fn, Task))

        return submit

    def mapping(self, plain: Any) -> Any:
        """`ThreadPoolExecutor.map`."""

        def in_order(pool: Any, fn: Any, *iterables: Iterable[Any], **options: Any) -> Any:
            other = isinstance(pool, _OTHER_INTERPRETERS)
            if not iterables or other or not self._is_program(fn):
                return plain(pool, fn, *iterables, **options)
            return plain(pool, Task(fn, next_keys()), itertools.count(), *iterables, **options)

        return in_order

    def apply(
        self, plain: Any, pool: Any, function: Any, keys: Keys, args: Any, kwds: Any, *after: Any
    ) -> Any:
        """`ThreadPool.apply_async`; `after` are its callbacks."""

        def start(work: Any, here: bool) -> _Done:
            if here:
                return _Done(_set_here(pool, work, args, kwds, *after))
            return _Done(plain(pool, work, args, kwds, *after))

        if self._turns.is_free(function):
            return start(self._turns.free(function, keys), False).of
        return self._turns.take(pool, function, keys, start)

    def map_async(
        self, plain: Any, pool: Any, function: Any, keys: Keys, given: Any, *rest: Any
    ) -> Any:
        """`ThreadPool.map` and its kin; `given` are the arguments, each with its number first."""
        chunksize, callback, error_callback = rest
        if self._turns.is_free(function):
            free = _Numbered(self._turns, function, keys)
            return plain(pool, free, given, _module.starmapstar, chunksize, *rest[1:])
        outcomes = self._one_by_one(pool, function, keys, given)
        errors = [value for done, value in outcomes if not done]
        result = _module.ApplyResult(pool, callback, error_callback)
        values = [value for _, value in outcomes]
        result._set(0, (False, errors[0]) if errors else (True, values))
        return result

    def imap(
        self,
        plain: Any,
        pool: Any,
        function: Any,
        keys: Keys,
        iterable: Iterable[Any],
        chunksize: int,
    ) -> Any:
        """`ThreadPool.imap`; in turns, all is done before the first result is given."""
        if self._turns.is_free(function):
            free = _Numbered(self._turns, function, keys)
            return plain(pool, free.paired, enumerate(iterable), chunksize)
        outcomes = []
        try:
            for pair in enumerate(iterable):
                outcomes += self._one_by_one(pool, function, keys, [pair])
        except Exception as error:
            outcomes.append((False, error))
        results = _module.IMapIterator(pool)
        for place, outcome in enumerate(outcomes):
            results._set(place, outcome)
        results._set_length(len(outcomes))
        return results

    def _one_by_one(
        self, pool: Any, function: Any, keys: Keys, given: Any
    ) -> list[tuple[bool, Any]]:
        outcomes: list[tuple[bool, Any]] = []
        plain = _module.Pool.apply_async.__wrapped__
        for number, *args in given:
            own = key_of_task(keys, number)
            result = self.apply(plain, pool, function, own, args, {}, None, None)
            try:
                outcomes.append((True, result.get()))
            except Exception as error:
                outcomes.append((False, error))
        return outcomes


class _Numbered:
    """A function that does not draw, for maps whose arguments have their number first."""

    def __init__(self, turns: Turns, function: Any, keys: Keys) -> None:
        self._turns, self._function, self._keys = turns, function, keys

    def __call__(self, number: int, *args: Any) -> Any:
        return self._turns.free(self._function, key_of_task(self._keys, number))(*args)

    def paired(self, pair: tuple[int, Any]) -> Any:
        """The same, with one argument."""
        return self(*pair)


def _done_here(work: Any, args: Any, kwargs: Any) -> Future[Any]:
    """The future of a task that is done at once, by this thread."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    try:
        future.set_result(work(*args, **kwargs))
    except BaseException as error:
        future.set_exception(error)
    return future


def _set_here(pool: Any, work: Any, args: Any, kwds: Any, *after: Any) -> Any:
    result: Any = _module.ApplyResult(pool, *after)
    try:
        result._set(0, (True, work(*args, **kwds)))
    except Exception as error:
        result._set(0, (False, error))
    return result
