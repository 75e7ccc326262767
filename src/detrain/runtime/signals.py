"""Signals that ask for a checkpoint: SIGUSR1, and SIGTERM, after which the process ends.

A handler only makes a note; the next head of a training loop takes the checkpoint, so that it is
one like any other. The program's own handlers are called as always, right away. A program that
handles SIGTERM itself decides itself when to end; any other one ends with `EXIT_CODE` as soon as
the checkpoint is published, or when the grace period is over: then the newest one that there is
stays the newest.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["EXIT_CODE", "Preempted", "Signals"]

EXIT_CODE = 75
"""EX_TEMPFAIL: try again later. The same command goes on where this one was."""

_WATCHED = (signal.SIGTERM, signal.SIGUSR1)


class Preempted(SystemExit):
    """The run was asked to end, and its state is saved."""


class Signals:
    """Stands before the handlers of two signals between `start` and `stop`, on the main thread."""

    def __init__(
        self,
        grace: float,
        say: Callable[[str], None],
        expired: Callable[[], None],
        leave: Callable[[int], Any] = os._exit,
    ) -> None:
        self._grace, self._say, self._expired, self._leave = grace, say, expired, leave
        self._owner = os.getpid()
        self._plain: dict[str, Any] = {}
        self._theirs: dict[int, Any] = {}
        self._before: dict[int, Any] = {}
        self.asked: str = ""
        """The signal that asks for a checkpoint; "" if none does."""
        self.ends = False
        """Whether the process is to end after it."""
        self.since: int | None = None
        """The first step at whose end the request was seen."""

    def start(self) -> None:
        """Begin; does nothing on another thread, where signals can't be handled."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _WATCHED:
            before = signal.getsignal(number)
            if before is None:  # installed by other than Python: it can't be chained
                continue
            self._before[number] = before
            if before not in (signal.SIG_DFL, signal.SIG_IGN):
                self._theirs[number] = before
            signal.signal(number, self._arrived)
        self._plain = {"signal": signal.signal, "getsignal": signal.getsignal}

        # Plain functions: a program that imports one by name must not hold this object by it.
        def setting(signalnum: Any, handler: Any) -> Any:
            return self._set(signalnum, handler)

        def getting(signalnum: Any) -> Any:
            return self._get(signalnum)

        signal.signal = setting
        signal.getsignal = getting
        _standing.add(self)

    def _forked(self) -> None:
        """In a child: what the program would have there, at once.

        A handler in Python runs when the interpreter gets to it. A worker that waits for a lock
        would never end by a signal that came right before.
        """
        for number, before in self._before.items():
            with contextlib.suppress(ValueError):  # forked in the midst of something, by a library
                self._plain["signal"](number, self._theirs.get(number, before))

    def stop(self) -> None:
        """Put everything back; handlers that the program set stay."""
        _standing.discard(self)
        for name, plain in self._plain.items():
            setattr(signal, name, plain)
        self._plain = {}
        for number, before in self._before.items():
            signal.signal(number, self._theirs.get(number, before))
        self._before = {}

    def done(self) -> None:
        """The checkpoint that was asked for is there."""
        self.asked, self.since = "", None

    def _set(self, number: Any, handler: Any) -> Any:
        """The program sets a handler: it gets those that we stand before, too."""
        if number not in self._before or os.getpid() != self._owner:
            return self._plain["signal"](number, handler)
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("signal only works in main thread of the main interpreter")
        before = self._get(number)
        self._theirs[number] = handler
        return before

    def _get(self, number: Any) -> Any:
        if number not in self._before or os.getpid() != self._owner:
            return self._plain["getsignal"](number)
        return self._theirs.get(number, self._before[number])

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        theirs = self._theirs.get(number)
        if os.getpid() != self._owner:  # a child that nobody told that it is one
            self._forked()
            os.kill(os.getpid(), number)
            return
        if theirs is not signal.SIG_IGN:
            self._note(number, ends=number == signal.SIGTERM and not callable(theirs))
        if callable(theirs):
            theirs(number, frame)

    def _note(self, number: int, *, ends: bool) -> None:
        name = signal.Signals(number).name
        if ends and not self.ends:
            timer = threading.Timer(self._grace, self._expire)
            timer.daemon = True
            timer.start()
        if not self.asked:
            self._say(f"{name}: a checkpoint is taken at the next step that allows one")
        self.asked, self.ends = self.asked or name, self.ends or ends

    def _expire(self) -> None:
        """The grace period is over: leave at once, whatever the program is doing."""
        if self.ends:
            self._expired()
            time.sleep(0)
            self._leave(EXIT_CODE)


_standing: weakref.WeakSet[Signals] = weakref.WeakSet()


def _tell_child() -> None:
    for each in list(_standing):
        each._forked()


os.register_at_fork(after_in_child=_tell_child)
