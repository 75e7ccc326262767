"""Copying arrays behind the program's back, while it goes on.

Arrays that the framework says only an update changes are copied by a thread, into memory of the
snapshot, and digested while they are in the cache. `finish` waits until all bytes are copied: the
framework calls it before anything may change one of them. Whether one was changed all the same is
asked of the framework at that moment (`Overlap.end`); then the snapshot is no good.

The thread calls nothing of a framework and touches no object of the program.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from detrain.checkpoint.buffers import address_of
from detrain.frameworks.find import memory_at
from detrain.trace.digest import digest_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detrain.checkpoint.buffers import Turn
    from detrain.frameworks.base import Still

__all__ = ["Abandoned", "Copying", "Late", "Overlap"]

_CHUNK = 256 * 1024
"""Bytes that are copied and then digested: they are still in the cache."""


class Abandoned(Exception):
    """A snapshot is not needed any more, or could not be copied."""


class Late(NamedTuple):
    """An array that is copied while the program goes on: from where, into what."""

    name: str
    address: int
    into: memoryview


class Copying:
    """Copies some arrays, in order, on a thread of its own."""

    def __init__(self, arrays: Sequence[Late], turn: Turn) -> None:
        self._arrays, self._turn = arrays, turn
        self._index = {array.name: number for number, array in enumerate(arrays)}
        self._changed = threading.Condition()
        self._copied = 0
        self._digests: dict[str, str] = {}
        self._started = self._hurry = self._stop = False
        self._over = threading.Event()
        self.waited = self._waited_for_turn = 0.0
        """Seconds that the program waited for it."""

    def start(self) -> None:
        """Begin. The arrays must not be freed before `finish` or `cancel` has returned."""
        self._started = True
        # Plain: to start an object of `threading` waits until the thread has been running.
        _thread.start_new_thread(self._run, ())

    @property
    def behind(self) -> float:
        """Seconds that the program waited for it because the one before was still being written."""
        return min(self.waited, self._waited_for_turn)

    def covers(self, name: str) -> bool:
        """Whether an array is among these."""
        return name in self._index

    def is_copied(self, name: str) -> bool:
        """Whether an array is copied by now, or was copied at once."""
        return self._index.get(name, -1) < self._copied and not self._stop

    def wait_for(self, name: str) -> None:
        """Wait until an array is copied; `Abandoned` if it won't be."""
        number = self._index.get(name, -1)
        if self._copied <= number:
            with self._changed:
                self._changed.wait_for(lambda: self._copied > number or self._stop)
        if self._stop:
            raise Abandoned

    def digest(self, name: str) -> str:
        """Wait for the digest of an array; `Abandoned` if it won't be copied."""
        if name not in self._digests:
            with self._changed:
                self._changed.wait_for(lambda: name in self._digests or self._stop)
        if self._stop:
            raise Abandoned
        return self._digests[name]

    def finish(self) -> None:
        """Wait until nothing of the program is read any more; then it may be changed."""
        self._hurry = True
        began = monotonic()
        self._over.wait()
        self.waited += monotonic() - began

    def cancel(self) -> None:
        """No longer copy, and wait until nothing is read any more."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        if self._started:
            self._over.wait()
        else:
            self._turn.wait()

    def _run(self) -> None:
        try:
            late = self._copy_all()
            self._over.set()
            for array in late:
                if self._stop:
                    return
                self._digests[array.name] = digest_array(array.into)
                self._tell(0)
        except BaseException:
            with self._changed:  # who waits for it must not wait for ever
                self._stop = True
                self._changed.notify_all()
            raise
        finally:
            self._over.set()

    def _copy_all(self) -> list[Late]:
        """Copy; gives those that there was no time to digest."""
        late = []
        began = monotonic()
        self._turn.wait()
        self._waited_for_turn = monotonic() - began
        for array in self._arrays:
            if self._stop:
                break
            if not self._copy(array):
                late.append(array)
            self._tell()
        return late

    def _tell(self, copied: int = 1) -> None:
        with self._changed:
            self._copied += copied
            self._changed.notify_all()

    def _copy(self, array: Late) -> bool:
        """Copy an array; False if there was no time to digest it."""
        target, nbytes, at = address_of(array.into), len(array.into), 0
        running = xxhash.xxh3_128()
        while at < nbytes and not self._stop:
            if self._hurry:
                ctypes.memmove(target + at, array.address + at, nbytes - at)
                return False
            count = min(_CHUNK, nbytes - at)
            ctypes.memmove(target + at, array.address + at, count)
            running.update(array.into[at : at + count])
            at += count
        self._digests[array.name] = running.hexdigest()
        return True


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
        """Start to copy; what would change an array waits from now on."""
        for each in self._still:
            each.begin(self.settle)
        self.copying.start()

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
                changed = each.end()
                self._changed |= set() if self._is_good else changed
            self._settled, self._still, self._compare = True, (), ()

    def _different(self) -> Iterator[str]:
        """Of the arrays that are to be compared, those that are not as they were copied."""
        try:
            for array in self._compare:
                now = digest_array(memory_at(array.address, len(array.into)))
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
            if not self.is_compared and all(each.unchanged() for each in self._still):
                self._is_good = True
            return self._is_good

    def end(self) -> tuple[str, ...]:
        """Settle; the arrays that were changed while they were copied."""
        self.settle()
        return tuple(sorted(self._changed))
