"""Findings for people.

    train.py:42:9: DT301 the clock reaches training state: the rate depends on `time.time()`
       |
    42 |     rate = 0.1 / (time.time() - start)
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^
       = help: Count steps or epochs instead of seconds.

A warning is the rule, so only errors and notes say what they are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from detrain.analysis.codes import SEVERITIES
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.report.excerpt import Cut, cut, visible
from detrain.report.findings import Findings

__all__ = ["diagnostic_text", "summary", "text"]

_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_NARROWEST = 40
"""Cells: in a narrower terminal lines are longer than it rather than unreadable."""


@dataclass(frozen=True)
class _Mark:
    """A part of a line that is marked, and what is written beside it."""

    span: Span
    label: str
    sign: str
    style: str


def text(findings: Findings, width: int = 100) -> Text:
    """All of it, in lines of at most `width` cells where that can be."""
    parts = [diagnostic_text(each, findings, width) for each in findings.diagnostics]
    return Text("\n\n").join([*parts, summary(findings)]) + Text("\n")


def diagnostic_text(diagnostic: Diagnostic, findings: Findings, width: int = 100) -> Text:
    """One diagnostic: where and what, the lines, and what to do."""
    blocks, others = _marks(diagnostic, findings)
    shown = [mark.span.line for block in blocks for mark in block]
    gutter = max((len(str(line)) for line in shown), default=1)
    limit = max(width, _NARROWEST) - gutter - len(" | ")
    lines = [_headline(diagnostic, findings)]
    for number, block in enumerate(blocks):
        place = findings.place(block[0].span) if number else ""
        lines += _block(block, place, findings, gutter, limit)
    for span, label in others:
        lines += _foot("note", f"{findings.place(span)}: {label}", gutter, limit)
    lines += _foot("help", diagnostic.advice, gutter, limit)
    return Text("\n").join(lines)


def summary(findings: Findings) -> Text:
    """The last line."""
    counts = findings.counts()
    if not counts and not findings.checked:
        return Text.assemble(("Nothing to check", "bold yellow"), ": no program was found")
    if not counts:
        clear = f"nothing found in {_number(findings.checked, 'file')}"
        return Text.assemble(("All clear", "bold green"), ": ", clear)
    parts = [
        Text(_number(counts[each], each), _STYLES[each]) for each in SEVERITIES if counts[each]
    ]
    listed = Text(" and ").join([Text(", ").join(parts[:-1]), parts[-1]][len(parts) == 1 :])
    files = len({each.span.file for each in findings.diagnostics})
    return Text.assemble("Found ", listed, f" in {_number(files, 'file')}")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _headline(diagnostic: Diagnostic, findings: Findings) -> Text:
    style = _STYLES[diagnostic.severity]
    place = findings.place(diagnostic.span)
    line = Text.assemble((visible(place), "bold"), ": " if place else "", (diagnostic.code, style))
    line.append(" ")
    if diagnostic.severity != "warning":
        line.append(f"{diagnostic.severity}: ", style)
    line.append(diagnostic.about.title, "bold")
    if diagnostic.message:
        line.append(f": {visible(diagnostic.message)}")
    return line


def _marks(
    diagnostic: Diagnostic, findings: Findings
) -> tuple[list[list[_Mark]], list[tuple[Span, str]]]:
    """What is marked, file by file and line by line, and notes whose lines can't be shown."""
    span = diagnostic.span
    further = f"to line {span.end_line}" if span.end_line > span.line else ""
    marks = [_Mark(span, further, "^", _STYLES[diagnostic.severity])]
    marks += [_Mark(each, label, "-", "cyan") for each, label in diagnostic.notes]
    known = [mark for mark in marks if findings.line(mark.span.file, mark.span.line) is not None]
    others = [(mark.span, mark.label) for mark in marks[1:] if mark not in known]
    files = dict.fromkeys(mark.span.file for mark in known)
    blocks = [
        sorted((mark for mark in known if mark.span.file == file), key=lambda mark: mark.span.line)
        for file in files
    ]
    return blocks, others


def _block(
    marks: list[_Mark], place: str, findings: Findings, gutter: int, limit: int
) -> Iterator[Text]:
    """The marked lines of a file."""
    if place:
        yield Text.assemble((" " * gutter + "--> ", "dim"), (visible(place), "bold"))
    yield _row("", gutter)
    before = 0
    for number, group in groupby(marks, key=lambda mark: mark.span.line):
        if before and number > before + 1:
            yield Text("…".rjust(gutter), "dim")
        yield from _line(number, list(group), findings, gutter, limit)
        before = number


def _line(
    number: int, marks: list[_Mark], findings: Findings, gutter: int, limit: int
) -> Iterator[Text]:
    """A line and what is marked in it; a line that is cut is shown once for each mark."""
    for count, mark in enumerate(marks):
        part = _part(mark, findings, limit)
        if not count or not part.whole:
            yield _row(str(number), gutter, Text(part.text.rstrip()))
        yield from _underline(mark, part, gutter, limit)


def _part(mark: _Mark, findings: Findings, limit: int) -> Cut:
    position = findings.position(mark.span)
    line = findings.line(mark.span.file, mark.span.line)
    assert position is not None
    assert line is not None
    one = position.end_line == position.line
    end = position.end_column - 1 if one else len(line.rstrip())
    return cut(line, position.column - 1, end, limit)


def _underline(mark: _Mark, part: Cut, gutter: int, limit: int) -> Iterator[Text]:
    """Signs under a part of a line, and the label beside them, or below if there is no room."""
    signs = " " * part.begin + mark.sign * (part.end - part.begin)
    label = visible(mark.label)
    beside = part.end + 1 + cell_len(label) <= limit
    yield _row("", gutter, Text(f"{signs} {label}".rstrip() if beside else signs, mark.style))
    if not beside:
        for line in textwrap.wrap(label, limit):
            yield _row("", gutter, Text(line, mark.style))


def _row(number: str, gutter: int, content: Text | None = None) -> Text:
    row = Text(f"{number:>{gutter}} |", "dim")
    return row if not content else Text.assemble(row, " ", content)


def _foot(label: str, content: str, gutter: int, limit: int) -> Iterator[Text]:
    """What is said below the lines."""
    lines = textwrap.wrap(visible(content), max(limit - len(label), 1))
    for number, line in enumerate(lines):
        head = " " * gutter + (f" = {label}: " if not number else " " * (len(label) + 5))
        yield Text.assemble((head[:-1], "dim"), " ", line)
