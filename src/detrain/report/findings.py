"""What a check found, with what is needed to show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from detrain.analysis.codes import Code, Severity
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span

__all__ = ["Findings", "Position"]


@dataclass(frozen=True)
class Position:
    """A span as editors count: lines and columns begin with 1, columns are characters.

    The end is exclusive. Where only the beginning is known, one character is meant.
    """

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Findings:
    """Diagnostics in order, the text of each file, and how many files were looked at.

    Paths are shown relative to `root`. `documentation` is the address of `docs`, if it has one.
    """

    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    checked: int = 0
    root: Path = Path()
    documentation: str = ""

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        # Not splitlines: to Python, a form feed or a line separator does not end a line.
        return {file: re.split("\r\n|\r|\n", text) for file, text in self.sources.items()}

    def counts(self) -> Counter[Severity]:
        """How many there are of each severity."""
        return Counter(each.severity for each in self.diagnostics)

    def path(self, file: str) -> str:
        """A path as it is shown."""
        path = Path(file)
        if file and path.is_absolute() and path.is_relative_to(self.root):
            path = path.relative_to(self.root)
        return path.as_posix() if file else ""

    def line(self, file: str, number: int) -> str | None:
        """A line of a file, without its end; None if it is not known."""
        lines = self._lines.get(file, [])
        return lines[number - 1] if 0 < number <= len(lines) else None

    def position(self, span: Span) -> Position | None:
        """Where a span is; None if it means the file as a whole."""
        if span.line < 1:
            return None
        column = self._column(span.file, span.line, span.column)
        if not span.end_line:
            return Position(span.line, column, span.line, column + 1)
        end = self._column(span.file, span.end_line, span.end_column)
        if span.end_line == span.line:
            end = max(end, column + 1)
        return Position(span.line, column, span.end_line, end)

    def place(self, span: Span) -> str:
        """Where a span begins: `train.py:42:9`."""
        position = self.position(span)
        path = self.path(span.file)
        return f"{path}:{position.line}:{position.column}" if position else path

    def url(self, code: Code) -> str:
        """Where a code is documented."""
        return (
            self.documentation + code.page.removeprefix("docs") if self.documentation else code.page
        )

    def _column(self, file: str, number: int, column: int) -> int:
        """The column, in characters from 1, of a column in bytes from 0."""
        line = self.line(file, number)
        if line is None:
            return column + 1
        return len(line.encode(errors="surrogatepass")[:column].decode(errors="ignore")) + 1
