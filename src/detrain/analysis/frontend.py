"""From Python to the language: a whole project as one program.

Nothing of the project runs, and no framework is imported. What variables, fields and results may be
is found by reading the program until nothing new is learnt, each part of it again only if something
that it asked for has grown; the last reading is of all of it, and gives the ops.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from detrain.analysis.emit import GRADIENTS, NONE
from detrain.analysis.facts import Facts
from detrain.analysis.lowered import Lowered
from detrain.analysis.parts import Part
from detrain.analysis.program import Bind, Function, Op, Program
from detrain.analysis.project import Project
from detrain.analysis.scopes import Module, Scope, last_name, read_modules
from detrain.analysis.statements import Statements
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
    facts = Facts()
    facts.packages = frozenset(
        target.partition(".")[0] for each in modules for target in each.scope.imports.values()
    )
    for module in modules:
        _collect(module.scope, facts)
        if module.is_script:  # somebody may call its functions, if it does not itself
            facts.reached.update((key, None) for key in facts.functions if key.count(":") == 0)
    facts.straight = _straight(facts)
    reading = _Reading(project, modules, facts)
    _until_nothing_grows(facts, reading.learn)
    facts.settle()
    _until_nothing_grows(facts, reading.learn)
    facts.is_last = True
    _until_nothing_grows(facts, reading.write)
    return Source(reading.program, tuple(modules), facts, reading.lowered)


def _until_nothing_grows(facts: Facts, read: Callable[[], None]) -> None:
    for _ in range(_MOST_READINGS):
        facts.grown = False
        read()
        if not facts.grown:
            return


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
                    facts.variables.add(name, frozenset({("instance", scope.key)}))
        _collect(inner, facts)


@dataclass(frozen=True)
class _Found:
    """What reading a function, or the top of a module, came to: the copies of small functions that
    it calls, and how many ops it has.
    """

    part: Part
    copies: dict[str, str]
    ops: int


class _Reading:
    """Reads a project: the tops of its modules, and then the functions that something may call."""

    def __init__(self, project: Project, modules: list[Module], facts: Facts) -> None:
        self._project, self._modules, self._facts = project, modules, facts
        self._by_name = {module.name: module for module in modules}
        self._parts: dict[str, _Found] = {}
        self.program, self.lowered = Program((), ()), Lowered()

    def learn(self) -> None:
        """Read what has asked for something that has grown since; the rest would say the same."""
        copies: dict[str, str] = {}
        ops = 0
        for module in self._modules:
            ops += self._learn_from(f"<{module.name}>", module.scope, copies)
        for _, scope in self._called(copies):
            ops += self._learn_from(scope.key, scope, copies)
            self._must_be_small(ops)

    def _learn_from(self, name: str, scope: Scope, copies: dict[str, str]) -> int:
        """Read a part, if it must be read; gives the number of its ops."""
        found = self._parts.get(name)
        if found is None or found.part.is_stale:
            reading = self._facts.reading
            part = reading.new_part() if found is None else found.part
            reading.begin(part)
            lowered = Lowered()
            reader = Statements(self._facts, lowered, scope, self._by_name)
            if isinstance(scope.node, ast.Module):
                reader.statements(scope.node.body)
            else:
                reader.function()
            found = self._parts[name] = _Found(part, lowered.copies, lowered.numbers)
        copies |= found.copies
        return found.ops

    def write(self) -> None:
        """Read all of it, and keep the ops."""
        self._facts.reading.begin(self._facts.reading.new_part())
        lowered = Lowered()
        main: list[Op] = [Bind(NONE, "pure", site=-1), Bind(GRADIENTS, "new", site=0)]
        for module in self._modules:
            top = Statements(self._facts, lowered, module.scope, self._by_name)
            top.statements(module.tree.body)
            main += top.out
        functions: list[Function] = []
        for name, scope in self._called(lowered.copies):
            reader = Statements(self._facts, lowered, scope, self._by_name)
            functions.append(reader.function(name))
            self._must_be_small(lowered.numbers)
        functions.sort(key=lambda each: each.name)
        self.program, self.lowered = Program(tuple(functions), tuple(main)), lowered

    def _called(self, copies: dict[str, str]) -> Iterator[tuple[str, Scope]]:
        """The functions that something may call, each once: also those of which that is learnt, or
        that are copied, in the meantime.
        """
        done: set[str] = set()
        while True:
            names = {**{key: key for key in self._facts.reached}, **copies}
            left = {name: key for name, key in names.items() if name not in done}
            if not left:
                return
            for name, key in left.items():
                done.add(name)
                yield name, self._facts.functions[key]

    def _must_be_small(self, ops: int) -> None:
        if ops > _MOST_OPS:
            lines = sum(_lines(module.tree) for module in self._modules)
            name = self._project.script.name
            raise ProgramTooLarge(name, lines, len(self._modules), _MOST_OPS)
