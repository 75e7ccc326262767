"""Which loops are on the way to a training update.

By names, for programs that could not be analysed, over all files of the project: a function
*trains* if it makes an update, or calls or mentions a function that does. A loop is on the way if
something in it trains. Too many loops cost microseconds, one too few costs a place for a
checkpoint; so the names are taken generously.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

from detrain.analysis.loops import over_parts
from detrain.analysis.sites import Function

__all__ = ["Training", "find_training"]

_NEVER = frozenset({"__init__", "forward", "__call__", "__iter__", "__next__", "__getitem__"})
_UPDATES = frozenset({"backward", "manual_backward", "optimizer_step", "apply_gradients"})
_OPTIMIZERS = ("opt", "solver", "adam", "sgd")


@dataclass(frozen=True)
class Training:
    """The names of functions that train: those called as `name(…)`, and methods besides."""

    functions: frozenset[str]
    methods: frozenset[str]
    known: frozenset[str] = frozenset()
    """Names that surely are not variables holding a function: definitions, imports, built-ins."""
    passed_on: bool = False
    """Whether something that trains is passed on as a value, so that a variable may hold it."""

    def is_on_the_way(self, loop: ast.For | ast.While) -> bool:
        """Whether a loop is on the way to an update, and not one over its parts."""
        return not over_parts(loop) and self.trains(loop)

    def trains(self, node: ast.AST) -> bool:
        """Whether something below this node makes an update, or calls something that does."""
        bound = _bound_names(node)
        return any(_is_update(each) or self._uses(each, bound) for each in ast.walk(node))

    def _uses(self, node: ast.AST, bound: frozenset[str]) -> bool:
        """Whether a node calls a function that trains, or passes one on."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in self.methods or node.func.attr in self.functions
        if self.passed_on and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id not in self.known or node.func.id in self.functions
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return node.id in self.functions and node.id not in bound
        return False


def find_training(trees: dict[str, ast.Module]) -> Training:
    """Find the functions that train, by a fixed point over names."""
    methods = [
        each
        for tree in trees.values()
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for each in owner.body
        if isinstance(each, Function) and each.name not in _NEVER
    ]
    inside = {id(method) for method in methods}
    functions = [
        each
        for tree in trees.values()
        for each in ast.walk(tree)
        if isinstance(each, Function) and id(each) not in inside and each.name not in _NEVER
    ]
    known = frozenset(dir(builtins)).union(*(_defined_names(tree) for tree in trees.values()))
    found = Training(frozenset(), frozenset(), known)
    while True:
        grown = Training(
            frozenset(each.name for each in functions if found.trains(each)),
            frozenset(each.name for each in methods if found.trains(each)),
            known,
            any(_passes_on(tree, found) for tree in trees.values()),
        )
        if grown == found:
            return found
        found = grown


def _defined_names(tree: ast.Module) -> set[str]:
    """Names of functions, classes and imports of a file."""
    names = set()
    for each in ast.walk(tree):
        if isinstance(each, Function | ast.ClassDef):
            names.add(each.name)
        elif isinstance(each, ast.alias):
            names.add((each.asname or each.name).partition(".")[0])
    return names


def _passes_on(tree: ast.Module, training: Training) -> bool:
    """Whether a function that trains is used as a value: given to a call, kept in a variable."""
    called = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Lambda) and training.trains(each.body):
            return True
        if id(each) in called:
            continue
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            found = each.id in training.functions
        else:
            found = isinstance(each, ast.Attribute) and each.attr in training.methods
        if found:
            return True
    return False


def _bound_names(node: ast.AST) -> frozenset[str]:
    """Names that are variables below this node, and so are not the functions of that name."""
    return frozenset(
        each.id if isinstance(each, ast.Name) else each.arg
        for each in ast.walk(node)
        if (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
        or isinstance(each, ast.arg)
    )


def _is_update(node: ast.AST) -> bool:
    """Whether a node changes parameters: a backward pass, an optimizer's step, a hand-made one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, owner = node.func.attr, node.func.value
        if name in _UPDATES:
            return True
        if name == "step":
            return any(word in ast.unparse(owner).lower() for word in _OPTIMIZERS)
        # p.data.add_(p.grad, alpha=-lr) and the like
        in_place = name.endswith("_") and not name.endswith("__")
        return in_place and any(_reads_gradient(argument) for argument in node.args)
    return isinstance(node, ast.AugAssign | ast.Assign) and _reads_gradient(node.value)


def _reads_gradient(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "grad" for each in ast.walk(node))
