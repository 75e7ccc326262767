"""Windows: arrays that are to lie side by side in a block, copied a window at a time, each once.

Two threads do it, and whoever comes first copies a window. The one that writes comes from the
front: it copies into a small room, whose bytes go to the disk while they are in the cache. That
takes less of the memory's time, which the program needs too, than a copy of everything; but it is
no faster than the disk. The one that copies comes from the back, into the block, when there
is no more time to be lost.

The room has several places, one of which is filled each time (`buffers.Places`).
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from detrain.checkpoint.buffers import WINDOW, address_of
from detrain.trace.digest import digest_copy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detrain.checkpoint.buffers import Places

__all__ = ["Abandoned", "Late", "Part", "Row", "Windows"]


class Abandoned(Exception):
    """A snapshot is not needed any more, or could not be copied."""


class Late(NamedTuple):
    """An array that is copied while the program goes on, and where it lies."""

    name: str
    address: int
    nbytes: int


class Part(NamedTuple):
    """What of an array lies in a window: where it begins and ends there, and where the program has
    it.
    """

    start: int
    end: int
    address: int
    ending: str
    """The name of the array, if that ends here."""


class Row:
    """Arrays that follow each other. The first `passing` of them need not lie in a block."""

    def __init__(self, arrays: Sequence[Late], passing: int = 0) -> None:
        self.arrays, self.passing = arrays, passing
        self.starts = [0, *accumulate(array.nbytes for array in arrays)]
        self.index = {array.name: number for number, array in enumerate(arrays)}
        self.left = frozenset(array.name for array in arrays[:passing])
        """The names of those that are passing."""

    @property
    def nbytes(self) -> int:
        """How many bytes there are."""
        return self.starts[-1]

    @cached_property
    def windows(self) -> list[list[Part]]:
        """The parts of all windows. Found once: the same row is copied again and again."""
        return [self._within(at, at + WINDOW) for at in range(0, self.nbytes, WINDOW)]

    def _within(self, start: int, stop: int) -> list[Part]:
        found, array, at = [], bisect_right(self.starts, start) - 1, start
        stop = min(stop, self.nbytes)
        while at < stop:
            end = min(stop, self.starts[array + 1])
            if end > at:
                late, begun = self.arrays[array], at - self.starts[array]
                ending = late.name if end == self.starts[array + 1] else ""
                found.append(Part(at - start, end - start, late.address + begun, ending))
            at, array = end, array + 1
        return found


class Windows:
    """A row from the beginning of a block on. For two threads."""

    def __init__(self, row: Row, block: memoryview, room: memoryview, places: Places) -> None:
        self._row, self._starts, self._block = row, row.starts, block
        self._room, self._places = room, places
        count = -(-row.nbytes // WINDOW)
        self._end = row.starts[row.passing]
        # A window with something else in it as well is needed in the block.
        self._whole = count if row.passing == len(row.arrays) else self._end // WINDOW
        self._changed = threading.Condition()
        self._front, self._back, self._copied = 0, count, count
        self._passing = self._stop = self._hurry = False
        self.digests: dict[str, str] = {}
        """Of the arrays that were written from the front."""

    def left(self) -> int:
        """How many bytes nobody has come to yet."""
        return (self._back - self._front) * WINDOW

    def may_rest(self) -> bool:
        """Whether none of these is needed in the block, as far as is known."""
        return self._back <= self._whole and not self._hurry

    def stop(self) -> None:
        """No longer copy."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        """Whether nothing is copied any more."""
        return self._stop

    # ---------------------------------------------------------------- from the back

    def copy_last(self) -> bool:
        """Copy one more into the block; False if there is none left, or it was stopped."""
        with self._changed:
            if self._front >= self._back or self._stop:
                return False
            self._back = number = self._back - 1
        self._copy(number, address_of(self._block[number * WINDOW :]))
        with self._changed:
            self._copied = number
            self._changed.notify_all()
        return True

    def is_copied(self, array: int) -> bool:
        """Whether an array is in the block."""
        return self._copied * WINDOW <= self._starts[array]

    def wait_for(self, array: int) -> memoryview:
        """Wait until an array is in the block; `Abandoned` if it won't be."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_copied(array) or self._stop)
            if self._stop:
                raise Abandoned
        return self._block[self._starts[array] : self._starts[array + 1]]

    def rest(self, seconds: float) -> None:
        """Wait as long, or until something happens that who copies should know of."""
        with self._changed:
            # Asked here, so that nothing happens between the question and the wait.
            if self._front < self._back and self.may_rest() and not self._stop:
                self._changed.wait(seconds)

    def hasten(self) -> None:
        """Have the rest copied now."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()

    def wait_for_front(self) -> None:
        """Wait until who writes looks at nothing of the program."""
        with self._changed:
            self._changed.wait_for(lambda: not self._passing)

    # ---------------------------------------------------------------- from the front

    def pieces(self) -> Iterator[memoryview]:
        """The bytes of the passing arrays, digested; each piece until the next is asked for.

        `Abandoned` if there won't be all.
        """
        running, places = xxhash.xxh3_128(), self._places
        for number in range(-(-self._end // WINDOW)):
            start, stop = number * WINDOW, min((number + 1) * WINDOW, self._end)
            is_first, began = self._comes_first(number), thread_time()
            piece = self._block[start:stop]
            if is_first:
                at = places.next() * WINDOW
                piece = self._room[at : at + stop - start]
            for first, end, address, ending in self._row.windows[number]:
                if first >= len(piece):
                    break  # what follows is not passing
                part = piece[first:end]
                if is_first:
                    digest_copy(running, part, address)
                else:
                    running.update(part)
                if ending:
                    self.digests[ending] = running.hexdigest()
                    running = xxhash.xxh3_128()
            if is_first:
                self._has_passed()
                if len(piece) == WINDOW:
                    places.filled(thread_time() - began)
            yield piece

    def _comes_first(self, number: int) -> bool:
        """Whether a window is to be copied here; waits for one that the other thread copies."""
        with self._changed:
            other = number >= min(self._back, self._whole)
            if other:
                self._changed.wait_for(lambda: self._copied <= number or self._stop)
            if self._stop:
                raise Abandoned
            if other:
                return False
            self._front, self._passing = number + 1, True
            return True

    def _has_passed(self) -> None:
        with self._changed:
            self._passing = False
            if self._front >= self._back or self._stop:
                self._changed.notify_all()

    # ---------------------------------------------------------------- bytes

    def _copy(self, number: int, into: int) -> None:
        """Copy a window from where the program has it. The interpreter is free meanwhile."""
        for start, end, address, _ in self._row.windows[number]:
            ctypes.memmove(into + start, address, end - start)
