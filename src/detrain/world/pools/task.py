"""What a worker does: a function of the program, with what its draws are keyed by.

A `Task` is sent to processes, so it can be pickled where the function can, and unpickling it
imports no framework.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import warnings
from typing import TYPE_CHECKING, Any

from detrain.frameworks import find, held
from detrain.frameworks.calls import CALLS, Keys, key_of_task, nested
from detrain.world.pools.drawing import drawing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Paired", "Start", "Task", "next_keys", "running", "this_is_the_run"]

_UNSEEDED = "seeds"
"""The position that counts generators made without a seed: it has the run's seed in it, so that a
program that seeds numpy would draw other numbers in every run."""
_WATCHED = 3


class _Local(threading.local):
    keys: Keys | None = None
    count = 0


_LOCAL = _Local()


def next_keys() -> Keys:
    """The keys of another call of a pool, made by this thread."""
    if _LOCAL.keys is not None:
        _LOCAL.count += 1
        return nested(_LOCAL.keys, _LOCAL.count)
    return CALLS.next({each.name: _stand(each.positions()) for each in find.loaded()})


def _stand(positions: dict[str, str]) -> str:
    seeded = {name: text for name, text in positions.items() if name != _UNSEEDED}
    text = json.dumps(seeded, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


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
        keys, roots = key_of_task(self.keys, index), {"task": self.function}
        with running(keys), drawing(keys, roots) as drawn:
            result = self.function(*args, **kwargs)
            _look_for_more(roots, drawn.paths())
            return result


class Paired(Task):
    """The same, for maps that give one argument: the number and the argument."""

    def __call__(self, pair: tuple[int, Any], /) -> Any:  # type: ignore[override]
        """Do it."""
        return super().__call__(*pair)


class Start:
    """The first thing that a worker does, keyed: all workers draw the same in it."""

    def __init__(self, initializer: Callable[..., Any], keys: Keys) -> None:
        self.initializer, self.keys = initializer, keys

    def __call__(self, *args: Any) -> None:
        """Do it."""
        _prepare()
        with running(self.keys), drawing(self.keys):
            self.initializer(*args)


class _Process:
    """What this process has done already."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()
        self.looked = 0
        self.pid = os.getpid()


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


def _look_for_more(roots: dict[str, Any], known: set[str]) -> None:
    """Say if a task has made a generator and kept it: what is drawn from it hangs on the worker."""
    if _PROCESS.pid != os.getpid():
        _PROCESS.pid, _PROCESS.looked = os.getpid(), 0
    _PROCESS.looked += 1
    if _PROCESS.looked > _WATCHED:
        return
    new = [each.path for each in held.look(roots).held if each.path not in known]
    if new:
        warnings.warn(
            f"{new[0]} is a generator of random numbers that a task made and kept for later tasks "
            "of the same worker; what the first task drew from it depends on the worker. Make it "
            "where the program begins, or in the pool's initializer",
            RuntimeWarning,
            stacklevel=3,
        )
