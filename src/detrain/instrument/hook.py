"""Rewriting as modules are imported: the program's own ones, and no others."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from detrain.analysis.project import Project
from detrain.instrument.find import Training, find_training
from detrain.instrument.rewrite import rewrite

__all__ = ["Instrument"]


class Instrument(importlib.abc.MetaPathFinder):
    """Compiles the project's files with new loop headers, between `start` and `stop`."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._training: Training = find_training(project.trees)

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
        return compile(rewrite(tree, module, self._training), filename, "exec", dont_inherit=True)


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from rewritten code; never from a cache, which has the plain one."""

    def __init__(self, fullname: str, path: str, instrument: Instrument) -> None:
        super().__init__(fullname, path)
        self._instrument = instrument

    def get_code(self, fullname: str) -> CodeType | None:
        return self._instrument.compiled(self.path, fullname)
