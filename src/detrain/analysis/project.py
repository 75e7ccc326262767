"""The program's own files: the script, and the modules beside it that it imports."""

from __future__ import annotations

import ast
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Project", "imported_files", "read_project"]

_LIBRARIES = tuple(
    str(Path(path).resolve()) + "/"
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


@dataclass(frozen=True)
class Project:
    """The script, the syntax tree of each file by its path, and the folders they were found in."""

    script: Path
    trees: dict[str, ast.Module]
    roots: tuple[str, ...]
    broken: dict[str, SyntaxError] = field(default_factory=dict)
    """Files that can't be parsed."""

    def owns(self, filename: str) -> bool:
        """Whether code of this file is the program's own."""
        return filename in self.trees

    def imports(self, module: str) -> bool:
        """Whether one of the files imports a module by name."""
        for tree in self.trees.values():
            for node in _statements(tree):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                if any(name.partition(".")[0] == module for name in names):
                    return True
        return False


def read_project(script: Path, search: tuple[str, ...]) -> Project:
    """Read the script and, by the names in its import statements, the local modules it reaches.

    A file that can't be parsed has no tree: Python will say what is wrong with it.
    """
    script = script.absolute()
    roots = tuple(dict.fromkeys([str(script.parent), *(str(Path(p).absolute()) for p in search)]))
    roots = tuple(root for root in roots if not (root + "/").startswith(_LIBRARIES))
    trees: dict[str, ast.Module] = {}
    broken: dict[str, SyntaxError] = {}
    todo = [script]
    while todo:
        path = todo.pop()
        if str(path) in trees or str(path).startswith(_LIBRARIES):
            continue
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except SyntaxError as error:
            broken[str(path)] = error
            continue
        except (ValueError, OSError, RecursionError):
            continue
        trees[str(path)] = tree
        for node in _statements(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                todo += imported_files(node, path, roots)
    return Project(script, trees, roots, broken)


def _statements(tree: ast.Module) -> list[ast.AST]:
    """All statements of a file, outer ones first, with what else contains statements."""
    found: list[ast.AST] = [tree]
    for node in found:
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                found += inner
    return found


def imported_files(
    node: ast.Import | ast.ImportFrom, importer: Path, roots: tuple[str, ...]
) -> list[Path]:
    """The local files that an import statement may mean."""
    if isinstance(node, ast.Import):
        names, bases = [alias.name for alias in node.names], [Path(root) for root in roots]
    else:
        module = node.module or ""
        names = [module, *(f"{module}.{alias.name}".strip(".") for alias in node.names)]
        bases = [Path(root) for root in roots]
        if node.level:
            bases = (
                [importer.parents[node.level - 1]] if node.level <= len(importer.parents) else []
            )
    found: list[Path] = []
    for base in bases:
        for name in names:
            parts = name.split(".") if name else []
            # Packages on the way are imported too.
            found += [
                base.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)
            ]
            if parts:
                found.append(base.joinpath(*parts).with_suffix(".py"))
    return [path for path in dict.fromkeys(found) if path.is_file()]
