"""The program's output, kept exactly once.

What the program writes to `sys.stdout` and `sys.stderr` reaches the terminal as always, and a file
beside it. On resume the files are cut back to where the checkpoint was taken, and what the program
prints while it is being rebuilt is not kept again: it reaches a terminal dimmed, and a pipe not at
all (errors and warnings always reach their stream). Output that passes Python by (of C libraries,
of child processes) reaches the terminal only.
"""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING, Any

from detrain.trace.append import append

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["OutputLog"]

STREAMS = ("stdout", "stderr")


class OutputLog:
    """Stands before `sys.stdout` and `sys.stderr` between `start` and `stop`."""

    def __init__(self, folder: Path, *, rebuilding: bool) -> None:
        self._owner = os.getpid()
        self._rebuilding = rebuilding
        self._files: dict[str, int] = {}
        self._before: dict[str, Any] = {}
        self._synced: dict[str, int] = {}
        """How much of each stream is durable."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if rebuilding else os.O_TRUNC)
        for name in STREAMS:
            self._files[name] = os.open(folder / f"{name}.log", flags, 0o644)

    def start(self) -> None:
        """Begin to keep output."""
        for name in STREAMS:
            self._before[name] = getattr(sys, name)
            setattr(sys, name, _Kept(self._before[name], self, name))

    def stop(self) -> None:
        """Put the plain streams back. Those that the program replaced itself stay."""
        for name, plain in self._before.items():
            if isinstance(getattr(sys, name), _Kept):
                setattr(sys, name, plain)
        self._before.clear()

    def lengths(self) -> dict[str, int]:
        """How much has been kept of each stream."""
        return {name: os.fstat(file).st_size for name, file in self._files.items()}

    def go_live(self, lengths: Mapping[str, int]) -> None:
        """The program is rebuilt: cut back to the checkpoint and keep what comes from now on."""
        for name, file in self._files.items():
            os.ftruncate(file, lengths.get(name, 0))
        self._synced.clear()
        self._rebuilding = False

    def sync(self) -> None:
        """Make what was kept durable."""
        for name, length in self.lengths().items():
            if length != self._synced.get(name):  # most steps print nothing
                os.fsync(self._files[name])
                self._synced[name] = length

    def close(self) -> None:
        """Close the files; `stop` comes first."""
        for file in self._files.values():
            os.close(file)

    def wrote(self, name: str, plain: IO[str], text: str) -> int:
        """The program wrote to a stream."""
        mine = os.getpid() == self._owner  # loader workers are forked with our streams
        if self._rebuilding and mine and name == "stdout":
            if plain.isatty():
                plain.write(f"\x1b[2m{text}\x1b[22m" if text.strip() else text)
            return len(text)
        if mine and not self._rebuilding:
            data = text.encode(errors="surrogateescape")
            append(self._files[name], data, f"the run's {name}.log")
        return plain.write(text)


class _Kept:
    """A text stream that is kept as it is written; in all else it is the plain stream."""

    def __init__(self, plain: IO[str], log: OutputLog, name: str) -> None:
        self._plain, self._log, self._name = plain, log, name

    def write(self, text: str) -> int:
        return self._log.wrote(self._name, self._plain, text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _KeptBytes:
        return _KeptBytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __iter__(self) -> Any:
        return iter(self._plain)


class _KeptBytes:
    """The bytes side of a kept stream."""

    def __init__(self, text: _Kept) -> None:
        self._text = text

    def write(self, data: bytes) -> int:
        self._text.write(bytes(data).decode(errors="surrogateescape"))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        plain: Any = self._text._plain
        return getattr(plain.buffer, name)
