"""New headers for the loops on the way to an update.

    for x in e:   →   for x in __detrain__.loop(__detrain__.entering(site), e):
    while test:   →   while __detrain__.tick(site) and (test) and __detrain__.begun(site):

and `__detrain__.done(site)` after the loop. A generator function without decorators gets one,
`@__detrain__.held`, so that a generator that the program holds can be taken up again.

Line numbers stay; nothing is added to a loop's body. A *site* is the module, the qualified name of
the function and the loop's place in its structure, so that it does not change when lines are added
around it. A loop that has both a `break` and an `else` is marked with a `!`: which of the two ended
it can't be told from outside, so it is never passed over on resume but run again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from detrain.analysis.loops import breaks
from detrain.instrument.find import Function

__all__ = ["HOOKS", "rewrite"]

HOOKS = "__detrain__"

_CLOCKS = frozenset({"now", "utcnow", "today"})
"""Methods of `datetime` and `date`: built-in classes, which can't be asked in another way."""

Stmt = TypeVar("Stmt", bound=ast.stmt)


def rewrite(
    tree: ast.Module, module: str, chosen: Callable[[ast.For | ast.While], bool]
) -> ast.Module:
    """The tree with new headers for chosen loops; it is changed in place."""
    rewritten = _Rewrite(module, chosen).visit(tree)
    ast.fix_missing_locations(rewritten)
    assert isinstance(rewritten, ast.Module)
    return rewritten


class _Rewrite(ast.NodeTransformer):
    def __init__(self, module: str, chosen: Callable[[ast.For | ast.While], bool]) -> None:
        self._module, self._chosen = module, chosen
        self._names: list[str] = []
        self._open: list[str] = []
        """The loops around this place, in this function, by their numbers: "0", "0.2"."""
        self._count: dict[str, int] = {}
        self._skip = False

    # ------------------------------------------------------------ scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._function(node)

    def _function(self, node: Function) -> ast.stmt:
        # A generator's frame is not on the stack between its items: its loops have no place there.
        skip = isinstance(node, ast.AsyncFunctionDef) or _yields(node)
        before = self._open, self._count, self._skip
        self._open, self._count, self._skip = [], {}, skip
        self._names.append(node.name)
        node.body = [each for statement in node.body for each in self._statements(statement)]
        self._names.pop()
        self._open, self._count, self._skip = before
        if isinstance(node, ast.FunctionDef) and skip and not node.decorator_list:
            kept = ast.Attribute(ast.Name(HOOKS, ast.Load()), "held", ast.Load())
            node.decorator_list = [ast.copy_location(kept, node)]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        before = self._open, self._count
        self._open, self._count = [], {}
        self._names.append(node.name)
        node.body = [each for statement in node.body for each in self._statements(statement)]
        self._names.pop()
        self._open, self._count = before
        return node

    def _statements(self, node: ast.stmt) -> list[ast.stmt]:
        found = self.visit(node)
        return found if isinstance(found, list) else [found]

    # ------------------------------------------------------------ loops

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        if self._skip or not self._chosen(node):
            return self._plain(node)
        site = self._enter_loop(node)
        entering = _call("entering", ast.Constant(site))
        node.iter = ast.copy_location(_call("loop", entering, node.iter), node.iter)
        return [node, _done(node, site)]

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        if self._skip or not self._chosen(node):
            return self._plain(node)
        site = self._enter_loop(node)
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

    def _enter_loop(self, node: ast.For | ast.While) -> str:
        """Rewrite what is inside a loop; gives its site."""
        parent = self._open[-1] if self._open else ""
        number = self._count.get(parent, 0)
        self._count[parent] = number + 1
        own = f"{parent}.{number}" if parent else str(number)
        self._open.append(own)
        node.body = [each for statement in node.body for each in self._statements(statement)]
        self._open.pop()
        unclear = bool(node.orelse) and breaks(node)
        node.orelse = [each for statement in node.orelse for each in self._statements(statement)]
        return self._site(own) + ("!" if unclear else "")

    def _site(self, number: str) -> str:
        return f"{self._module}:{'.'.join(self._names) or '<module>'}:{number}"


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    hooks = ast.Name(HOOKS, ast.Load())
    return ast.Call(ast.Attribute(hooks, name, ast.Load()), list(arguments), [])


def _done(node: ast.For | ast.While, site: str) -> ast.Expr:
    """The call after a loop: reached by its end and by break, not by return or an error."""
    done = ast.Expr(_call("done", ast.Constant(site)))
    done.lineno = done.end_lineno = node.end_lineno or node.lineno
    done.col_offset = done.end_col_offset = 0
    return done


def _yields(node: Function) -> bool:
    """Whether a function is a generator: a yield of its own, not of a function inside it."""
    todo: list[ast.AST] = list(node.body)
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, Function | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(each))
    return False
