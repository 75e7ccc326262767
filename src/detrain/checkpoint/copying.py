"""Copying arrays behind the program's back, while it goes on.

Arrays that the framework says only an update changes are copied into memory of the snapshot, or
through a small room of the thread that writes them (`windows`). `finish` waits until all bytes are
copied: the framework calls it before anything may change one of them. Whether one was changed all
the same is asked of the framework at that moment (`Overlap.end`); then the snapshot is no good.

The threads call nothing of a framework and touch no object of the program.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from detrain.checkpoint.buffers import WINDOW, Once
from detrain.checkpoint.windows import Abandoned, Late, Row, Windows
from detrain.frameworks.find import memory_at
from detrain.trace.digest import digest_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detrain.checkpoint.buffers import Turn
    from detrain.frameworks.base import Still

__all__ = ["Abandoned", "Copying", "Late", "Overlap", "Pace", "Row"]

_ENOUGH = 4 * WINDOW
"""Bytes: how fast fewer are copied tells nothing."""


class Pace:
    """How long a loop lets a copy go on before it changes something, and how fast copies are."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=3)
        self._rate = 0.0

    def wanted_after(self, seconds: float) -> None:
        """The program was about to change something, so long after the copy began."""
        self._times.append(seconds)

    def copied(self, nbytes: int, seconds: float) -> None:
        """So many bytes took so long."""
        if nbytes >= _ENOUGH and seconds > 0:
            self._rate = nbytes / seconds

    def spare(self, nbytes: int) -> float:
        """Seconds after which that many must begin to be copied; 0 if that is not known."""
        if not self._times or not self._rate:
            return 0.0
        # Times differ, and a copy may have less of the machine than the last one had.
        return 0.8 * min(self._times) - 1.5 * nbytes / self._rate


class Copying:
    """Copies a row of arrays into a block, on a thread of its own.

    Those that are passing are left to who writes as long as `pace` says that there is time. If
    that is all, and there is, there is no such thread.
    """

    def __init__(self, row: Row, turn: Turn, pace: Pace | None = None) -> None:
        self._turn, self._pace = turn, pace or Pace()
        self.left, self.index = row.left, row.index
        self._windows = Windows(row, turn.memory, turn.room, turn.places)
        self._started = self._helped = self._hurry = False
        self._starting = threading.Lock()
        self._began = 0.0
        self._over = Once()
        self.waited = self._waited_for_turn = 0.0
        """Seconds that the program waited for it."""

    def begin(self) -> None:
        """From now on, the arrays must not be freed before `finish` or `cancel` has returned."""
        self._began = monotonic()

    def start(self) -> None:
        """Copy. Called by who writes, when all that comes before is written: only then is the block
        free.
        """
        self._turn.wait()
        self._waited_for_turn = monotonic() - self._began
        with self._starting:
            self._started = not self._windows.stopped
        if self._hurry or not self._windows.may_rest() or self._spare() <= 0:
            self._help()

    def _help(self) -> None:
        """Have a thread copy what who writes has not come to, if there is none yet."""
        with self._starting:
            if self._started and not self._helped and not self._windows.stopped:
                # Plain: to start an object of `threading` waits until the thread has been running.
                _thread.start_new_thread(self._run, ())
                self._helped = True

    def _spare(self) -> float:
        """Seconds until the rest must begin to be copied."""
        return self._pace.spare(self._windows.left()) - (monotonic() - self._began)

    @property
    def behind(self) -> float:
        """Seconds that the program waited for it because the one before was still being written."""
        return min(self.waited, self._waited_for_turn)

    def is_copied(self, name: str) -> bool:
        """Whether an array is in the block by now, or was copied at once."""
        if name not in self.index:
            return not self._windows.stopped
        return self._windows.is_copied(self.index[name]) and not self._windows.stopped

    def wait_for(self, name: str) -> None:
        """Wait until an array is in the block; `Abandoned` if it won't be."""
        if self._windows.stopped:
            raise Abandoned
        if name in self.index:
            if name in self.left:
                self._windows.hasten()
                self._help()
            self._windows.wait_for(self.index[name])

    def pieces(self) -> Iterator[memoryview]:
        """The bytes of those that are `left`, in order; each piece until the next is asked for."""
        before = monotonic()
        for piece in self._windows.pieces():
            with self._starting:
                if not self._helped and not self._windows.left():
                    self._over.set()
            yield piece
            now = monotonic()
            # Will there still be time when the next one is written?
            if not self._helped and self._spare() < now - before:
                self._help()
            before = now

    @property
    def digests(self) -> dict[str, str]:
        """Those that were taken so far."""
        return self._windows.digests

    def digest(self, name: str) -> str:
        """The digest of an array; `Abandoned` if it won't be copied."""
        digests = self._windows.digests
        if name not in digests:
            self.wait_for(name)
            digests[name] = digest_array(self._windows.wait_for(self.index[name]))
        return digests[name]

    def finish(self) -> None:
        """Wait until nothing of the program is read any more; then it may be changed."""
        began = monotonic()
        if not self._windows.stopped:
            self._pace.wanted_after(began - self._began)
        if not self._over.is_set():
            self._hurry = True
            self._windows.hasten()
            self._help()
            self._over.wait()
            self.waited += monotonic() - began

    def cancel(self) -> None:
        """No longer copy, and wait until nothing is read any more."""
        with self._starting:
            self._windows.stop()
        if self._helped:
            self._over.wait()
        else:
            self._windows.wait_for_front()
            self._over.set()
            self._turn.wait()

    def _run(self) -> None:
        try:
            self._copy_all()
        except BaseException:
            self._windows.stop()  # who waits for it must not wait for ever
            raise
        finally:
            self._windows.wait_for_front()
            self._over.set()

    def _copy_all(self) -> None:
        windows, nbytes, spent = self._windows, 0, 0.0
        while windows.left():
            now = monotonic()
            if windows.may_rest():
                spare = self._spare()
                if spare > 0:
                    windows.rest(spare)
                    continue
            if not windows.copy_last():
                break
            nbytes, spent = nbytes + WINDOW, spent + monotonic() - now
        self._pace.copied(nbytes, spent)


