"""The scopes of a project: its modules, classes and functions, and whose a name is.

A variable of a function that functions inside it use too is *captured*: it outlives the function,
and has a name of its own in the whole program.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

__all__ = [
    "COMPREHENSION",
    "Code",
    "Module",
    "Scope",
    "imported_from",
    "last_name",
    "own_nodes",
    "read_modules",
]

Code = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_BUILTINS = frozenset(dir(builtins))
_SMALL = 120
"""Nodes of the syntax tree: some ten lines."""


@dataclass(eq=False)
class Scope:
    """A module, a class or a function. `qualname` is Python's own, empty for a module."""

    kind: Literal["module", "class", "function"]
    name: str
    qualname: str
    module: Module
    node: ast.AST
    parent: Scope | None
    bound: set[str] = field(default_factory=set)
    declared_global: set[str] = field(default_factory=set)
    declared_nonlocal: set[str] = field(default_factory=set)
    captured: set[str] = field(default_factory=set)
    inner: list[Scope] = field(default_factory=list)
    is_another: bool = False
    """Whether something of the same name is defined before it, as by an `if` or a setter."""
    imports: dict[str, str] = field(default_factory=dict)
    """Names that imports bind, with the absolute name of what they mean."""

    @cached_property
    def key(self) -> str:
        """Its name in the whole program, without dots: `train`, `Net/forward`, `utils:train`.

        Lambdas, and what is defined a second time under one name, have their place in it too.
        """
        if self.parent is None:
            return self.module.prefix
        name = self.name.replace("<lambda>", "lambda")
        if self.is_another or self.name == "<lambda>":
            name += f"@{getattr(self.node, 'lineno', 0)}:{getattr(self.node, 'col_offset', 0)}"
        between = "/" if self.parent.parent is not None else ""
        return f"{self.parent.key}{between}{name}"

    @cached_property
    def space(self) -> str:
        """How a running program names it: `module` or `module:qualname`."""
        return f"{self.module.name}:{self.qualname}" if self.qualname else self.module.name

    def owner(self, name: str) -> Scope | None:
        """The module or function whose variable a name is here; None if it is built in."""
        if name in self.declared_global:
            return self.module.scope
        scope: Scope | None = self
        while scope is not None:
            visible = scope is self or scope.kind != "class"
            if visible and name in scope.bound and name not in scope.declared_nonlocal:
                return scope
            scope = scope.parent
        return None if name in _BUILTINS else self.module.scope

    def parameters(self) -> tuple[str, ...]:
        """The parameters of a function, in the order of a call's arguments."""
        assert isinstance(self.node, Code)
        a = self.node.args
        names = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs]
        return tuple(each.arg for each in (*names, *([a.kwarg] if a.kwarg else [])))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """What runs in its own frame, or in that of a comprehension in it."""
        return list(own_nodes(self.node))

    @cached_property
    def yields(self) -> bool:
        """Whether a function is a generator function."""
        return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in self.nodes)

    @cached_property
    def is_small(self) -> bool:
        """Whether a function is so small and plain that each call of it can be told apart."""
        if self.inner or self.captured or self.yields:
            return False
        return len(self.nodes) <= _SMALL and not self.loops

    @cached_property
    def loops(self) -> bool:
        """Whether a loop is written in it."""
        return any(isinstance(each, ast.For | ast.While | ast.AsyncFor) for each in self.nodes)


@dataclass(eq=False)
class Module:
    """A file of the project, with the name that it has when the program runs."""

    name: str
    path: str
    tree: ast.Module
    is_script: bool
    scope: Scope = field(init=False)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its syntax tree."""
        return list(ast.walk(self.tree))

    @property
    def prefix(self) -> str:
        """What stands before names of this module in the whole program."""
        return "" if self.is_script else self.name.replace(".", "/") + ":"


def last_name(node: ast.AST | None) -> str:
    """The last name of what is called or marked: `c` of `a.b.c(…)`."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function that run in its own frame, or in that of a comprehension in it."""
    todo = list(ast.iter_child_nodes(node))
    while todo:
        each = todo.pop()
        yield each
        if not isinstance(each, Code | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(each))


def read_modules(script: Path, trees: dict[str, ast.Module], roots: Iterable[str]) -> list[Module]:
    """The modules of a project, those that others import first and the script last."""
    modules = {}
    for path, tree in trees.items():
        is_script = Path(path) == script
        name = "__main__" if is_script else _module_name(Path(path), roots)
        module = Module(name, path, tree, is_script)
        module.scope = Scope("module", name, "", module, tree, None)
        _Collect(module).run()
        _find_captured(module.scope)
        modules[name] = module
    return _in_order(modules)


