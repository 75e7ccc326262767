"""Whether code of an `__iter__` is light: takes next to no time, and draws nothing while it loops.

A stream that is indexed is gone through by every worker. That pays only if going through it is
light, and is exact only if nothing is drawn on the way: by each worker it would be drawn at another
time. What is not known to be light is not.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections import deque
from collections.abc import Iterator
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any, TypeGuard

__all__ = ["Light", "names_stored"]

_BUILTINS = frozenset({
    "range", "enumerate", "zip", "iter", "reversed", "sorted", "list", "tuple", "set", "dict",
    "len", "open", "min", "max", "int", "float", "str", "bool", "abs", "sum", "divmod",
    "isinstance", "round", "any", "all", "repr",
})  # fmt: skip
_IN_LOOPS = frozenset({"itertools", "math", "io", "_io", "pathlib", "os", "posixpath", "gzip"})
_ONCE = _IN_LOOPS | {"torch", "numpy", "random", "glob", "json", "csv", "_csv", "operator", "copy"}
_METHODS = frozenset({
    "strip", "rstrip", "lstrip", "split", "rsplit", "startswith", "endswith", "lower", "upper",
    "encode", "decode", "items", "keys", "values", "tolist", "get", "exists", "is_file", "join",
    "open", "format", "count", "index",
})  # fmt: skip
_SCALARS: tuple[type, ...] = (
    int, float, complex, str, bytes, bool, type(None), range, slice, PurePath,
)  # fmt: skip
_GROUPS: tuple[type, ...] = (list, tuple, set, frozenset, deque)
_PARTS = (
    ast.BinOp, ast.BoolOp, ast.Compare, ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.JoinedStr,
    ast.FormattedValue, ast.Subscript, ast.Slice, ast.UnaryOp, ast.Starred, ast.keyword, ast.Set,
)  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Light:
    """Answers for one `__iter__`, of one dataset."""

    def __init__(self, definition: ast.FunctionDef, function: FunctionType, dataset: Any) -> None:
        self._globals = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        self._dataset = dataset
        self._self = definition.args.args[0].arg if definition.args.args else ""
        self.own_nodes = list(_own_nodes(definition))
        self._bound: dict[str, list[ast.expr]] = {}
        for node in ast.walk(definition):
            for target, value in _bindings(node):
                for name in names_stored(target):
                    self._bound.setdefault(name, []).append(value)
        self._written = {n.attr for n in ast.walk(definition) if _is_written(n)}
        self._known: dict[str, bool] = {}

    def once(self, node: ast.expr) -> bool:
        """Whether going through a value is light; making it happens once and may draw."""
        return self._expression(node, in_loop=False)

    def in_loop(self, node: ast.AST) -> bool:
        """Whether a statement or an expression in a loop is light."""
        if isinstance(node, ast.expr):
            return self._expression(node, in_loop=True)
        if isinstance(node, ast.Assign):
            names = all(isinstance(each, ast.Name | ast.Tuple) for each in node.targets)
            return names and self.in_loop(node.value)
        if isinstance(node, ast.AugAssign):
            return isinstance(node.target, ast.Name) and self.in_loop(node.value)
        if isinstance(node, ast.If):
            return self.in_loop(node.test) and all(map(self.in_loop, node.body + node.orelse))
        if isinstance(node, ast.Return):
            return node.value is None
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant)
        return isinstance(node, ast.Continue | ast.Break | ast.Pass)

    def comprehended(self, part: ast.comprehension, *, first: bool) -> bool:
        """Whether a `for … in … if …` of a generator expression is light."""
        items = self.once(part.iter) if first else self.in_loop(part.iter)
        return items and all(map(self.in_loop, part.ifs))

    def _expression(self, node: ast.AST, *, in_loop: bool) -> bool:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, in_loop=in_loop)
        if isinstance(node, ast.Call):
            parts = [*node.args, *node.keywords]
            return self._callee(node.func, in_loop=in_loop) and all(
                self._expression(each, in_loop=in_loop) for each in parts
            )
        if isinstance(node, _COMPREHENSIONS):
            return not in_loop
        if not isinstance(node, _PARTS):
            return False
        children = ast.iter_child_nodes(node)
        return all(
            self._expression(each, in_loop=in_loop)
            for each in children
            if isinstance(each, ast.expr | ast.keyword)
        )

    def _name(self, name: str) -> bool:
        """Whether what a name stands for is light to go through."""
        if name not in self._bound:
            value = self._globals.get(name, getattr(builtins, name, _NONE))
            return name != self._self and _is_plain(value)
        if name not in self._known:
            self._known[name] = True  # what is made of itself is judged by the rest
            self._known[name] = all(map(self.once, self._bound[name]))
        return self._known[name]

    def _attribute(self, node: ast.Attribute, *, in_loop: bool) -> bool:
        names, root = _dotted(node)
        if not isinstance(root, ast.Name):
            return self._expression(node.value, in_loop=in_loop)
        if root.id == self._self:
            value = self._dataset
            if self._written & set(names):
                return False  # it may become something else
            for name in names:
                value = getattr(value, "__dict__", {}).get(name, getattr(type(value), name, _NONE))
            return value is not None and _is_plain(value)
        if root.id in self._bound:
            return self._name(root.id)
        return isinstance(self._globals.get(root.id), ModuleType)

    def _callee(self, node: ast.expr, *, in_loop: bool) -> bool:
        modules = _IN_LOOPS if in_loop else _ONCE
        if isinstance(node, ast.Name):
            if node.id in self._bound:
                return False
            if node.id not in self._globals:
                return node.id in _BUILTINS
            made_in = getattr(self._globals[node.id], "__module__", None) or ""
            return str(made_in).partition(".")[0] in modules
        if not isinstance(node, ast.Attribute):
            return False
        _, root = _dotted(node)
        if isinstance(root, ast.Name) and root.id not in self._bound and root.id != self._self:
            module = self._globals.get(root.id)
            if isinstance(module, ModuleType):
                return module.__name__.partition(".")[0] in modules
        known = node.attr in _METHODS or (not in_loop and not self._is_of_self(root))
        return known and self._expression(node.value, in_loop=in_loop)

    def _is_of_self(self, root: ast.expr) -> bool:
        return isinstance(root, ast.Name) and root.id == self._self


_NONE = object()


def names_stored(target: ast.AST) -> set[str]:
    """The names that a target binds."""
    return {
        node.id
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.comprehension):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def _is_written(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _dotted(node: ast.expr) -> tuple[list[str], ast.expr]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return names, node


def _own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function but those of functions in it."""
    for each in ast.iter_child_nodes(tree):
        yield each
        if not isinstance(each, _SCOPES):
            yield from _own_nodes(each)


def _is_plain(value: Any, depth: int = 3) -> bool:
    """Whether a value is data: numbers, texts, arrays, and groups of them."""
    if isinstance(value, _SCALARS):
        return True
    kind = type(value)
    if (kind.__module__, kind.__name__) in (("numpy", "ndarray"), ("torch", "Tensor")):
        return True
    inner = value.values() if isinstance(value, dict) else value
    if not depth or not isinstance(value, (dict, *_GROUPS)):
        return False
    return all(_is_plain(each, depth - 1) for each in inner)
