"""The whole way: script → project → program → cells and causes → loops → plan and diagnostics."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from detrain.analysis.cells import Cells
from detrain.analysis.diagnostics import Diagnostic, loop_lines
from detrain.analysis.frontend import Source, lower
from detrain.analysis.infer import Causes
from detrain.analysis.loops import TrainingLoops, find_loops
from detrain.analysis.planning import plan_python
from detrain.analysis.program import Span
from detrain.analysis.project import Project, read_project
from detrain.analysis.rules import Subject, diagnose
from detrain.plan import Plan

__all__ = ["Analysis", "analyse", "analyse_script"]

_DEEP_ENOUGH = 10_000
"""Frames: long expressions are deep trees."""


@dataclass(frozen=True)
class Analysis:
    """What is known of a program: what was found in it, and the text of each of its files."""

    diagnostics: tuple[Diagnostic, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    plan: Plan = field(default_factory=Plan)
    source: Source | None = None
    cells: Cells | None = None
    causes: Causes | None = None
    loops: TrainingLoops | None = None

    def parts(self) -> tuple[Source, Cells, Causes, TrainingLoops]:
        """The program, its cells, their causes, and its loops."""
        assert self.source is not None
        assert self.cells is not None
        assert self.causes is not None
        assert self.loops is not None
        return self.source, self.cells, self.causes, self.loops


def analyse_script(script: Path, search: tuple[str, ...]) -> Analysis:
    """Analyse a script and the local modules that it imports."""
    with _undisturbed():
        return _analyse_script(script, search)


def _analyse_script(script: Path, search: tuple[str, ...]) -> Analysis:
    project = read_project(script, search)
    broken = tuple(_broken(path, error) for path, error in project.broken.items())
    if str(project.script) not in project.trees:
        texts = {path: Path(path).read_text(errors="replace") for path in project.broken}
        return Analysis(broken, texts)
    analysis = analyse(project)
    source, cells, causes, loops = analysis.parts()
    found = diagnose(Subject(source, cells, causes, loops))
    texts = {path: Path(path).read_text(errors="replace") for path in project.broken}
    return replace(analysis, diagnostics=(*broken, *found), sources={**analysis.sources, **texts})


def _broken(path: str, error: SyntaxError) -> Diagnostic:
    """A file that can't be parsed, in Python's own words."""
    column = max((error.offset or 1) - 1, 0)
    span = Span(error.lineno or 0, column, error.lineno or 0, column + 1, path)
    return Diagnostic("DT901", error.msg, span)


def analyse(project: Project) -> Analysis:
    """Analyse a project; `ProgramTooLarge` if it is."""
    sources = {path: Path(path).read_text(errors="replace") for path in project.trees}
    with _undisturbed():
        source = lower(project)
        marked = {path: frozenset(loop_lines(text)) for path, text in sources.items()}
        loops = find_loops(source, marked)
        cells = Cells(source.program, strong=False)
        causes = Causes(cells)
        plan = plan_python(source, cells, causes, loops)
    return Analysis((), sources, plan, source, cells, causes, loops)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """With deep enough a stack, and without looking for garbage: there is hardly any."""
    deep, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(deep, _DEEP_ENOUGH))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(deep)
        if collecting:
            gc.enable()
