"""Rewriting as modules are imported: the program's own ones, and no others."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, ModuleType

from detrain.analysis.project import Project
from detrain.instrument.find import Training, find_training
from detrain.instrument.rewrite import rewrite
from detrain.plan import Plan

__all__ = ["Instrument"]


class Instrument(importlib.abc.MetaPathFinder):
    """Compiles the project's files with new loop headers, between `start` and `stop`."""

    def __init__(self, project: Project, plan: Plan | None = None) -> None:
        """Loops are those of the plan; without one, or if it knows of none, they go by names."""
        self.project = project
        self._planned = frozenset(
            (loop.file, loop.line, loop.column) for loop in (plan.loops if plan else ())
        )

    @cached_property
    def _by_names(self) -> Training:
        return find_training(self.project.trees)

    def _chosen(self, filename: str, loop: ast.For | ast.While) -> bool:
        """Whether a loop of a file gets a new header."""
        if self._planned:
            return (filename, loop.lineno, loop.col_offset) in self._planned
        return self._by_names.is_on_the_way(loop)

    def start(self) -> None:
        """Begin to rewrite what is imported."""
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """No longer rewrite."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def plain(self) -> CodeType:
        """The code of the script as it is written."""
        path = self.project.script
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)

    def script(self) -> CodeType:
        """The code of the script, to be run as `__main__`."""
        return self.compiled(str(self.project.script), "__main__")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module as Python does; one of the project's gets a loader that rewrites."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not self.project.owns(spec.origin):
            return None
        spec.loader = _Loader(fullname, spec.origin, self)
        return spec

    def compiled(self, filename: str, module: str) -> CodeType:
        """The code of one of the project's files, rewritten."""
        # The tree is parsed anew: a module may be imported under two names.
        tree = ast.parse(Path(filename).read_bytes(), filename)
        return compile(
            rewrite(tree, module, partial(self._chosen, filename)),
            filename,
            "exec",
            dont_inherit=True,
        )


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from rewritten code; never from a cache, which has the plain one."""

    def __init__(self, fullname: str, path: str, instrument: Instrument) -> None:
        super().__init__(fullname, path)
        self._instrument = instrument

    def get_code(self, fullname: str) -> CodeType | None:
        return self._instrument.compiled(self.path, fullname)
