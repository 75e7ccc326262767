"""Which diagnostics are shown: those selected, not ignored, and not silenced by a comment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import PurePath

import msgspec

from detrain.analysis.codes import CODES, is_known, longest_match
from detrain.analysis.diagnostics import Diagnostic, suppressions

__all__ = ["Selection", "in_order", "matches_path", "shown", "unknown_selectors"]


class Selection(msgspec.Struct, frozen=True):
    """Codes, or beginnings of codes. Nothing in `select` means all that are on by themselves.

    `by_file` has pairs of a pattern of paths below `root` and what is ignored there.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    by_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    root: str = ""

    def includes(self, code: str, file: str = "") -> bool:
        """Whether diagnostics of a code are shown for a file; the closer selector wins."""
        about = CODES[code]
        wanted = longest_match(code, self.select)
        if not wanted and not about.always and (self.select or about.quiet):
            return False
        there = (each for pattern, each in self.by_file if matches_path(file, pattern, self.root))
        if any(longest_match(code, each) for each in there):
            return False
        unwanted = longest_match(code, self.ignore)
        return not unwanted or wanted > unwanted


def matches_path(file: str, pattern: str, root: str) -> bool:
    """Whether a pattern speaks of a file: of its name, of its path below `root`, of a folder."""
    path = PurePath(file)
    below = path.relative_to(root) if root and path.is_relative_to(root) else path
    ways = [below, *below.parents]
    return fnmatch(path.name, pattern) or any(
        fnmatch(each.as_posix(), pattern.rstrip("/")) for each in ways
    )


def unknown_selectors(selectors: Iterable[str]) -> tuple[str, ...]:
    """Those that stand for no code."""
    return tuple(each for each in dict.fromkeys(selectors) if not is_known(each))


def shown(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], selection: Selection
) -> tuple[Diagnostic, ...]:
    """What is left of diagnostics, with unknown codes in comments, in order and each once."""
    silenced = {file: suppressions(source, file) for file, source in sources.items()}
    found = list(diagnostics)
    for each in silenced.values():
        found += each.unknown
    return in_order(
        each
        for each in found
        if selection.includes(each.code, each.span.file)
        and not (each.span.file in silenced and silenced[each.span.file].hide(each))
    )


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By file and place, each once: two programs may share a module."""

    def place(each: Diagnostic) -> tuple[str, int, int, str, str]:
        return each.span.file, each.span.line, each.span.column, each.code, each.message

    return tuple(sorted(dict.fromkeys(diagnostics), key=place))
