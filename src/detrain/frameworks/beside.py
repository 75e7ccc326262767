"""Work that takes memory and the disk rather than Python, done by several threads.

Plain threads: those of pools belong to the program, whose tasks DETrain looks at before they run.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["WORTH_A_THREAD", "beside"]

WORTH_A_THREAD = 1 << 20
"""Bytes of an array that is worked on beside others."""

_THREADS = 4
"""At the most: memory is not faster than that."""


def beside(tasks: Iterable[Callable[[], object]]) -> None:
    """Do tasks, several at a time; the first error is raised when no task runs any more."""
    left, errors = deque(tasks), list[BaseException]()

    def work() -> None:
        while not errors:
            try:
                task = left.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:
                errors.append(error)

    helpers = min(_THREADS, os.cpu_count() or 1, len(left)) - 1
    threads = [threading.Thread(target=work, daemon=True) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
