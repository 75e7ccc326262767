"""The writer: what is done for a checkpoint behind the program's back, one job after the other.

The thread stays for a while when there is nothing left to do: the next job may come soon, and to
start a thread takes ten times as long as to wake one. Before the program forks, a thread that has
nothing to do is sent away, so that the program has no second one. Errors of a job are its own
business; one that it does not catch is raised again on the program's side, at the next `check`.
"""

from __future__ import annotations

import _thread
import os
import threading
import weakref
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Writer"]


_STAY = 1.0
"""Seconds for which the thread waits for another job."""

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


class Writer:
    """Does jobs in the order in which they come."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        """Those to be done, the one under way included."""
        self._is_there = self._may_stay = False
        _writers.add(self)
        self._error: BaseException | None = None
        self.waited = 0.0
        """Seconds that the program waited for it."""
        self.worked = 0.0
        """Seconds that jobs took."""

    def submit(self, job: Callable[[], None]) -> None:
        """Have a job done."""
        with self._changed:
            self._jobs.append(job)
            if self._is_there:
                if len(self._jobs) == 1:  # otherwise it is at work, and will come to this one
                    self._changed.notify_all()
            else:
                # Plain: to start an object of `threading` waits until the thread has been running.
                _thread.start_new_thread(self._run, ())
                self._is_there = self._may_stay = True

    def send_away(self) -> None:
        """If there is nothing to do, have no thread until there is."""
        with self._changed:
            if not self._jobs:
                self._may_stay = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_there)

    @property
    def busy(self) -> bool:
        """Whether something is left to do."""
        return bool(self._jobs)

    def wait(self, left: int = 0) -> None:
        """Wait until at most that many jobs are left, the one under way included."""
        began = monotonic()
        with self._changed:
            self._changed.wait_for(lambda: len(self._jobs) <= left)
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
                self._changed.wait_for(lambda: self._jobs or not self._may_stay, _STAY)
                if not self._jobs:
                    self._is_there = False
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


def _before_fork() -> None:
    for writer in list(_writers):
        writer.send_away()


os.register_at_fork(before=_before_fork)
