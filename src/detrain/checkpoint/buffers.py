"""Memory for snapshots: page-aligned, kept between checkpoints, never copied into child processes.

Fresh pages cost three times as much to fill as pages that are there already, and writing past the
page cache needs whole pages. So snapshots lie in *blocks*, anonymous memory maps that are used
again. There is one block for the state at a cut (`Arena.turn`): whoever needs it next waits until
its content is written, so that a run has one copy of its state in memory at the most. Others, for
the loops around a cut, are there as long as their snapshots are (`Arena.block`).
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import mmap
import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PAGE", "WINDOW", "Arena", "Once", "Places", "Turn", "address_of"]

PAGE = mmap.PAGESIZE

WINDOW = 4 << 20
"""Bytes that are copied at a time: few enough to be still in the cache when they are written."""

_PLACES = 8
"""Windows for the thread that writes, at the most."""

_SLOW = 3.0
"""How many times as long as the fastest copy one takes into a place that is in another cache."""

_TRIAL = 64
"""Copies after which it is tried whether that is still so; twice as many after each time it is."""

_SMALL = 256 * 1024
"""Bytes: less than this is not worth a map of its own."""

_SPARE = 4
"""How many blocks that nobody uses are kept."""

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_inherited: list[mmap.mmap] = []
"""Maps of the parent process: they are not here, and what is there instead must not be unmapped."""

os.register_at_fork(after_in_child=lambda: _inherited.extend(_maps))


def address_of(view: memoryview) -> int:
    """Where a buffer that may be written to begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


class Once:
    """Something that happens once. It takes a third of the time to make that an `Event` takes."""

    __slots__ = ("_ahead", "_lock")

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self._ahead = [True]

    def is_set(self) -> bool:
        """Whether it has happened."""
        return not self._ahead

    def wait(self) -> None:
        """Wait until it has happened."""
        with self._lock:
            pass

    def set(self) -> None:
        """It happens now, unless it has. Any thread may call it."""
        with contextlib.suppress(IndexError):
            self._ahead.pop()  # one of several threads gets it
            self._lock.release()


class Places:
    """Which of some places is filled next: the same again, or the one left alone for longest.

    The same one is in the cache already, and so the fastest. But one that was just written may be
    in the cache of another processor, one that serves the disk, and to fill it again takes up to
    six times as long then. That shows, and changes now and then.
    """

    def __init__(self, count: int) -> None:
        self._count, self._now = count, 0
        self._fastest = float("inf")
        self._left = 0
        """How many copies it still goes round for."""
        self._patience = _TRIAL

    def next(self) -> int:
        """The place to be filled."""
        if self._left:
            self._now = (self._now + 1) % self._count
        return self._now

    def filled(self, seconds: float) -> None:
        """It took so long."""
        self._fastest = min(self._fastest, seconds)
        if self._left:
            self._left -= 1
        elif seconds > _SLOW * self._fastest:
            self._left, self._patience = self._patience, 2 * self._patience
        else:
            self._patience = _TRIAL


class Turn:
    """The use of a block by one snapshot. `wait` until it may be filled, then `done` with it."""

    def __init__(
        self, memory: memoryview, before: Once | None, room: memoryview, places: Places
    ) -> None:
        self.memory = memory
        self.room, self.places = room, places
        """Some windows beside it, for the thread that writes, and which of them is next."""
        self._before, self._done = before, Once()

    def wait(self) -> None:
        """Wait until the snapshot before is written."""
        if self._before is not None:
            self._before.wait()

    def done(self) -> None:
        """The block may be filled again. Called after `wait` has returned, or never needed to."""
        self._done.set()

    @property
    def ended(self) -> Once:
        """Set when it is."""
        return self._done


class Arena:
    """The blocks of a run. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cut: memoryview = memoryview(bytearray())
        self._turn: Turn | None = None
        self._free: list[memoryview] = []
        self._room, self._places = memoryview(bytearray()), Places(1)

    def turn(self, nbytes: int) -> Turn:
        """The block for the state at a cut, for the next to come.

        Its content changes only after `Turn.wait`. If the block is too small for this state, the
        one before must be written first: this waits for it.
        """
        if len(self._cut) < nbytes and self._turn is not None:
            self._turn.ended.wait()
        with self._lock:
            before = self._turn.ended if self._turn is not None else None
            if not nbytes <= len(self._cut) <= 2 * nbytes + _SMALL:
                self._cut = memoryview(bytearray())  # the old one goes before the new one comes
                self._cut = self._found(nbytes) or _mapped(nbytes + nbytes // 32)
            places = min(_PLACES, max(1, nbytes // WINDOW))
            if len(self._room) < places * WINDOW:
                self._room = _mapped(places * WINDOW)
                self._room[::PAGE] = bytes(len(self._room) // PAGE)  # so that none is fresh
                self._places = Places(places)
            self._turn = Turn(self._cut[:nbytes], before, self._room, self._places)
            return self._turn

    def block(self, nbytes: int) -> tuple[memoryview, Callable[[], None]]:
        """Memory, and what gives it back when nothing looks into it any more."""
        if nbytes < _SMALL:
            return memoryview(bytearray(nbytes)), _nothing
        with self._lock:
            found = self._found(nbytes)
        memory = found or _mapped(nbytes + nbytes // 32)
        return memory[:nbytes], lambda: self._give_back(memory)

    def _found(self, nbytes: int) -> memoryview | None:
        """A block that nobody uses and that is neither too small nor far too large."""
        fits = [each for each in self._free if nbytes <= len(each) <= 2 * nbytes]
        found = min(fits, key=len, default=None)
        if found is not None:
            self._free = [each for each in self._free if each is not found]
        else:
            self._free = [each for each in self._free if len(each) > nbytes]
        return found

    def _give_back(self, memory: memoryview) -> None:
        with self._lock:
            self._free = [*self._free, memory][-_SPARE:]


def _nothing() -> None:
    """What is collected by itself need not be given back."""


def _mapped(nbytes: int) -> memoryview:
    """Fresh memory. Loader workers don't see it: copying it on write would be dear."""
    if nbytes == 0:
        return memoryview(bytearray())
    # Private: shared memory has no huge pages, and each small one takes longer to come.
    memory = mmap.mmap(-1, -(-nbytes // PAGE) * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for advice in ("MADV_DONTFORK", "MADV_HUGEPAGE"):
        try:
            memory.madvise(getattr(mmap, advice))
        except (AttributeError, OSError):  # another system: slower, not wrong
            continue
    _maps.add(memory)
    return memoryview(memory)
