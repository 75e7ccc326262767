"""Answers that decide how a program goes, kept as they are given.

Where a clock stops a loop or chooses a way, steps that a kill makes a run do again are the same
only if the world answers as it did. So the answers of such a program are written down at once, one
line each; after a resume those since the checkpoint are given again, and then the world is asked
anew.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from detrain.state import Scalar
from detrain.trace.append import append

__all__ = ["Answers"]


class Answers:
    """The file of answers of one run. A line that a kill has torn is as if never written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)

    @property
    def length(self) -> int:
        """How long the file is."""
        return self._file.tell()

    def add(self, question: str, answer: Scalar) -> None:
        """Keep an answer."""
        line = msgspec.json.encode((question, answer)) + b"\n"
        append(self._file.fileno(), line, "the run's answers.jsonl")

    def since(self, length: int) -> list[tuple[str, Scalar]]:
        """What was answered when the file was that long, and after; it is cut off there."""
        data = self._path.read_bytes()[length:]
        self._file.truncate(min(length, self.length))
        self._file.seek(0, 2)
        found = []
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            try:
                found.append(msgspec.json.decode(line, type=tuple[str, Scalar]))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                break
        return found

    def close(self) -> None:
        """No more."""
        self._file.close()
