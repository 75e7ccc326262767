"""What a screen shows in the end of text that was written to it.

Progress bars write over themselves, as often as the clock allows: what they show in the meantime
is different in every run, what they show last is not. Text without such tricks stays as it is.
"""

from __future__ import annotations

import re

__all__ = ["settled"]

_PARTS = re.compile("\r\n|[\r\n\b]|\x1b\\[[0-9;?]*[A-Za-z]|[^\r\n\b\x1b]+|\x1b")

_MOVES = frozenset("ABCDGHJKf")
"""Endings of control sequences that move or erase; others (colours) are text."""


def settled(text: str) -> str:
    """The lines as they stand after everything was written."""
    if not re.search("\r(?!\n)|\b|\x1b\\[[0-9;?]*[A-HJKf]", text):
        return text
    screen = _Screen()
    for part in _PARTS.findall(text):
        screen.write(part)
    return "\n".join(screen.lines())


class _Screen:
    """Lines without end, and a cursor."""

    def __init__(self) -> None:
        self._rows = [""]
        self._written_over: set[int] = set()
        self._row = self._column = 0

    def write(self, part: str) -> None:
        if part in ("\n", "\r\n"):
            self._down(1)
            self._column = 0
        elif part == "\r":
            self._column = 0
            self._written_over.add(self._row)
        elif part == "\b":
            self._column = max(0, self._column - 1)
        elif part[0] == "\x1b" and part[-1] in _MOVES:
            self._control(part[-1], part[2:-1])
        else:
            row = self._rows[self._row].ljust(self._column)
            end = self._column + len(part)
            self._rows[self._row] = row[: self._column] + part + row[end:]
            self._column = end

    def lines(self) -> list[str]:
        """Each line; one that was written over ends where something stands."""
        return [
            row.rstrip(" ") if number in self._written_over else row
            for number, row in enumerate(self._rows)
        ]

    def _down(self, count: int) -> None:
        self._row = max(0, self._row + count)
        while len(self._rows) <= self._row:
            self._rows.append("")

    def _control(self, what: str, numbers: str) -> None:
        amount = int(numbers) if numbers.isdigit() else 1
        self._written_over.add(self._row)
        if what in "AB":
            self._down(-amount if what == "A" else amount)
        elif what in "CD":
            self._column = max(0, self._column + (amount if what == "C" else -amount))
        elif what == "G":
            self._column = amount - 1
        elif what == "K" and numbers in ("", "0"):
            self._rows[self._row] = self._rows[self._row][: self._column]
        elif what == "K" and numbers == "2":
            self._rows[self._row] = ""
        # Others (clear the screen, go to a place on it) have no meaning in a log.