def _module_name(path: Path, roots: Iterable[str]) -> str:
    for root in roots:
        try:
            parts = path.relative_to(root).with_suffix("").parts
        except ValueError:
            continue
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return path.stem


def _in_order(modules: dict[str, Module]) -> list[Module]:
    """Modules in the order in which their code runs: a module after those that it imports."""
    done: dict[str, Module] = {}
    under_way: set[str] = set()

    def visit(name: str) -> None:
        if name in under_way or name not in modules:
            return
        under_way.add(name)
        imports = modules[name].scope.imports.values()
        for target in imports:
            parts = target.split(".")
            for depth in range(1, len(parts) + 1):
                visit(".".join(parts[:depth]))
        done[name] = modules[name]

    for name in sorted(modules, key=lambda name: name != "__main__"):
        visit(name)
    return list(done.values())


def imported_from(node: ast.ImportFrom, module: Module) -> str:
    """The absolute name of what a module imports from."""
    base = node.module or ""
    if not node.level:
        return base
    package = module.name.split(".")
    is_package = Path(module.path).name == "__init__.py"
    keep = len(package) - node.level + is_package
    return ".".join([*package[: max(keep, 0)], *([base] if base else [])])


class _Collect(ast.NodeVisitor):
    """Fills the scopes of a module: what each binds, declares and imports."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._scope = module.scope

    def run(self) -> None:
        for statement in self._module.tree.body:
            self.visit(statement)

    def _enter(self, kind: Literal["class", "function"], name: str, node: ast.AST) -> Scope:
        outer = self._scope
        between = ".<locals>." if outer.kind == "function" else "."
        qualname = f"{outer.qualname}{between}{name}" if outer.qualname else name
        scope = Scope(kind, name, qualname, self._module, node, outer)
        scope.is_another = any(each.name == name for each in outer.inner)
        outer.inner.append(scope)
        return scope

    def _function(self, node: Code, name: str) -> None:
        for each in (*node.args.defaults, *node.args.kw_defaults):
            if each is not None:
                self.visit(each)
        scope = self._enter("function", name, node)
        scope.bound.update(scope.parameters())
        outer, self._scope = self._scope, scope
        for child in [node.body] if isinstance(node, ast.Lambda) else node.body:
            self.visit(child)
        self._scope = outer

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._definition(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scope.bound.add(node.name)
        for each in node.decorator_list:
            self.visit(each)
        self._function(node, node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node, "<lambda>")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.bound.add(node.name)
        for each in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.visit(each)
        scope = self._enter("class", node.name, node)
        outer, self._scope = self._scope, scope
        for child in node.body:
            self.visit(child)
        self._scope = outer

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self._scope.bound.add(node.id)

    def visit_Global(self, node: ast.Global) -> None:
        self._scope.declared_global.update(node.names)
        self._module.scope.bound.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self._scope.declared_nonlocal.update(node.names)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._scope.bound.add(name)
            self._scope.imports[name] = alias.name if alias.asname else name
            self._scope.imports.setdefault(f" {alias.name}", alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = imported_from(node, self._module)
        for alias in node.names:
            name = alias.asname or alias.name
            if name == "*":
                # No name, but a module that runs first. There may be several.
                self._scope.imports[f" {base}.*"] = base
                continue
            self._scope.bound.add(name)
            self._scope.imports[name] = f"{base}.{alias.name}" if base else alias.name

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._scope.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._scope.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._scope.bound.add(node.rest)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._scope.bound.add(node.name)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def _comprehension(self, node: COMPREHENSION) -> None:
        """Variables of a comprehension are its own; a walrus in it is not."""
        before = set(self._scope.bound)
        self.generic_visit(node)
        own = {
            each.id
            for part in node.generators
            for each in ast.walk(part.target)
            if isinstance(each, ast.Name)
        }
        self._scope.bound -= own - before


def _find_captured(scope: Scope) -> None:
    """Mark the variables of functions that functions or classes inside them use."""
    for inner in scope.inner:
        _find_captured(inner)
        for each in inner.nodes:
            if isinstance(each, ast.Name):
                owner = inner.owner(each.id)
                if owner is not None and owner is not inner and owner.kind == "function":
                    owner.captured.add(each.id)
