"""Which files of a folder are programs: something that is run, not only imported.

A file is one if it asks for `__name__` at its top level, if it has a training loop there, or if no
other file of the folder imports it. A file that can't be parsed counts as one, so that this is
said. Hidden folders, environments and caches are not searched.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from detrain.analysis.project import imported_files
from detrain.instrument.find import find_training

__all__ = ["find_scripts"]

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})


def find_scripts(folder: Path, excluded: Callable[[Path], bool]) -> list[Path]:
    """The programs in a folder and the folders below it, in order."""
    scripts: list[Path] = []
    modules: list[Path] = []
    imported: set[Path] = set()
    for file in _python_files(folder, excluded):
        try:
            tree = ast.parse(file.read_bytes(), str(file))
        except (SyntaxError, ValueError, OSError, RecursionError):
            scripts.append(file)
            continue
        (scripts if _is_run(tree, str(file)) else modules).append(file)
        imported |= _imports(tree, file, folder) - {file}
    scripts += [each for each in modules if each not in imported and each.name != "__init__.py"]
    return sorted(scripts)


def _python_files(folder: Path, excluded: Callable[[Path], bool]) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = [name for name in folders if _is_searched(here / name, excluded)]
        for name in files:
            if name.endswith(".py") and not excluded(here / name):
                yield here / name


def _is_searched(folder: Path, excluded: Callable[[Path], bool]) -> bool:
    if folder.name.startswith(".") or folder.name in _SKIPPED or excluded(folder):
        return False
    return not (folder / "pyvenv.cfg").exists()


def _is_run(tree: ast.Module, file: str) -> bool:
    """Whether a file does something when it is run."""
    statements = list(_top_level(tree.body))
    if any(isinstance(each, ast.If) and _asks_for_name(each.test) for each in statements):
        return True
    loops = [each for each in statements if isinstance(each, ast.For | ast.While)]
    if not loops:
        return False
    training = find_training({file: tree})
    return any(training.trains(each) for each in loops)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that are run when a file is, those inside others too."""
    for each in body:
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(each, part, []))


def _asks_for_name(test: ast.expr) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(test))


def _imports(tree: ast.Module, file: Path, folder: Path) -> set[Path]:
    """The files of the folder that an import statement of this file may mean.

    Where modules are searched for is not known, so every folder on the way to the file counts.
    """
    roots = [each for each in file.parents if each.is_relative_to(folder)]
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(imported_files(node, file, tuple(str(root) for root in roots)))
    return found
