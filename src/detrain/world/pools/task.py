"""What a worker does: a function of the program, with what its draws are keyed by.

A `Task` is sent to processes, so it can be pickled where the function can, and unpickling it
imports no framework.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from types import FunctionType
from typing import TYPE_CHECKING, Any

from detrain.frameworks import find, held, libraries
from detrain.frameworks.calls import CALLS, Keys, key_of_task, nested
from detrain.world.pools.drawing import drawing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Paired", "Start", "Task", "next_keys", "running", "this_is_the_run"]

Holding = tuple[held.Held, ...]

_WATCHED = 3
_LOOK = 2.0


class _Local(threading.local):
    keys: Keys | None = None
    count = 0


_LOCAL = _Local()


def next_keys() -> Keys:
    """The keys of another call of a pool, made by this thread."""
    if _LOCAL.keys is not None:
        _LOCAL.count += 1
        return nested(_LOCAL.keys, _LOCAL.count)
    stands = {each.name: each.stand() for each in find.loaded()}
    return CALLS.next(
        {name: hashlib.blake2b(at, digest_size=16).hexdigest() for name, at in stands.items()}
    )


class running:  # noqa: N801
    """`with running(keys):` this thread does a task; calls of pools in it are keyed by the task."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def __enter__(self) -> None:
        self._before = _LOCAL.keys, _LOCAL.count
        _LOCAL.keys, _LOCAL.count = self._keys, 0

    def __exit__(self, *_: object) -> None:
        _LOCAL.keys, _LOCAL.count = self._before


class Task:
    """A function whose calls are told apart by a number, for a worker that is a process."""

    def __init__(self, function: Callable[..., Any], keys: Keys) -> None:
        self.function, self.keys = function, keys

    def __call__(self, index: int, /, *args: Any, **kwargs: Any) -> Any:
        """Do it."""
        _prepare()
        keys = key_of_task(self.keys, index)
        holding, watched = _PROCESS.held_by(self.function)
        with running(keys), drawing(keys, holding):
            result = self.function(*args, **kwargs)
        if watched:
            _look_for_more(self.function, holding)
        return result


class Paired(Task):
    """The same, for maps that give one argument: the number and the argument."""

    def __call__(self, pair: tuple[int, Any], /) -> Any:  # type: ignore[override]
        """Do it."""
        return super().__call__(*pair)


class Start:
    """The first thing that a worker does, keyed: all workers draw the same in it.

    A worker ends when the run is killed: it would wait for tasks for ever, beside those of the
    next attempt.
    """

    def __init__(self, initializer: Callable[..., Any] | None, keys: Keys) -> None:
        self.initializer, self.keys = initializer, keys

    def __call__(self, *args: Any) -> None:
        """Do it."""
        parent = os.getppid()
        threading.Thread(target=_end_with, args=(parent,), name="detrain", daemon=True).start()
        if self.initializer is not None:
            _prepare()
            with running(self.keys), drawing(self.keys):
                self.initializer(*args)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


class _Process:
    """What this process has done already."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()
        self._looked: dict[FunctionType, tuple[int, Holding]] = {}

    def held_by(self, function: Any) -> tuple[Holding, bool]:
        """The generators that a function holds, and whether it is one of its first tasks.

        What a function holds is looked for the first times, and then ever more rarely; what other
        callables hold, which come with each task, is looked for each time.
        """
        if not isinstance(function, FunctionType):
            return _look(function), True
        done, found = self._looked.get(function, (0, ()))
        if done < _WATCHED or not done & done - 1:
            found = _look(function)
        self._looked[function] = done + 1, found
        return found, done < _WATCHED


def _look(function: Any) -> Holding:
    return held.look({"task": function, **libraries.holders()}).held


_PROCESS = _Process()


def this_is_the_run(*, prepared: bool) -> None:
    """Whether frameworks are prepared by the run, in this process and those forked from it."""
    _PROCESS.prepared = set(find.NAMES) if prepared else set()


def _prepare() -> None:
    """Choose what a run chooses, in a process that was not forked from it."""
    for framework in find.loaded():
        if framework.name not in _PROCESS.prepared:
            _PROCESS.prepared.add(framework.name)
            framework.prepare()


def _look_for_more(function: Any, holding: Holding) -> None:
    """Say if a task has made a generator and kept it: what is drawn from it hangs on the worker."""
    known = {each.path for each in holding}
    new = [each.path for each in _look(function) if each.path not in known]
    if new:
        warnings.warn(
            f"{new[0]} is a generator of random numbers that a task made and kept for later tasks "
            "of the same worker; what the first task drew from it depends on the worker. Make it "
            "where the program begins, or in the pool's initializer",
            RuntimeWarning,
            stacklevel=3,
        )
