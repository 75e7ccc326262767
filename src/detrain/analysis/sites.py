"""Sites: the names of loops that a plan and a running program share.

A site is the module, the qualified name of the function and the loop's place in its structure, so
that it does not change when lines are added around it. A loop that has both a `break` and an `else`
is marked with a `!`: which of the two ended it can't be told from outside.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

__all__ = ["Function", "LoopNode", "breaks", "is_generator", "loop_sites"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
LoopNode = ast.For | ast.AsyncFor | ast.While

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def loop_sites(
    tree: ast.Module, module: str, chosen: Callable[[LoopNode], bool]
) -> dict[LoopNode, str]:
    """The sites of the chosen loops of a module; those of generators have none, as their frames are
    not on the stack between their items.
    """
    found: dict[LoopNode, str] = {}
    todo: list[tuple[Function | ast.Module | ast.ClassDef, tuple[str, ...], bool]] = [
        (tree, (), False)
    ]
    while todo:
        scope, names, skip = todo.pop()
        name = f"{module}:{'.'.join(names) or '<module>'}"
        if isinstance(scope, Function):
            skip = is_generator(scope)
        count: dict[str, int] = {}
        # What is still to be visited, with the number of the loop around it.
        inside: list[tuple[ast.AST, str]] = [(each, "") for each in reversed(scope.body)]
        while inside:
            node, parent = inside.pop()
            if isinstance(node, Function | ast.ClassDef):
                todo.append((node, (*names, node.name), skip))
                continue
            own = parent
            if isinstance(node, LoopNode) and not skip and chosen(node):
                number = count.get(parent, 0)
                count[parent] = number + 1
                own = f"{parent}.{number}" if parent else str(number)
                unclear = bool(node.orelse) and breaks(node)
                found[node] = f"{name}:{own}" + ("!" if unclear else "")
            blocks = [*_blocks(node)]
            for field, block in reversed(blocks):  # what follows a loop as its `else` is outside
                around = own if field == "body" else parent
                inside += [(each, around) for each in reversed(block)]
    return found


def _blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.AST]]]:
    """The lists of statements in a statement, and of what else contains statements."""
    for field in _BLOCKS:
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield field, block


def is_generator(node: Function) -> bool:
    """Whether a function's frame is not on the stack all the time that it runs: it is a coroutine,
    or has a yield of its own.
    """
    if isinstance(node, ast.AsyncFunctionDef):
        return True
    todo: list[ast.AST] = list(node.body)
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, Function | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(each))
    return False


def breaks(node: LoopNode) -> bool:
    """Whether a break in the body leaves this loop."""
    todo: list[ast.AST] = list(node.body)
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Break):
            return True
        if isinstance(each, ast.For | ast.While):
            todo.extend(each.orelse)
        elif not isinstance(each, Function | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(each))
    return False
