"""The journal: what the program did to files, in order; and how to undo what came after a cut.

Append-only, in the run's folder. A line reaches the operating system before the program goes on, so
it survives a kill. A checkpoint notes how long the journal was and how long the files were.

What the program replaces or removes is moved aside, into the run's folder, for as long as a kept
checkpoint may need it.

Entries that this machine wrote are sealed. Others came with a run from elsewhere: they may remove
or cut plain files below the folder that the program works in, and nothing else, unless they are
trusted (`foreign`).
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import msgspec

from detrain.trace.append import append
from detrain.world.seal import seal_of

__all__ = ["Entry", "Journal"]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The program opened a file to write, made, removed or renamed something.

    `born`: it was not there before. `emptied`: it was opened so that it began anew. `length` is
    what it had before, if it was added to. `source`: what it was called before. `aside` is the
    number under which its former version was moved aside; 0 if there is none. `setup`: before the
    first loop, in what is executed again at every resume. `seal` shows that this machine wrote it.
    """

    path: str
    born: bool = False
    folder: bool = False
    emptied: bool = False
    removed: bool = False
    length: int = 0
    source: str = ""
    aside: int = 0
    setup: bool = False
    seal: str = ""


class Journal:
    """The journal of a run; `entries` are all there are. Sealed ones may be believed."""

    def __init__(self, folder: Path, key: bytes = b"", *, trusted: bool = False) -> None:
        path = folder / "files.jsonl"
        self._key, self._trusted = key, trusted
        self._aside = folder / "aside"
        raw = path.read_bytes() if path.exists() else b""
        self.entries: list[Entry] = []
        self._sealed: set[Entry] = set()
        self._ends = [0]
        before = ""
        for line in raw.splitlines(keepends=True):
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                break
            if entry.seal == self._seal(entry, before):
                self._sealed.add(entry)
            before = entry.seal
            self.entries.append(entry)
            self._ends.append(self._ends[-1] + len(line))
        self._last, self._discarded = 0, 0
        self._adding = threading.Lock()  # trackers write from threads of their own
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, self._ends[-1])
        if trusted and len(self._sealed) < len(set(self.entries)):
            self._adopt(path)

    def _adopt(self, path: Path) -> None:
        """Seal all entries as one's own: whoever wrote them is trusted from now on."""
        entries, self.entries, self._ends = self.entries, [], [0]
        other = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        os.close(self._file)
        self._file = other
        for entry in entries:
            self.add(entry)
        os.fsync(other)
        os.rename(f"{path}.new", path)

    def add(self, entry: Entry) -> None:
        """Write down what the program is about to do."""
        with self._adding:
            before = self.entries[-1].seal if self.entries else ""
            entry = msgspec.structs.replace(entry, seal=self._seal(entry, before))
            line = msgspec.json.encode(entry) + b"\n"
            append(self._file, line, "the run's files.jsonl")
            self._sealed.add(entry)
            self.entries.append(entry)
            self._ends.append(self._ends[-1] + len(line))

    def _seal(self, entry: Entry, before: str) -> str:
        plain = msgspec.structs.replace(entry, seal="")
        return seal_of(self._key, before, msgspec.json.encode(plain))

    def believes(self, entry: Entry) -> bool:
        """Whether this machine wrote an entry, or the user trusts whoever did."""
        return self._trusted or entry in self._sealed

    def foreign(self, count: int, lengths: dict[str, int]) -> list[str]:
        """What a cut to `count` entries would change, and may not, because others wrote it."""
        work, found = os.getcwd(), []
        for number, entry in enumerate(self.entries):
            if self.believes(entry):
                continue
            brings = entry.source or (entry.aside and os.path.lexists(self.aside(entry.aside)))
            if brings or (number >= count and not _is_harmless(entry.path, work)):
                found.append(entry.path)
        known = {entry.path for entry in self.entries if self.believes(entry)}
        for name, length in lengths.items():
            if name not in known and _size(name) > length and not _is_harmless(name, work):
                found.append(name)
        return list(dict.fromkeys(found))

    def next_aside(self) -> int:
        """A new number for a version that is to be moved aside."""
        self._last += 1
        while os.path.lexists(self.aside(self._last)):
            self._last += 1
        return self._last

    def aside(self, number: int) -> str:
        """Where a version is, or was, moved to."""
        return str(self._aside / str(number))

    def keep(self, path: str, number: int) -> None:
        """Keep a version that is about to be replaced by another file under the same name."""
        self._aside.mkdir(exist_ok=True)
        try:
            os.link(path, self.aside(number))
        except OSError:  # the run's folder is on another file system, or this one has no links
            shutil.copy2(path, self.aside(number))

    def move(self, path: str, number: int) -> None:
        """Take a file or directory out of the way."""
        self._aside.mkdir(exist_ok=True)
        if os.path.isfile(path) and os.lstat(path).st_nlink > 1:
            shutil.copy2(path, self.aside(number))  # its other names must not change with it
            os.unlink(path)
        else:
            shutil.move(path, self.aside(number))

    def discard(self, count: int) -> None:
        """Give up versions that only a cut to fewer than `count` entries would put back."""
        for entry in self.entries[self._discarded : count]:
            if entry.aside and not entry.setup:
                _delete(self.aside(entry.aside))
        self._discarded = max(self._discarded, count)

    def cut(self, count: int, lengths: dict[str, int]) -> list[str]:
        """Undo what the program did after the first `count` entries; gives what it could not.

        `lengths` are those of the files then: what a handle that was open has added is cut off. A
        file whose former version could not be kept will be written again.
        """
        after = self.entries[count:]
        for entry in reversed(after):
            self._undo(entry)
        lost = {entry.path for entry in after if entry.emptied and not entry.aside}
        troubles = []
        for name, length in lengths.items():
            found = _size(name)
            if name not in lost and found > length:
                os.truncate(name, length)
            elif name not in lost and found < length:
                troubles.append(f"{name} had {length} bytes at the checkpoint, it has {found}")
        del self.entries[count:], self._ends[count + 1 :]
        self._discarded = min(self._discarded, count)
        os.ftruncate(self._file, self._ends[-1])
        return troubles

    def sync(self) -> None:
        """Make it durable."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _undo(self, entry: Entry) -> None:
        """Undo one entry; it may have been written down and not done."""
        path, aside = entry.path, self.aside(entry.aside)
        try:
            if entry.born:
                (os.rmdir if entry.folder else os.unlink)(path)
            elif entry.source:
                if os.path.lexists(path) and not os.path.lexists(entry.source):
                    os.rename(path, entry.source)
            elif not (entry.emptied or entry.removed) and _size(path) > entry.length:
                os.truncate(path, entry.length)
            if entry.aside and os.path.lexists(aside):
                if os.path.isdir(aside):
                    _delete(path)
                shutil.move(aside, path)
        except OSError:
            return  # gone already, or a directory that something else was put into


def _is_harmless(path: str, work: str) -> bool:
    """Whether a foreign entry may have a path cut or removed.

    Not a link or anything below one, nothing hidden, no text of a program: what is left are files
    that a program writes, below the folder that it works in. What is not there can't be harmed.
    """
    if not os.path.lexists(path):
        return True
    below = path.removeprefix(work + os.sep)
    hidden = any(part.startswith(".") for part in below.split(os.sep))
    plain = os.path.isfile(path) or os.path.isdir(path)
    is_text = path.endswith((".py", ".pyi", ".ipynb", ".sh"))
    real = os.path.realpath(path) == path
    return below != path and not hidden and plain and not is_text and real


def _size(path: str) -> int:
    return os.stat(path).st_size if os.path.isfile(path) else 0


def _delete(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)
