"""The world as it was at an earlier time, as far as a run has changed it since.

While a program is rebuilt, what its run made is hidden, what it removed or replaced is there again,
and what is written goes to a scratch folder. A program that is only looked at (`looks_only`) never
gets further than that: whatever it makes or removes, it does in appearance.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from detrain.world.journal import Entry, Journal

__all__ = ["Appearance"]


class Appearance:
    """Which paths there are, and where their content is. Paths are absolute."""

    def __init__(self, journal: Journal, scratch: Path, *, looks_only: bool) -> None:
        self._journal, self._scratch, self.looks_only = journal, scratch, looks_only
        self._open, self._mkdir, self._stat = open, os.mkdir, os.stat
        self._born: set[str] = set()
        """Paths that were not there then."""
        self._former: dict[str, str] = {}
        """Paths that were, and where their content of then is now."""
        self._shown: dict[str, str] = {}
        """Paths that the program made again, and where their content is; "" for folders that are
        there."""

    def look_back(self, entries: Iterable[Entry]) -> None:
        """Show the world as it was before these entries of the journal."""
        self._born.clear()
        self._former.clear()
        known: set[str] = set()
        for entry in entries:
            if not self._journal.believes(entry) and not entry.born:
                continue  # it would have the program read a file that others put there
            if entry.path not in known:
                if entry.born or (entry.source and not entry.aside):
                    self._born.add(entry.path)
                elif entry.aside:
                    self._former[entry.path] = self._journal.aside(entry.aside)
            if entry.source and entry.source not in known:
                self._former[entry.source] = entry.path
            known |= {entry.path, entry.source}

    def show_at(
        self,
        entries: Iterable[Entry],
        lengths: Mapping[str, int],
        handles: Callable[[str], Sequence[IO[Any]]],
    ) -> None:
        """Show files as they were before these entries, when they had those lengths.

        `handles` are those that the program has open to write to a path: they go on behind it.
        """
        made = {path: self.now_at(path) for path in lengths}
        self._shown.clear()
        self.look_back(entries)
        for path, length in lengths.items():
            place, scratch = self.now_at(path), made[path]
            is_new = not scratch.startswith(str(self._scratch))
            if not os.path.isfile(place) or (is_new and self._stat(place).st_size == length):
                continue
            scratch = self._new_place(path) if is_new else scratch
            for handle in handles(path):
                handle.flush()
            # Emptied, not replaced: it is what the handles write to.
            with self._open(place, "rb") as source, self._open(scratch, "wb") as target:
                _copy_some(source, target, length)
            for handle in handles(path):
                os.lseek(handle.fileno(), 0, os.SEEK_END)
            self._shown[path] = scratch

    def forget(self) -> None:
        """The program is live: what it made again is what is there."""
        self._shown.clear()
        shutil.rmtree(self._scratch, ignore_errors=True)

    # ---------------------------------------------------------------- looking

    def is_hidden(self, name: str) -> bool:
        """Whether this, or a folder above it, was not there, and has not been made again yet."""
        while True:
            if name in self._shown or name in self._former:
                return False
            if name in self._born:
                return True
            parent = os.path.dirname(name)
            if parent == name:
                return False
            name = parent

    def now_at(self, name: str) -> str:
        """Where the content is that a path had, or was given again."""
        found = self._shown.get(name) or self._former.get(name)
        if found is None:
            for parent, place in (*self._shown.items(), *self._former.items()):
                if place and name.startswith(parent + os.sep):
                    return place + name.removeprefix(parent)
        return found or name

    def names_in(self, folder: str, found: list[str]) -> list[str]:
        """What a folder has in it, given what is really there."""
        back = [os.path.split(each) for each in self._former]
        names = [*found, *(base for place, base in back if place == folder and base not in found)]
        return [each for each in names if not self.is_hidden(os.path.join(folder, each))]

    # ---------------------------------------------------------------- changing

    def takes(self, name: str) -> bool:
        """Whether something that the program makes under a name is made in appearance only."""
        if self.looks_only and name in self._shown:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        return self.is_hidden(name) or (self.looks_only and not os.path.lexists(name))

    def target(self, name: str, mode: str) -> str:
        """Where a file is written to instead."""
        place = self.now_at(name)
        if place.startswith(str(self._scratch)):  # it, or a folder above it, was made again
            self._shown[name] = place
            return place
        scratch = self._new_place(name)
        if not self.is_hidden(name) and os.path.isfile(place):
            if "x" in mode:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            shutil.copyfile(place, scratch)
        self._shown[name] = scratch
        return scratch

    def make_folder(self, name: str) -> None:
        """A folder that `takes`."""
        place = ""
        if self.looks_only:
            place = self.now_at(name)  # below another one of these, or ...
            if not place.startswith(str(self._scratch)):
                place = self._new_place(name)
            self._mkdir(place)
        self._shown[name] = place

    def stand_for(self, name: str, other: str) -> None:
        """A name that is there from now on, and has the content of another."""
        self._shown[name] = self.now_at(other)

    def hide(self, name: str) -> None:
        """The program has removed something."""
        self._shown.pop(name, None)
        self._former.pop(name, None)
        self._born.add(name)

    def _new_place(self, name: str) -> str:
        """A path in the scratch folder, to be used at once."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        return str(self._scratch / f"{len(os.listdir(self._scratch))}-{os.path.basename(name)}")


def _copy_some(source: IO[bytes], target: IO[bytes], length: int) -> None:
    while length and (data := source.read(min(length, 1 << 20))):
        target.write(data)
        length -= len(data)
