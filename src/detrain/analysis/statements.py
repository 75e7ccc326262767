"""Statements of Python as ops of the language."""

from __future__ import annotations

import ast
from collections.abc import Callable

from detrain.analysis.control import Control
from detrain.analysis.program import Function
from detrain.analysis.scopes import Code

__all__ = ["Statements"]


class Statements(Control):
    """Writes the ops of blocks of statements, and of functions."""

    def statements(self, nodes: list[ast.stmt]) -> None:
        """The ops of a block."""
        self.depth += 1
        for node in nodes:
            method: Callable[[ast.stmt], None] | None = getattr(
                self, f"_{type(node).__name__}", None
            )
            if method is not None:
                begin, before = len(self.out), self.versions
                method(node)
                now, self.versions = self.versions, before
                self._look_at_names(node, begin)
                self.versions = now
        self.depth -= 1

    def function(self, name: str = "") -> Function:
        """The whole function that this is the scope of, perhaps under another name."""
        scope = self.scope
        node = scope.node
        self.function_name = name or scope.key
        assert isinstance(node, Code)
        self.assigned.update(scope.parameters())
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
