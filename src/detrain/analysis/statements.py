"""Statements of Python as ops of the language."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import islice

from detrain.analysis.control import Control
from detrain.analysis.facts import Found
from detrain.analysis.program import Emit, Function
from detrain.analysis.scopes import Code

__all__ = ["Statements"]

_PLAIN = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert,
    ast.Delete, ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip
"""Statements that hold no others, but for functions, which are read elsewhere."""

_SOMETHING = Emit(())
"""Stands for the ops of a statement that is not read again: these ops are not kept."""


class Statements(Control):
    """Writes the ops of blocks of statements, and of functions."""

    def statements(self, nodes: list[ast.stmt]) -> None:
        """The ops of a block."""
        self.depth += 1
        for node in nodes:
            method: Callable[[ast.stmt], None] | None = getattr(
                self, f"_{type(node).__name__}", None
            )
            if method is None:
                continue
            if self.facts.is_last:
                begin, before = len(self.out), self.versions
                method(node)
                now, self.versions = self.versions, before
                self._look_at_names(node, begin)
                self.versions = now
            elif isinstance(node, _PLAIN):
                self._learn_from(node, method)
            else:
                method(node)
        self.depth -= 1

    def _learn_from(self, node: ast.stmt, method: Callable[[ast.stmt], None]) -> None:
        """Read a plain statement, unless it has been read and would say the same."""
        reading, lowered = self.facts.reading, self.lowered
        around = self.versions, self.unsure, self.tried, self.loops
        found = self.facts.statements.get(node)
        if found is None or found.part.is_stale or found.around != around:
            outer = reading.part
            part = reading.new_part(outer) if found is None else found.part
            reading.begin(part)
            assigned, copies, ops = len(self.assigned), len(lowered.copies), lowered.numbers
            method(node)
            reading.part = outer
            self.facts.statements[node] = Found(
                part, around, tuple(islice(self.assigned, assigned, None)), self.versions,
                dict(islice(lowered.copies.items(), copies, None)), lowered.numbers - ops,
            )  # fmt: skip
            return
        self.assigned.update(dict.fromkeys(found.assigned))
        self.versions = found.versions
        lowered.copies |= found.copies
        lowered.numbers += found.ops
        if found.ops:
            self.out.append(_SOMETHING)

    def function(self, name: str = "") -> Function:
        """The whole function that this is the scope of, perhaps under another name."""
        scope = self.scope
        node = scope.node
        self.function_name = name or scope.key
        assert isinstance(node, Code)
        self.assigned.update(dict.fromkeys(scope.parameters()))
        for each in scope.parameters():
            if each in scope.captured:
                self.bind((f"{scope.key}/{each}",), "alias", ((each,),), node)
        if isinstance(node, ast.Lambda):
            self._returned(self.value(node.body), node)
        else:
            self.statements(node.body)
        return Function(
            name or scope.key,
            scope.parameters(),
            tuple(self.out),
            tuple(sorted(self.bound_globals)),
            self.span(node),
        )
