"""Work that takes memory and the disk rather than Python, done by several threads.

Plain threads: those of pools belong to the program, whose tasks DETrain looks at before they run.
"""

from __future__ import annotations

import contextlib
import os
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["WORTH_A_THREAD", "Beside", "beside"]

WORTH_A_THREAD = 1 << 16
"""Bytes of an array that is worked on beside others."""

_THREADS = 4
"""At the most: memory is not faster than that."""


class Beside:
    """Tasks that are done while the thread which adds them goes on."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._most = min(_THREADS, os.cpu_count() or 1) - 1

    def add(self, task: Callable[[], object]) -> None:
        """Have a task done."""
        self._tasks.put(task)
        if len(self._threads) < self._most:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def finish(self) -> None:
        """Do what is left; the first error is raised when no task runs any more."""
        with contextlib.suppress(Empty):
            while not self._errors:
                self._do(self._tasks.get_nowait())
        self.stop()
        errors, self._errors = self._errors, []
        if errors:
            raise errors[0]

    def stop(self) -> None:
        """Do nothing more, and wait until no task runs."""
        with contextlib.suppress(Empty):
            while True:
                self._tasks.get_nowait()
        threads, self._threads = self._threads, []
        for _ in threads:
            self._tasks.put(None)
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._do(task)

    def _do(self, task: Callable[[], object] | None) -> None:
        try:
            if task is not None and not self._errors:
                task()
        except BaseException as error:
            self._errors.append(error)


def beside(tasks: Iterable[Callable[[], object]]) -> None:
    """Do tasks, several at a time; the first error is raised when no task runs any more."""
    work = Beside()
    for task in tasks:
        work.add(task)
    work.finish()
