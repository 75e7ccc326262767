"""What the front end knows of a value: where it is kept, what it depends on, what it may be.

A *tag* is one thing that a value may be; a value without tags may be anything. Tags of variables,
fields, results and elements are found for the whole program at once: they only ever grow.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from detrain.analysis.program import FORM, Place
from detrain.analysis.scopes import Scope

__all__ = [
    "DEFINITIONS", "NOTHING", "SCALAR", "UNKNOWN", "Class", "Facts", "Tag", "Tags", "Value",
]  # fmt: skip

Tag = tuple[str, ...]
"""("scalar",); ("lib", absolute name); ("made", absolute name of what was called);
("function" | "bound" | "generator", key); ("class" | "instance" | "held", key); ("module", name);
("sequence", key of its elements); ("iterates", "pairs"); ("iterator",); ("workers", how many);
("trains",); ("unknown",)."""

Tags = frozenset[Tag]

NOTHING: Tags = frozenset()
SCALAR: Tags = frozenset({("scalar",)})
UNKNOWN: Tags = frozenset({("unknown",)})
DEFINITIONS = frozenset({"lib", "module", "class", "function"})


@dataclass(frozen=True)
class Value:
    """The value of an expression. One with a `place` is the object there; another is made of what
    it `reads`.
    """

    place: Place | None = None
    reads: tuple[Place, ...] = ()
    tags: Tags = NOTHING

    @property
    def all_reads(self) -> tuple[Place, ...]:
        """What using the value looks at."""
        own = (self.place,) if self.place is not None else ()
        return tuple(dict.fromkeys((*own, *self.reads)))

    @property
    def is_scalar(self) -> bool:
        """Whether it surely is a number, a text or the like, which can't change in place."""
        return bool(self.tags) and all(tag == ("scalar",) for tag in self.tags)

    @property
    def is_list(self) -> bool:
        """Whether it surely is a list, a tuple or a dictionary of Python's, kept somewhere."""
        is_kept = self.place is not None and not self.reads
        return is_kept and bool(self.tags) and all(tag[0] == "sequence" for tag in self.tags)

    @property
    def form(self) -> Place | None:
        """What is read of it to know its shape and type, if it surely is a parameter of a model."""
        is_parameter = self.tags == {("made", "torch.nn.Parameter")}
        return (*self.place, FORM) if is_parameter and self.place is not None else None

    @property
    def is_definition(self) -> bool:
        """Whether it surely is a function, a class or a module."""
        return bool(self.tags) and all(tag[0] in DEFINITIONS for tag in self.tags)

    def of(self, kind: str) -> list[str]:
        """The keys of its tags of one kind."""
        found = [tag[1] for tag in self.tags if tag[0] == kind]
        return sorted(found) if len(found) > 1 else found


@dataclass(eq=False)
class Class:
    """A class of the project, with what it inherits from in the project and in libraries."""

    scope: Scope
    bases: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    methods: dict[str, Scope] = field(default_factory=dict)
    setters: dict[str, Scope] = field(default_factory=dict)
    decorators: dict[str, set[str]] = field(default_factory=dict)
    """By method: "property", "staticmethod", "classmethod" and the like."""
    annotated: list[str] = field(default_factory=list)
    is_data: bool = False


class Spelled(NamedTuple):
    """The names in an expression, and its attributes as they are written."""

    names: frozenset[str]
    attributes: frozenset[str]


class Facts:
    """What is known of the values of a program so far."""

    def __init__(self) -> None:
        self.variables: defaultdict[str, set[Tag]] = defaultdict(set)
        self.fields: defaultdict[tuple[str, str], set[Tag]] = defaultdict(set)
        self.assigned: set[tuple[str, str]] = set()
        """Fields that are assigned at all, by class and name."""
        self.returns: defaultdict[str, set[Tag]] = defaultdict(set)
        self.elements: defaultdict[str, set[Tag]] = defaultdict(set)
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Scope] = {}
        self.reached: dict[str, None] = {}
        """Functions that something may call."""
        self.guarded: dict[str, frozenset[str] | None] = {}
        """Functions that may be left by an exception which somebody handles, with the variables
        that matter then; None if all may."""
        self.repeated: set[str] = set()
        """Functions that may be called more than once."""
        self._called_at: dict[str, str] = {}
        self.straight: frozenset[str] = frozenset()
        """Small functions without loops, which call nothing that seems to have one."""
        self.packages: frozenset[str] = frozenset()
        """The libraries that any module imports, by their first names."""
        self.spelled: dict[ast.AST, Spelled] = {}
        """What was found of expressions, which are read again and again."""
        self.named: dict[ast.AST, tuple[str, ...]] = {}
        """The variables that statements look at, likewise."""
        self.grown = False
        self.settled = False
        """Whether a value without tags may be anything, and not only not be known yet."""

    def learn(self, known: set[Tag], tags: Tags) -> None:
        """Note what a value may be."""
        if not tags and self.settled:
            tags = UNKNOWN
        if not tags <= known:
            known |= tags
            self.grown = True

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

    def reach(self, function: str) -> None:
        """Note that a function may be called."""
        if function not in self.reached and function in self.functions:
            self.reached[function] = None
            self.grown = True

    def guard(self, function: str, names: frozenset[str] | None) -> None:
        """Note that an exception may leave a function for a handler to which variables matter."""
        known = self.guarded.get(function, frozenset())
        more = None if known is None or names is None else known | names
        if function not in self.guarded or more != known:
            self.guarded[function] = more
            self.grown = True

    def called(self, function: str, where: str, *, again: bool) -> None:
        """Note where a function is called; `again` if that may happen there more than once."""
        if function in self.repeated:
            return
        if again or self._called_at.setdefault(function, where) != where:
            self.repeated.add(function)
            self.grown = True

    def lineage(self, key: str) -> list[str]:
        """A class and what it inherits from in the project, itself first."""
        found: dict[str, None] = {}
        todo = [key]
        while todo:
            each = todo.pop(0)
            if each not in found and each in self.classes:
                found[each] = None
                todo = [*self.classes[each].bases, *todo]
        return list(found)

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

    def has_field(self, key: str, name: str) -> bool:
        """Whether the project gives instances of a class this field."""
        return any((each, name) in self.assigned for each in self.lineage(key))

    def field_tags(self, key: str, name: str) -> set[Tag]:
        """What a field of a class's instances may be."""
        found: set[Tag] = set()
        for each in self.lineage(key):
            found |= self.fields.get((each, name), set())
        return found
