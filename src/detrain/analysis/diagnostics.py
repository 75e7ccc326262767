"""Diagnostics as values, and the comments of a program that speak to DETrain.

    x = time.time()   # detrain: ignore              silences all that is said of this statement
    x = time.time()   # detrain: ignore[DT301,DT5]   silences these codes, and those beginning so
    while going():    # detrain: loop                this is a training loop

A comment speaks of its own line; on the first or the last line of a statement that spans several,
of all of it; alone on a line, of the statement that follows. Of a loop or a function that is the
header only. Finding diagnostics and showing them live elsewhere.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from detrain.analysis.codes import CODES, Code, Severity, is_known, longest_match
from detrain.analysis.program import Span

__all__ = ["CODES", "Code", "Diagnostic", "Note", "Suppressions", "loop_lines", "suppressions"]

Note = tuple[Span, str]
"""Another place that has to do with it, and what it has: "the value comes from here"."""


class Diagnostic(msgspec.Struct, frozen=True):
    """Something that was found at a place of a program.

    `message` is one sentence about this case, without a full stop. Columns of spans are those of
    `ast`: they begin with 0 and count bytes of UTF-8; the end is exclusive. An end line of 0 is not
    known, and a line of 0 means the file as a whole.
    """

    code: str
    message: str
    span: Span
    fix: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def about(self) -> Code:
        """What all of this code have in common."""
        return CODES[self.code]

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.about.severity

    @property
    def advice(self) -> str:
        """What to do: in this case, or about the code in general."""
        return self.fix or self.about.fix


@dataclass(frozen=True)
class Suppressions:
    """What the comments of a file silence, by line, and the codes in them that there are not."""

    lines: dict[int, tuple[str, ...]]
    unknown: tuple[Diagnostic, ...] = ()

    def hide(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic of this file is silenced."""
        if diagnostic.code == "DT901":
            return False  # in a file that can't be parsed no comment says what it speaks of
        return longest_match(diagnostic.code, self.lines.get(diagnostic.span.line, ())) > 0


def suppressions(source: str, file: str = "") -> Suppressions:
    """The `# detrain: ignore` comments of a file."""
    if not _IGNORE.search(source):
        return Suppressions({})
    lines: dict[int, tuple[str, ...]] = {}
    unknown: list[Diagnostic] = []
    for comment in _comments(source):
        found = _IGNORE.search(comment.text)
        if found is None:
            continue
        written = [("DT", 0)] if found["codes"] is None else list(_selectors(found))
        known = tuple(code for code, _ in written if is_known(code))
        unknown += [_unknown(code, comment, at, file) for code, at in written if not is_known(code)]
        for line in comment.covers:
            lines[line] = lines.get(line, ()) + known
    return Suppressions(lines, tuple(unknown))


def loop_lines(source: str) -> frozenset[int]:
    """The lines of statements that are marked by `# detrain: loop`."""
    if not _LOOP.search(source):
        return frozenset()
    marked = (comment for comment in _comments(source) if _LOOP.search(comment.text))
    return frozenset(line for comment in marked for line in comment.covers)


_IGNORE = re.compile(r"#\s*detrain:\s*ignore\b(?!-)(?:\s*\[(?P<codes>[^\]]*))?")
_LOOP = re.compile(r"#\s*detrain:\s*loop\b(?!-)")
_SKIPPED = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class _Comment:
    """A comment, where it begins (in bytes, as spans do), and the lines that it speaks of."""

    text: str
    line: int
    column: int
    covers: range


def _comments(source: str) -> Iterator[_Comment]:
    """The comments of a file, as far as it can be read."""
    waiting: list[tokenize.TokenInfo] = []
    begin = end = 0
    for token in _tokens(source):
        if token.type == tokenize.COMMENT:
            waiting.append(token)
        elif token.type == tokenize.NEWLINE:
            yield from (_placed(comment, begin, end) for comment in waiting)
            waiting, begin = [], 0
        elif token.type not in _SKIPPED:
            begin, end = begin or token.start[0], token.end[0]
    yield from (_placed(comment, begin, end) for comment in waiting)


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(source).readline)
    except (tokenize.TokenError, SyntaxError):
        return  # said by DT901; comments before the error count


def _placed(comment: tokenize.TokenInfo, begin: int, end: int) -> _Comment:
    """A comment with the lines that it speaks of, next to or inside a statement."""
    line, column = comment.start
    speaks_of_all = begin and (line <= begin or line == end)
    covers = range(begin, end + 1) if speaks_of_all else range(line, line + 1)
    return _Comment(comment.string, line, len(comment.line[:column].encode()), covers)


def _selectors(found: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The codes between the brackets, and where each stands in the comment."""
    at = found.start("codes")
    for part in found["codes"].split(","):
        yield part.strip().upper(), at + len(part) - len(part.lstrip())
        at += len(part) + 1


def _unknown(code: str, comment: _Comment, at: int, file: str) -> Diagnostic:
    begin = comment.column + len(comment.text[:at].encode())
    end = begin + max(len(code.encode()), 1)
    message = f"there is no {code!r}" if code else "a code is missing between the brackets"
    return Diagnostic("DT902", message, Span(comment.line, begin, comment.line, end, file))
