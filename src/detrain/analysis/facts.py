"""What is known of the values of a program so far. Tags of variables, fields, results and elements
are found for the whole program at once: they only ever grow.

Facts are asked for by methods that note who asks (`parts.py`), or don't change while a program is
read, or `change_all` is told.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple

from detrain.analysis.parts import Asked, Key, Part, Reading, Table
from detrain.analysis.program import Place
from detrain.analysis.scopes import Scope
from detrain.analysis.values import NOTHING, UNKNOWN, Class, Tags

__all__ = ["Facts", "Found", "Spelled"]

_EVERY = ("", "")
"""Stands for all fields that are assigned."""


class Spelled(NamedTuple):
    """The names in an expression, and its attributes as they are written."""

    names: frozenset[str]
    attributes: frozenset[str]


@dataclass(frozen=True)
class Found:
    """What reading a plain statement came to, besides facts, and where it was read: what comes of
    it depends on that too.
    """

    part: Part
    around: tuple[object, ...]
    assigned: tuple[str, ...]
    versions: dict[str, Place]
    copies: dict[str, str]
    ops: int


class Facts:
    """What is known of the values of a program so far."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.variables = Table[str](self.reading)
        self.fields = Table[tuple[str, str]](self.reading)
        self.returns = Table[str](self.reading)
        self.elements = Table[str](self.reading)
        self._assigned: set[tuple[str, str]] = set()
        self._assigned_asked = Asked[tuple[str, str]](self.reading)
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Scope] = {}
        self.reached: dict[str, None] = {}
        """Functions that something may call."""
        self._guarded: dict[str, frozenset[str] | None] = {}
        self._guarded_asked = Asked[str](self.reading)
        self._repeated: set[str] = set()
        self._repeated_asked = Asked[str](self.reading)
        self._called_at: dict[str, str] = {}
        self._lineages: dict[str, list[str]] = {}
        self.straight: frozenset[str] = frozenset()
        """Small functions without loops, which call nothing that seems to have one."""
        self.packages: frozenset[str] = frozenset()
        """The libraries that any module imports, by their first names."""
        self.spelled: dict[ast.AST, Spelled] = {}
        """What was found of expressions, which are read again and again."""
        self.named: dict[ast.AST, tuple[str, ...]] = {}
        """The variables that statements look at, likewise."""
        self.statements: dict[ast.stmt, Found] = {}
        """Plain statements as they were last read."""
        self.grown = False
        self.settled = False
        """Whether a value without tags may be anything, and not only not be known yet."""
        self._unsettled: set[Part] = set()
        """The parts that have come upon such a value."""
        self.is_last = False
        """Whether this reading gives the ops."""

    def settle(self) -> None:
        """From here on what nothing is known of may be anything."""
        self.settled = True
        for part in self._unsettled:
            part.must_be_read()

    def learn(self, table: Table[Key], key: Key, tags: Tags) -> None:
        """Note what a value may be."""
        if not tags:
            if self.settled:
                tags = UNKNOWN
            else:
                self._unsettled.add(self.reading.part)
        if table.add(key, tags):
            self.grown = True

    def change_all(self) -> None:
        """Something has changed that anybody may have asked for."""
        self.reading.change_all()
        self._lineages.clear()

    def bind(self, scope: Scope, name: str) -> None:
        """Note that a module or a class has one more variable."""
        if name not in scope.bound:
            scope.bound.add(name)
            self.change_all()

    def spelling(self, node: ast.AST) -> Spelled:
        """The names and attributes in an expression."""
        found = self.spelled.get(node)
        if found is None:
            names: set[str] = set()
            attributes: set[str] = set()
            for each in ast.walk(node):
                if isinstance(each, ast.Name):
                    names.add(each.id)
                elif isinstance(each, ast.Attribute):
                    attributes.add(ast.dump(each.value) + each.attr)
            found = self.spelled[node] = Spelled(frozenset(names), frozenset(attributes))
        return found

    # ---------------------------------------------------------------- functions

    def reach(self, function: str) -> None:
        """Note that a function may be called."""
        if function not in self.reached and function in self.functions:
            self.reached[function] = None
            self.grown = True

    def guard(self, function: str, names: frozenset[str] | None) -> None:
        """Note that an exception may leave a function for a handler to which variables matter."""
        known = self._guarded.get(function, frozenset())
        more = None if known is None or names is None else known | names
        if function not in self._guarded or more != known:
            self._guarded[function] = more
            self._guarded_asked.changed(function)
            self.grown = True

    def is_guarded(self, function: str) -> bool:
        """Whether a function may be left by an exception which somebody handles."""
        self._guarded_asked.note(function)
        return function in self._guarded

    def guarded(self, function: str) -> frozenset[str] | None:
        """The variables that matter to who handles exceptions of a function; None if all may."""
        self._guarded_asked.note(function)
        return self._guarded[function]

    def called(self, function: str, where: str, *, again: bool) -> None:
        """Note where a function is called; `again` if that may happen there more than once."""
        if function in self._repeated:
            return
        if again or self._called_at.setdefault(function, where) != where:
            self._repeated.add(function)
            self._repeated_asked.changed(function)
            self.grown = True

    def is_repeated(self, function: str) -> bool:
        """Whether a function may be called more than once."""
        self._repeated_asked.note(function)
        return function in self._repeated

    # ---------------------------------------------------------------- classes

    def lineage(self, key: str) -> list[str]:
        """A class and what it inherits from in the project, itself first."""
        known = self._lineages.get(key)
        if known is not None:
            return known
        found: dict[str, None] = {}
        todo = [key]
        while todo:
            each = todo.pop(0)
            if each not in found and each in self.classes:
                found[each] = None
                todo = [*self.classes[each].bases, *todo]
        self._lineages[key] = list(found)
        return self._lineages[key]

    def method(self, key: str, name: str) -> Scope | None:
        """A method of a class, by its lineage."""
        for each in self.lineage(key):
            if name in self.classes[each].methods:
                return self.classes[each].methods[name]
        return None

    def setter(self, key: str, name: str) -> Scope | None:
        """What runs when a field of a class's instances is assigned, if it is a property."""
        for each in self.lineage(key):
            if name in self.classes[each].setters:
                return self.classes[each].setters[name]
        return None

    def is_property(self, key: str, name: str) -> bool:
        """Whether a method of a class is read like a field."""
        for each in self.lineage(key):
            if name in self.classes[each].methods:
                return bool(self.classes[each].decorators.get(name, set()) & {"property", "cached"})
        return False

    def libraries(self, key: str) -> list[str]:
        """The library classes that a class inherits from."""
        return [name for each in self.lineage(key) for name in self.classes[each].libraries]

    # ---------------------------------------------------------------- fields

    def assign(self, key: str, name: str) -> bool:
        """Whether it was not known that instances of a class are given this field."""
        if (key, name) in self._assigned:
            return False
        self._assigned.add((key, name))
        self._assigned_asked.changed((key, name))
        self._assigned_asked.changed(_EVERY)
        return True

    @property
    def assigned(self) -> set[tuple[str, str]]:
        """Fields that are assigned at all, by class and name."""
        self._assigned_asked.note(_EVERY)
        return self._assigned

    def has_field(self, key: str, name: str) -> bool:
        """Whether the project gives instances of a class this field."""
        for each in self.lineage(key):
            self._assigned_asked.note((each, name))
            if (each, name) in self._assigned:
                return True
        return False

    def field_tags(self, key: str, name: str) -> Tags:
        """What a field of a class's instances may be."""
        found = NOTHING
        for each in self.lineage(key):
            found |= self.fields.get((each, name))
        return found
