"""New headers for the loops on the way to an update.

    for x in e:   →   for x in __detrain__.loop(__detrain__.entering(site), e):
    while test:   →   while __detrain__.tick(site) and (test) and __detrain__.begun(site):

and `__detrain__.done(site)` after the loop. A generator function without decorators gets one,
`@__detrain__.held`, so that a generator that the program holds can be taken up again.

Line numbers stay; nothing is added to a loop's body. What a *site* is says `analysis/sites.py`; a
loop whose site is marked with a `!` is never passed over on resume but run again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeVar

from detrain.analysis.sites import Function, LoopNode, is_generator, loop_sites

__all__ = ["HOOKS", "rewrite"]

HOOKS = "__detrain__"

_CLOCKS = frozenset({"now", "utcnow", "today"})
"""Methods of `datetime` and `date`: built-in classes, which can't be asked in another way."""

Stmt = TypeVar("Stmt", bound=ast.stmt)


def rewrite(
    tree: ast.Module, module: str, chosen: Callable[[ast.For | ast.While], bool]
) -> ast.Module:
    """The tree with new headers for chosen loops; it is changed in place."""
    sites = loop_sites(
        tree, module, lambda node: not isinstance(node, ast.AsyncFor) and chosen(node)
    )
    rewritten = _Rewrite(sites).visit(tree)
    ast.fix_missing_locations(rewritten)
    assert isinstance(rewritten, ast.Module)
    return rewritten


class _Rewrite(ast.NodeTransformer):
    def __init__(self, sites: Mapping[LoopNode, str]) -> None:
        self._sites = sites

    # ------------------------------------------------------------ scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._function(node)

    def _function(self, node: Function) -> ast.stmt:
        is_held = isinstance(node, ast.FunctionDef) and is_generator(node)
        node.body = [each for statement in node.body for each in self._statements(statement)]
        if is_held and not node.decorator_list:
            kept = ast.Attribute(ast.Name(HOOKS, ast.Load()), "held", ast.Load())
            node.decorator_list = [ast.copy_location(kept, node)]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        node.body = [each for statement in node.body for each in self._statements(statement)]
        return node

    def _statements(self, node: ast.stmt) -> list[ast.stmt]:
        found = self.visit(node)
        return found if isinstance(found, list) else [found]

    # ------------------------------------------------------------ loops

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        site = self._sites.get(node)
        if site is None:
            return self._plain(node)
        self._inside(node)
        entering = _call("entering", ast.Constant(site))
        node.iter = ast.copy_location(_call("loop", entering, node.iter), node.iter)
        return [node, _done(node, site)]

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        site = self._sites.get(node)
        if site is None:
            return self._plain(node)
        self._inside(node)
        calls = [_call("tick", ast.Constant(site)), node.test, _call("begun", ast.Constant(site))]
        node.test = ast.copy_location(ast.BoolOp(ast.And(), calls), node.test)
        return [node, _done(node, site)]

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CLOCKS:
            asked = _call("ask", node.func, *node.args)
            asked.keywords = node.keywords
            return ast.copy_location(asked, node)
        return node

    def _plain(self, node: Stmt) -> Stmt:
        self.generic_visit(node)
        return node

    def _inside(self, node: ast.For | ast.While) -> None:
        """Rewrite the statements in a loop, and leave what it goes over, or asks, as it is."""
        node.body = [each for statement in node.body for each in self._statements(statement)]
        node.orelse = [each for statement in node.orelse for each in self._statements(statement)]


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    hooks = ast.Name(HOOKS, ast.Load())
    return ast.Call(ast.Attribute(hooks, name, ast.Load()), list(arguments), [])


def _done(node: ast.For | ast.While, site: str) -> ast.Expr:
    """The call after a loop: reached by its end and by break, not by return or an error."""
    done = ast.Expr(_call("done", ast.Constant(site)))
    done.lineno = done.end_lineno = node.end_lineno or node.lineno
    done.col_offset = done.end_col_offset = 0
    return done
