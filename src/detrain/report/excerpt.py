"""Lines of a program as they are shown in a terminal, with marks under parts of them.

Columns here are cells of the terminal: a tab is as many as are left to the next stop, a character
of East Asia is two, a combining one none. A long line is cut around what is marked.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from rich.cells import cell_len

__all__ = ["Cut", "cut", "visible"]

_TAB = 4
_CUT = "…"
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that steer a terminal, or that nobody can see."""


@dataclass(frozen=True)
class Cut:
    """The part of a line that is shown, and the cells of it that are marked, the end exclusive."""

    text: str
    begin: int
    end: int
    whole: bool


def visible(text: str) -> str:
    """Text that can't steer a terminal: a program may contain escape sequences."""
    return "".join("\ufffd" if unicodedata.category(each) in _HIDDEN else each for each in text)


def cut(line: str, begin: int, end: int, limit: int) -> Cut:
    """What is shown of a line in at most `limit` cells, with characters from `begin` to `end`."""
    pieces, starts = _cells(line)
    begin, end = min(begin, len(line)), min(max(end, begin + 1), len(line))
    if starts[-1] <= limit:
        return Cut("".join(pieces), starts[begin], max(starts[end], starts[begin] + 1), True)
    left, right = _window(starts, begin, end, max(limit - 2, 1))
    before, after = _CUT if left else "", _CUT if right < len(line) else ""
    shift = len(before) - starts[left]
    text = before + "".join(pieces[left:right]) + after
    first = starts[min(begin, right)] + shift
    return Cut(text, first, max(starts[min(end, right)] + shift, first + 1), False)


def _cells(line: str) -> tuple[list[str], list[int]]:
    """Each character as it is shown, and the cell where each begins; the last is the end."""
    pieces, starts, at = [], [], 0
    for character in line:
        starts.append(at)
        piece = " " * (_TAB - at % _TAB) if character == "\t" else visible(character)
        pieces.append(piece)
        at += cell_len(piece)
    return pieces, [*starts, at]


def _window(starts: list[int], begin: int, end: int, limit: int) -> tuple[int, int]:
    """The characters that are shown: what is marked, and as much on both sides as there is room."""
    marked = min(starts[end] - starts[begin], limit)
    leftmost = max(0, min(starts[begin] - (limit - marked) // 2, starts[-1] - limit))
    left = next(i for i, start in enumerate(starts) if start >= leftmost)
    right = max(i for i, start in enumerate(starts) if start <= starts[left] + limit)
    return left, right
