"""The journal: which files the program made and wrote, in order; and how to undo what came after.

Append-only, in the run's folder. A line reaches the operating system before the program goes on, so
it survives a kill. A checkpoint notes how long the journal was and how long the files were.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

__all__ = ["Entry", "Journal", "cut_back"]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The program opened a file to write, or made a directory.

    `born`: it was not there before. `emptied`: it was opened so that it began anew. `length` is
    what it had before, if it was added to.
    """

    path: str
    born: bool = False
    folder: bool = False
    emptied: bool = False
    length: int = 0


class Journal:
    """The journal of a run; `entries` are all there are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        raw = path.read_bytes() if path.exists() else b""
        self.entries: list[Entry] = []
        self._ends = [0]
        for line in raw.splitlines(keepends=True):
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except (msgspec.DecodeError, UnicodeDecodeError):
                break
            self.entries.append(entry)
            self._ends.append(self._ends[-1] + len(line))
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, self._ends[-1])

    def add(self, entry: Entry) -> None:
        """Write down what the program is about to do."""
        line = msgspec.json.encode(entry) + b"\n"
        os.write(self._file, line)
        self.entries.append(entry)
        self._ends.append(self._ends[-1] + len(line))

    def cut(self, count: int) -> None:
        """Forget all entries but the first `count`."""
        del self.entries[count:], self._ends[count + 1 :]
        os.ftruncate(self._file, self._ends[-1])

    def sync(self) -> None:
        """Make it durable."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def cut_back(entries: list[Entry], count: int, lengths: dict[str, int]) -> list[str]:
    """Undo what the program did to files after the first `count` entries; gives what it could not.

    Files and directories that were born after are removed. A file that was added to is cut back to
    its length then. One that was written anew as a whole is left: it will be written again.
    """
    before, after = entries[:count], entries[count:]
    known = {entry.path for entry in before}
    emptied = {entry.path for entry in after if entry.emptied}
    troubles = []
    for entry in reversed(after):
        path = Path(entry.path)
        if entry.path in known or not entry.born:
            continue
        try:
            if entry.folder:
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        except OSError:
            continue  # a directory that something else was put into
    first_seen = {entry.path: entry for entry in reversed(after) if not entry.born}
    for name, entry in first_seen.items():
        if name not in lengths and name not in known and not entry.emptied and not entry.folder:
            lengths = {**lengths, name: entry.length}
    for name, length in lengths.items():
        path = Path(name)
        if name in emptied:
            continue
        found = path.stat().st_size if path.is_file() else -1
        if found > length:
            os.truncate(path, length)
        elif found < length:
            troubles.append(f"{name} had {length} bytes at the checkpoint, it has {max(found, 0)}")
    return troubles
