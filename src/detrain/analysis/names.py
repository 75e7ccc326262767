"""Names: the variables of a program as it runs, and their cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from detrain.analysis.cells import Cell, Cells, CellSet
from detrain.analysis.frontend import Source
from detrain.analysis.program import walk_ops
from detrain.analysis.scopes import Module, Scope
from detrain.analysis.values import DEFINITIONS

__all__ = ["Names", "Variable"]


@dataclass(frozen=True, order=True)
class Variable:
    """A variable of the program as it runs."""

    place: str
    name: str
    cell: Cell
    is_split: bool = False
    """Whether it is more than one variable of the program: only the first is known here."""


class Names:
    """The variables of a program."""

    def __init__(self, source: Source, cells: Cells) -> None:
        self._source, self._cells = source, cells
        self._found: dict[tuple[str, ...], list[Variable]] = {}

    def variables(self, scopes: tuple[str, ...]) -> list[Variable]:
        """The variables of the program that are there, with their cells."""
        if scopes not in self._found:
            self._found[scopes] = self._find_variables(scopes)
        return self._found[scopes]

    def _find_variables(self, scopes: tuple[str, ...]) -> list[Variable]:
        found: list[Variable] = []
        for module in self._source.modules:
            found += self._globals(module)
        for key in scopes:
            if key:
                found += self._locals(self._source.scope(key), key)
        there = self._there(scopes)
        return [each for each in found if each.cell in there]

    def _there(self, scopes: tuple[str, ...]) -> CellSet:
        """All variables of some functions."""
        there = self._cells.nothing
        for key in scopes:
            there |= self._cells.variables(key)
        return there

    def _globals(self, module: Module) -> Iterator[Variable]:
        for name in sorted(module.scope.bound):
            if not self._is_definition(module.prefix + name):
                place = f"{module.name}/{name}"
                yield Variable(place, name, ("", "", module.prefix + name))

    def _locals(self, scope: Scope, function: str) -> Iterator[Variable]:
        names = set(scope.bound) | set(scope.declared_nonlocal)
        for name in sorted(names | self._free(scope)):
            owner = scope.owner(name)
            if owner is None or owner.kind != "function":
                continue
            if name in owner.captured:
                head = f"{owner.key}/{name}"
                cell, key = ("", "", head), head
            else:
                cell, key = ("", function, name), f"{scope.key}:{name}"
            if not self._is_definition(key):
                is_split = (function, name) in self._source.lowered.versions
                yield Variable(f"{scope.space}/{name}", name, cell, is_split)

    def _free(self, scope: Scope) -> set[str]:
        """Variables of functions around one, which its frame shows too."""
        found: set[str] = set()
        outer = scope.parent
        while outer is not None:
            if outer.kind == "function":
                found |= outer.captured
            outer = outer.parent
        return found

    def _is_definition(self, key: str) -> bool:
        tags = self._source.facts.variables.get(key)
        return len(tags) == 1 and all(tag[0] in DEFINITIONS for tag in tags)

    def written_at(self, cell: Cell) -> tuple[int, str]:
        """The first line that binds a variable."""
        return self._lines.get(cell, (0, ""))

    @cached_property
    def _lines(self) -> dict[Cell, tuple[int, str]]:
        found: dict[Cell, tuple[int, str]] = {}
        for scope, block in self._cells.scopes:
            for op in walk_ops(block):
                target = getattr(op, "target", None)
                if target is not None and op.span is not None and len(target) == 1:
                    key = self._cells.variable(scope, target[0])
                    found.setdefault(key, (op.span.line, op.span.file))
        return found