class Overlap:
    """A copy under way, and the frameworks that keep its arrays still."""

    def __init__(
        self, copying: Copying, still: Sequence[Still], *, compare: Sequence[Late]
    ) -> None:
        """`compare` these once more with the arrays, when the copy is finished."""
        self.copying, self._still, self._compare = copying, still, compare
        self._lock, self._owner = threading.RLock(), os.getpid()
        self._settled = self._is_good = False
        self._changed: set[str] = set()

    def begin(self) -> None:
        """What would change an array waits from now on until it is copied: who writes does that."""
        for each in self._still:
            each.begin(self.settle)
        self.copying.begin()

    def settle(self) -> None:
        """Finish the copy, and see whether anything changed under it. Any thread may call it."""
        if os.getpid() != self._owner:
            return  # a child that was forked meanwhile: nothing of its memory is being copied
        with self._lock:
            if self._settled:
                return
            self.copying.finish()
            self._changed |= set(self._different())
            for each in self._still:
                if not self._is_good:
                    self._changed |= each.changed()
                each.end()
            self._settled, self._still, self._compare = True, (), ()

    def _different(self) -> Iterator[str]:
        """Of the arrays that are to be compared, those that are not as they were copied."""
        try:
            for array in self._compare:
                now = digest_array(memory_at(array.address, array.nbytes))
                if now != self.copying.digest(array.name):
                    yield array.name
        except Abandoned:
            return

    @property
    def is_compared(self) -> bool:
        """Whether the arrays are compared once more when it is settled."""
        return bool(self._compare)

    def is_good(self) -> bool:
        """Whether nothing changed before all was copied: what changes later makes no difference.

        Asked by the thread that writes, when it has all bytes.
        """
        with self._lock:
            if self._settled:
                return not self._changed
            if not self.is_compared and not any(each.changed() for each in self._still):
                self._is_good = True
            return self._is_good

    def end(self) -> tuple[str, ...]:
        """Settle; the arrays that were changed while they were copied."""
        self.settle()
        return tuple(sorted(self._changed))
