"""The writer: what is done for a checkpoint behind the program's back, one job after the other.

The thread lives as long as there is something to do, so that a program which forks between two
checkpoints has no second thread. Errors of a job are its own business; one that it does not catch
is raised again on the program's side, at the next `check`.
"""

from __future__ import annotations

import _thread
import threading
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Writer"]


class Writer:
    """Does jobs in the order in which they come."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._running = False
        self._error: BaseException | None = None
        self.waited = 0.0
        """Seconds that the program waited for it."""
        self.worked = 0.0
        """Seconds that jobs took."""

    def submit(self, job: Callable[[], None]) -> None:
        """Have a job done."""
        with self._changed:
            self._jobs.append(job)
            if not self._running:
                self._running = True
                # Plain: to start an object of `threading` waits until the thread has been running.
                _thread.start_new_thread(self._run, ())

    @property
    def busy(self) -> bool:
        """Whether something is left to do."""
        return self._running

    def wait(self, left: int = 0) -> None:
        """Wait until at most that many jobs are left, the one under way included."""
        began = monotonic()
        with self._changed:
            self._changed.wait_for(lambda: len(self._jobs) <= left and (left or not self._running))
        self.waited += monotonic() - began
        self.check()

    def check(self) -> None:
        """Raise what a job did not catch."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._jobs:
                    self._running = False
                    self._changed.notify_all()
                    return
                job = self._jobs[0]
            began = monotonic()
            try:
                job()
            except BaseException as error:
                self._error = error
            self.worked += monotonic() - began
            with self._changed:
                self._jobs.popleft()
                self._changed.notify_all()
