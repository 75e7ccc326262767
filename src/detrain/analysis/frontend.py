"""From Python to the language: a whole project as one program.

Nothing of the project runs, and no framework is imported. What variables, fields and results may be
is found by reading the program again and again until nothing new is learnt; the last reading gives
the ops.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from detrain.analysis.emit import GRADIENTS, NONE, Lowered
from detrain.analysis.program import Bind, Function, Op, Program
from detrain.analysis.project import Project
from detrain.analysis.scopes import Module, Scope, last_name, read_modules
from detrain.analysis.statements import Statements
from detrain.analysis.values import Facts
from detrain.errors import ProgramTooLarge

__all__ = ["Source", "lower"]

_MOST_READINGS = 12
"""Tags are finite and only grow; real programs need three to six readings."""

_MOST_OPS = 50_000
"""Programs of 10,000 lines have 20,000. Not a time: whether a program has a plan must not
depend on the machine."""


@dataclass(frozen=True)
class Source:
    """A project in the language, and what was found besides the ops."""

    program: Program
    modules: tuple[Module, ...]
    facts: Facts
    lowered: Lowered

    def scope(self, function: str) -> Scope:
        """The function of the project that a function of the program stands for."""
        return self.facts.functions[self.lowered.copies.get(function, function)]


def lower(project: Project) -> Source:
    """The program of a project."""
    modules = read_modules(project.script, project.trees, project.roots)
    by_name = {module.name: module for module in modules}
    facts = Facts()
    facts.packages = frozenset(
        target.partition(".")[0] for each in modules for target in each.scope.imports.values()
    )
    for module in modules:
        _collect(module.scope, facts)
        if module.is_script:  # somebody may call its functions, if it does not itself
            facts.reached.update((key, None) for key in facts.functions if key.count(":") == 0)
    facts.straight = _straight(facts)
    for facts.settled in (False, True):
        for _ in range(_MOST_READINGS):
            facts.grown = False
            program, lowered = _read(project, modules, by_name, facts)
            if not facts.grown:
                break
    return Source(program, tuple(modules), facts, lowered)


def _straight(facts: Facts) -> frozenset[str]:
    """Small functions that call none, by name, that has a loop or calls such a one.

    What is called otherwise, an object for example, may have one: planning sees to that.
    """
    called = {
        key: {last_name(each.func) for each in scope.nodes if isinstance(each, ast.Call)}
        for key, scope in facts.functions.items()
    }
    looping = {key for key, scope in facts.functions.items() if scope.loops}
    while True:
        names = {_called_as(facts.functions[key]) for key in looping}
        more = {key for key, used in called.items() if used & names} - looping
        if not more:
            break
        looping |= more
    small = {key for key, scope in facts.functions.items() if scope.is_small}
    return frozenset(small - looping)


def _called_as(scope: Scope) -> str:
    """The name by which a function is called: that of its class, if it makes an object."""
    makes = scope.name in ("__init__", "__new__") and scope.parent is not None
    return scope.parent.name if makes and scope.parent is not None else scope.name


def _lines(tree: ast.Module) -> int:
    return (tree.body[-1].end_lineno or 0) if tree.body else 0


def _collect(scope: Scope, facts: Facts) -> None:
    for inner in scope.inner:
        if inner.kind == "function":
            facts.functions[inner.key] = inner
            if scope.kind == "class" and inner.parameters():
                first = inner.parameters()[0]
                name = f"{inner.key}/{first}" if first in inner.captured else f"{inner.key}:{first}"
                marks = {getattr(e, "id", "") for e in getattr(inner.node, "decorator_list", ())}
                if not marks & {"staticmethod", "classmethod"}:
                    facts.variables[name].add(("instance", scope.key))
        _collect(inner, facts)


def _read(
    project: Project, modules: list[Module], by_name: dict[str, Module], facts: Facts
) -> tuple[Program, Lowered]:
    """Read the project once."""
    lowered = Lowered()
    main: list[Op] = [
        Bind(NONE, "pure", site=-1),
        Bind(GRADIENTS, "new", site=0),
    ]
    for module in modules:
        top = Statements(facts, lowered, module.scope, by_name)
        top.statements(module.tree.body)
        main += top.out
    functions: list[Function] = []
    done: set[str] = set()
    while True:
        names = {**{key: key for key in facts.reached}, **lowered.copies}
        left = {name: key for name, key in names.items() if name not in done}
        if not left:
            break
        for name, key in left.items():
            done.add(name)
            scope = facts.functions[key]
            functions.append(Statements(facts, lowered, scope, by_name).function(name))
            if lowered.numbers > _MOST_OPS:
                lines = sum(_lines(module.tree) for module in modules)
                raise ProgramTooLarge(project.script.name, lines, len(modules), _MOST_OPS)
    functions.sort(key=lambda each: each.name)
    return Program(tuple(functions), tuple(main)), lowered
