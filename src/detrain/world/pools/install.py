"""Stands before Python's pools while a run is on.

Only tasks of the program count: functions of its own, and whatever its own code submits. What
libraries do among themselves is left alone.
"""

from __future__ import annotations

import concurrent.futures
import functools
import itertools
import multiprocessing.pool
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import _base as futures_base
from multiprocessing.pool import Pool, ThreadPool
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from detrain.frameworks.calls import CALLS, key_of_task
from detrain.world.pools import idle, order, task
from detrain.world.pools.judge import Judge, is_own
from detrain.world.pools.task import Paired, Start, Task, next_keys
from detrain.world.pools.threads import ThreadPools
from detrain.world.pools.turns import Turns

if TYPE_CHECKING:
    from detrain.plan import Plan

__all__ = ["Pools"]

_starmapstar: Any = vars(multiprocessing.pool)["starmapstar"]

_BETWEEN = tuple(
    f"{Path(file).parent}{os.sep}"
    for file in (concurrent.futures.__file__, multiprocessing.pool.__file__, __file__)
)
"""Files that stand between the program and a pool."""


_INHERITED = object()
_OURS = f"{Path(__file__).parent.parent.parent}{os.sep}"


class Pools:
    """Keys the tasks of a program, between `start` and `stop`."""

    def __init__(
        self,
        owns: Callable[[str], bool],
        plan: Plan | None,
        say: Callable[[str], None],
        *,
        unordered: bool = False,
    ) -> None:
        self._owns, self._unordered = functools.partial(_owns, owns), unordered
        judge = Judge(plan, self._owns)
        self._threads = ThreadPools(Turns(judge, say), self._is_program)
        self._plain: list[tuple[Any, str, Any]] = []

    def start(self) -> None:
        """Begin."""
        CALLS.put({})
        task.this_is_the_run(prepared=True)
        self._replace(ProcessPoolExecutor, "__init__", self._starting)
        self._replace(Pool, "__init__", self._starting)
        self._replace(ProcessPoolExecutor, "submit", self._submitting)
        self._replace(ProcessPoolExecutor, "map", self._mapping)
        self._replace(Pool, "apply_async", self._applying)
        self._replace(Pool, "_map_async", self._mapping_async)
        self._replace(Pool, "imap", self._imapping)
        self._replace(Pool, "imap_unordered", self._imapping_unordered)
        self._replace(ThreadPoolExecutor, "submit", self._threads.submitting)
        self._replace(ThreadPoolExecutor, "map", self._threads.mapping)
        if not self._unordered:
            for module in (concurrent.futures, futures_base):
                self._put(module, "as_completed", order.as_completed)
                self._put(module, "wait", order.wait)
            self._put(multiprocessing.pool, "ApplyResult", order.OrderedApply)
            self._put(multiprocessing.pool, "MapResult", order.OrderedMap)

    def stop(self) -> None:
        """Put Python's own back."""
        for owner, name, plain in reversed(self._plain):
            if plain is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, plain)
        self._plain.clear()
        task.this_is_the_run(prepared=False)
        CALLS.put({})

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        plain = getattr(owner, name)
        self._put(owner, name, functools.update_wrapper(make(plain), plain))

    def _put(self, owner: Any, name: str, new: Any) -> None:
        self._plain.append((owner, name, vars(owner).get(name, _INHERITED)))
        setattr(owner, name, new)

    def _is_program(self, function: Any) -> bool:
        """Whether a task is the program's: by its function, or by who submits it."""
        if isinstance(function, Task):
            return True
        if not callable(function):
            return False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
            frame = frame.f_back
        calls = frame is not None and self._owns(frame.f_code.co_filename)
        return calls or is_own(function, self._owns)

    # ---------------------------------------------------------------- processes

    def _starting(self, plain: Any) -> Any:
        """Have what a worker of a process pool does first keyed, and know the pool."""
        place = list(plain.__code__.co_varnames).index("initializer") - 1

        def starting(pool: Any, *args: Any, **kwargs: Any) -> None:
            given: Any = kwargs.get("initializer", args[place] if len(args) > place else None)
            asker = given if given is not None else type(pool)
            if not isinstance(pool, ThreadPool) and self._is_program(asker):
                keyed = Start(given, next_keys() if given is not None else {})
                if len(args) > place:
                    args = (*args[:place], keyed, *args[place + 1 :])
                else:
                    kwargs["initializer"] = keyed
            plain(pool, *args, **kwargs)
            idle.made(pool)

        return starting

    def _submitting(self, plain: Any) -> Any:
        def submit(pool: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            if _is_keyed(fn) or not self._is_program(fn):
                future: Future[Any] = plain(pool, fn, *args, **kwargs)
                return future
            future = plain(pool, Task(fn, next_keys()), 0, *args, **kwargs)
            return idle.submitted(order.number(future))

        return submit

    def _mapping(self, plain: Any) -> Any:
        def in_order(pool: Any, fn: Any, *iterables: Iterable[Any], **options: Any) -> Any:
            if not iterables or not self._is_program(fn):
                return plain(pool, fn, *iterables, **options)
            keyed = Task(fn, next_keys())
            return plain(pool, keyed, itertools.count(), *iterables, **options)

        return in_order

    def _applying(self, plain: Any) -> Any:
        def apply_async(
            pool: Any,
            func: Any,
            args: Any = (),
            kwds: Any = {},  # noqa: B006
            callback: Any = None,
            error_callback: Any = None,
        ) -> Any:
            if not self._is_program(func):
                return plain(pool, func, args, kwds, callback, error_callback)
            keys = next_keys()
            if isinstance(pool, ThreadPool):
                keys = key_of_task(keys, 0)
                return self._threads.apply(
                    plain, pool, func, keys, args, kwds, callback, error_callback
                )
            return plain(pool, Task(func, keys), (0, *args), kwds, callback, error_callback)

        return apply_async

    def _mapping_async(self, plain: Any) -> Any:
        """What stands before `map`, `starmap` and their asynchronous kin."""

        def map_async(
            pool: Any,
            func: Any,
            iterable: Iterable[Any],
            mapper: Any,
            chunksize: int | None = None,
            callback: Any = None,
            error_callback: Any = None,
        ) -> Any:
            if not self._is_program(func):
                return plain(pool, func, iterable, mapper, chunksize, callback, error_callback)
            pool._check_running()
            keys = next_keys()
            if mapper is _starmapstar:
                given = [(number, *each) for number, each in enumerate(iterable)]
            else:
                given = list(enumerate(iterable))
            if isinstance(pool, ThreadPool):
                return self._threads.map_async(
                    plain, pool, func, keys, given, chunksize, callback, error_callback
                )
            return plain(
                pool, Task(func, keys), given, _starmapstar, chunksize, callback, error_callback
            )

        return map_async

    def _imapping(self, plain: Any) -> Any:
        def imap(pool: Any, func: Any, iterable: Iterable[Any], chunksize: int = 1) -> Any:
            if not self._is_program(func):
                return plain(pool, func, iterable, chunksize)
            keys = next_keys()
            if isinstance(pool, ThreadPool):
                return self._threads.imap(plain, pool, func, keys, iterable, chunksize)
            return plain(pool, Paired(func, keys), enumerate(iterable), chunksize)

        return imap

    def _imapping_unordered(self, plain: Any) -> Any:
        if not self._unordered:
            return self._imapping(Pool.imap.__wrapped__)  # type: ignore[attr-defined]
        return self._imapping(plain)


def _owns(owns: Callable[[str], bool], file: str) -> bool:
    """Whether a file is the program's: DETrain, which has threads too, may lie beside it."""
    return owns(file) and not file.startswith(_OURS)


def _is_keyed(function: Any) -> bool:
    """Whether tasks have their keys already: those of a map are submitted in chunks."""
    if isinstance(function, functools.partial):
        return any(isinstance(each, Task) for each in function.args)
    return isinstance(function, Task)
