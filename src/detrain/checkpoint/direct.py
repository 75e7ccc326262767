"""Writing a file from its beginning to its end, past the page cache where the system allows.

O_DIRECT takes memory, lengths and places in the file in whole pages. Memory that lies right goes
out as it is; all else goes through a buffer here. A file system that does not take it says so, and
gets plain writes; so does what is small, and the last part of a page.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os

from detrain.checkpoint.buffers import PAGE, address_of

__all__ = ["Sequential"]

_ROOM = 4 << 20
"""Bytes of the buffer for what does not lie right."""
_PIECE = 64 << 20
"""Bytes that go out in one call."""
_WORTH_IT = 1 << 20
"""Bytes: a smaller write is no faster past the page cache."""


_rooms: list[memoryview] = []
"""Buffers that nobody uses now: fresh pages take longer to come than to fill."""


def _taken_room() -> memoryview:
    try:
        return _rooms.pop()
    except IndexError:
        return memoryview(mmap.mmap(-1, _ROOM))


class Sequential:
    """A file that is open for writing, at its beginning. On one thread."""

    def __init__(self, file: int) -> None:
        self._file, self._end, self._filled = file, 0, 0
        self._room: memoryview | None = None
        self._direct, self._refused = False, not hasattr(os, "O_DIRECT")

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Append some bytes. They are not read any more when this returns."""
        view = memoryview(chunk).cast("B")
        while len(view):
            if self._filled == 0 and len(view) >= PAGE and self._lies_right(view, 0):
                whole = len(view) // PAGE * PAGE
                self._out(view[:whole])
                view = view[whole:]
                continue
            room = self._room = self._room or _taken_room()
            count, rest = min(len(view), _ROOM - self._filled), -self._filled % PAGE
            # Up to the end of the page, if all that follows can go out as it is.
            to_page = len(view) > _WORTH_IT and self._lies_right(view, rest)
            if to_page:
                count = rest
            room[self._filled : self._filled + count] = view[:count]
            self._filled += count
            view = view[count:]
            if to_page or self._filled == _ROOM:
                self._out(room[: self._filled])
                self._filled = 0

    def finish(self) -> int:
        """Write what is left; gives the size of the file."""
        if self._room is not None and self._filled:
            whole = self._filled // PAGE * PAGE
            if whole:
                self._out(self._room[:whole])
            self._set_direct(on=False)
            self._out(self._room[whole : self._filled])
        if self._room is not None:
            _rooms.append(self._room)
            self._room = None
        os.ftruncate(self._file, self._end)
        return self._end

    def _lies_right(self, view: memoryview, after: int) -> bool:
        return not view.readonly and (address_of(view) + after) % PAGE == 0

    def _out(self, view: memoryview) -> None:
        if not self._direct and not self._refused and len(view) >= _WORTH_IT:
            self._set_direct(on=True)
        while len(view):
            piece = view[:_PIECE]
            if self._direct and len(piece) % PAGE:
                self._set_direct(on=False)
            try:
                written = os.pwrite(self._file, piece, self._end)
            except OSError as error:
                if error.errno != errno.EINVAL or not self._direct:
                    raise
                self._refused = True
                self._set_direct(on=False)
                continue
            if self._direct and written % PAGE:
                self._set_direct(on=False)  # cut short: the rest does not lie right any more
            self._end += written
            view = view[written:]

    def _set_direct(self, *, on: bool) -> None:
        flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
        wanted = flags | os.O_DIRECT if on else flags & ~getattr(os, "O_DIRECT", 0)
        try:
            if wanted != flags:
                fcntl.fcntl(self._file, fcntl.F_SETFL, wanted)
            self._direct = on
        except OSError:  # this file system has no such thing
            self._refused, self._direct = True, False
