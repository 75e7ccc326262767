"""Writing ops: numbers, spans, temporaries, blocks, and which place a name is."""

from __future__ import annotations

import ast

from detrain.analysis.facts import Facts
from detrain.analysis.lowered import Lowered
from detrain.analysis.program import (
    ELEMENT,
    Bind,
    Branch,
    Call,
    Draw,
    Emit,
    Key,
    Leave,
    Loop,
    Mutate,
    Observe,
    Op,
    Place,
    Span,
)
from detrain.analysis.scopes import Module, Scope
from detrain.analysis.values import SCALAR, Tags, Value

__all__ = ["GRADIENTS", "NONE", "OWN", "Emitting", "unique"]

NONE: Place = ("none",)
"""A variable that never changes, for arguments that are constants."""

OWN = "own"
"""The field of an optimizer or a scheduler that holds its settings: all but what it trains."""

GRADIENTS: Place = ("gradients",)
"""The gradients of all parameters, where a framework keeps them beside the parameters."""


def unique(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """Each place once."""
    return tuple(dict.fromkeys(places)) if len(places) > 1 else places


class _Block:
    """What is written inside goes to a block of its own."""

    def __init__(self, emitting: Emitting) -> None:
        self._emitting, self._before = emitting, emitting.out

    def __enter__(self) -> list[Op]:
        self._emitting.out = []
        return self._emitting.out

    def __exit__(self, *_: object) -> None:
        self._emitting.out = self._before


def _matters(names: frozenset[str] | None, name: str) -> bool:
    return names is None or name in names


class Emitting:
    """Ops of one function, or of the top of the modules."""

    def __init__(
        self, facts: Facts, lowered: Lowered, scope: Scope, modules: dict[str, Module]
    ) -> None:
        self.facts, self.lowered, self.scope = facts, lowered, scope
        self.modules = modules
        self.out: list[Op] = []
        self.bound_globals: set[str] = set()
        self.renamed: dict[str, Place] = {}
        """Variables of the comprehensions around this place."""
        self.versions: dict[str, Place] = {}
        """Variables that have been assigned anew, where nothing can go back to the time before."""
        self.assigned: dict[str, None] = {}
        """Variables that have been assigned so far."""
        self.depth = 0
        """How many blocks of statements are around this place."""
        self.function_name = scope.key if scope.kind == "function" else ""
        self.in_text = 0
        """How many texts around this place are put together from values."""
        self.loops = 0
        """How many loops are around this place."""
        self.unsure: frozenset[str] | None = frozenset()
        """Variables whose writes an exception may skip; None: all. Nothing outside of a `try`."""
        self.tried = 0
        """How many loops are around the innermost `try`."""

    # ---------------------------------------------------------------- names

    def place_of(self, name: str) -> Place | None:
        """The place of a variable; None for what is built in."""
        if name in self.renamed:
            return self.renamed[name]
        if name in self.versions:
            return self.versions[name]
        owner = self.scope.owner(name)
        if owner is None:
            return None
        if owner.kind == "module":
            return (owner.module.prefix + name,)
        if owner.kind == "class" or name in owner.captured:
            return (f"{owner.key}/{name}",)
        return (name,)

    def fact_key(self, place: Place) -> str:
        """How facts name a variable: one of a function by the function too."""
        head = place[0]
        if self.scope.kind == "function" and self.is_local(head):
            return f"{self.scope.key}:{head}"
        return head

    def is_local(self, head: str) -> bool:
        """Whether a variable lives in this function's own frame."""
        scope = self.scope
        if scope.kind != "function" or head.startswith("@") or head in ("none", "gradients"):
            return False
        if head.startswith("%"):
            return True
        return (
            head in scope.bound
            and head not in scope.captured
            and (head not in scope.declared_global and head not in scope.declared_nonlocal)
        )

    def tags_at(self, place: Place) -> Tags:
        """What the variable of a place may be."""
        return self.facts.variables.get(self.fact_key(place))

    # ---------------------------------------------------------------- ops

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        return Span(
            getattr(node, "lineno", 0),
            getattr(node, "col_offset", 0),
            getattr(node, "end_lineno", None) or 0,
            getattr(node, "end_col_offset", None) or 0,
            self.scope.module.path,
        )

    def _site(self) -> int:
        self.lowered.numbers += 1
        return self.lowered.numbers

    def _bound(self, target: Place) -> None:
        if len(target) == 1 and self.scope.kind == "function" and not self.is_local(target[0]):
            self.bound_globals.add(target[0])

    def temporary(self) -> Place:
        """A variable that the program doesn't have."""
        self.lowered.temporaries += 1
        return (f"%{self.lowered.temporaries}",)

    def bind(self, target: Place, how: str, reads: tuple[Place, ...], node: ast.AST) -> int:
        """Write `bind`; gives the op's number."""
        self._bound(target)
        site = self._site()
        op = Bind(target, how, unique(reads), site=site, span=self.span(node))  # type: ignore[arg-type]
        self._write(target, op, node)
        return site

    def _write(self, target: Place, op: Op, node: ast.AST) -> None:
        """An op that binds: one that an exception may skip is one that may not happen."""
        if self._may_be_skipped(target):
            self.out.append(Branch((), (op,), site=self._site(), span=self.span(node)))
        else:
            self.out.append(op)

    def _may_be_skipped(self, target: Place) -> bool:
        head = target[0]
        if head.startswith(("%", "@")):
            return False
        if self.in_try and (_matters(self.unsure, head) or len(target) > 1):
            return True
        if self.is_local(head) or self.scope.kind != "function":
            return False
        # A generator binds when it is gone on with; a closure's variable is one of several.
        return (
            (self.is_guarded and _matters(self.facts.guarded(self.scope.key), head))
            or self.scope.yields
            or self.facts.is_repeated(head.rpartition("/")[0])
        )

    @property
    def in_try(self) -> bool:
        """Whether an exception may leave this place for another one in the same function."""
        return self.unsure != frozenset()

    @property
    def is_guarded(self) -> bool:
        """Whether an exception may leave this function for a handler."""
        return self.scope.kind == "function" and self.facts.is_guarded(self.scope.key)

    def bind_value(self, target: Place, value: Value, node: ast.AST) -> int:
        """Bind a place to a value."""
        if value.place is not None:
            if value.place == target and not value.reads:
                return 0
            return self.bind(target, "alias", (value.place, *value.reads), node)
        return self.bind(target, "pure" if value.is_scalar else "new", value.reads, node)

    def mutate(
        self,
        place: Place,
        reads: tuple[Place, ...],
        node: ast.AST,
        *,
        deep: bool = False,
        contents: bool = False,
    ) -> int:
        """Write `mutate`; gives the op's number."""
        site = self._site()
        deep = deep or contents
        op = Mutate(place, unique(reads), deep, contents, site=site, span=self.span(node))
        self.out.append(op)
        return site

    def look(self, value: Value, node: ast.AST) -> None:
        """Look at a value that nothing is made of: what is not there can't be looked at."""
        if value.all_reads:
            self.bind_value(self.temporary(), value, node)

    def draw(self, generator: Place, node: ast.AST) -> Place:
        """A draw from a generator; gives where the number is."""
        target = self.temporary()
        self.out.append(Draw(target, generator, site=self._site(), span=self.span(node)))
        return target

    def key(self, reads: tuple[Place, ...], node: ast.AST) -> Place:
        """A keyed draw; gives where the number is."""
        target = self.temporary()
        self.out.append(Key(target, unique(reads), site=self._site(), span=self.span(node)))
        return target

    def observe(self, what: str, node: ast.AST) -> Place:
        """An answer of the world; gives where it is."""
        target = self.temporary()
        self.out.append(Observe(target, what, site=self._site(), span=self.span(node)))
        return target

    def emit(self, reads: tuple[Place, ...], node: ast.AST) -> int:
        """An effect on the world; gives the op's number."""
        site = self._site()
        self.out.append(Emit(unique(reads), site=site, span=self.span(node)))
        return site

    def leave(self, how: str, value: Place | None, node: ast.AST) -> None:
        """The end of a function, a loop, an iteration."""
        op = Leave(how, value, site=self._site(), span=self.span(node))  # type: ignore[arg-type]
        self.out.append(op)

    def call_function(
        self, key: str, arguments: tuple[Place, ...], node: ast.AST, target: Place | None = None
    ) -> None:
        """A call of a function of the project."""
        own = self.lowered.copies.get(key, key)
        self.facts.reach(key)
        if self.in_try:
            self.facts.guard(own, self.unsure)
        if self.is_guarded:
            self.facts.guard(own, self.facts.guarded(self.scope.key))
        self.note_call(own, node)
        if target is not None:
            self._bound(target)
        op = Call(key, arguments, target, site=self._site(), span=self.span(node))
        self.out.append(op)

    def note_call(self, key: str, node: ast.AST, *, again: bool = False) -> None:
        """Note where a function is called, and whether it is more than once."""
        own = self.scope.key if self.scope.kind == "function" else ""
        again = again or self.loops > 0 or bool(self.renamed) or self.facts.is_repeated(own)
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        self.facts.called(key, f"{self.scope.module.name}:{line}:{column}", again=again)

    def block(self) -> _Block:
        """What is written inside goes to a block of its own."""
        return _Block(self)

    def branch(
        self, reads: tuple[Place, ...], then: list[Op], otherwise: list[Op], node: ast.AST
    ) -> None:
        """One of two ways."""
        if then or otherwise:
            self.out.append(
                Branch(
                    unique(reads), tuple(then), tuple(otherwise),
                    site=self._site(), span=self.span(node),
                )
            )  # fmt: skip

    def loop(
        self,
        label: str,
        how: str,
        reads: tuple[Place, ...],
        body: list[Op],
        node: ast.AST,
        *,
        result: Place | None = None,
        into: Place | None = None,
        unordered: bool = False,
        listed: bool = False,
    ) -> None:
        """Iteration."""
        if into is not None:
            self._bound(into)
        self.out.append(
            Loop(
                label, how, unique(reads) or ((NONE,) if how != "while" else ()), tuple(body),  # type: ignore[arg-type]
                None, result, into, unordered, listed, site=self._site(), span=self.span(node),
            )
        )  # fmt: skip

    def label(self, letter: str, node: ast.AST) -> str:
        """A name for a loop, by its line."""
        module = self.scope.module
        label = f"{module.prefix}{letter}{getattr(node, 'lineno', 0)}"
        while label in self.lowered.labels:
            label += "'"
        self.lowered.labels.add(label)
        return label

    # ---------------------------------------------------------------- values

    def placed(self, value: Value, node: ast.AST) -> Place:
        """The place of a value; one that has none is given one."""
        if value.place is not None and not value.reads:
            return value.place
        if value.is_scalar and not value.all_reads:
            return NONE
        target = self.temporary()
        self.bind_value(target, value, node)
        return target

    def hold(self, holder: Place, values: list[Value], node: ast.AST) -> None:
        """Let an object keep hold of others, as its elements."""
        for value in values:
            # A list of numbers, or an empty one, reads nothing and is an object all the same.
            is_made = bool(value.place is not None or value.reads or value.of("sequence"))
            if value.is_scalar or not is_made:
                continue
            if value.place == holder or value.place == (*holder, ELEMENT):
                continue
            self.bind_value((*holder, ELEMENT), value, node)

    def made(
        self,
        reads: tuple[Place, ...],
        held: list[Value],
        tags: Tags,
        node: ast.AST,
        kind: str = "",
    ) -> Value:
        """A new object that keeps hold of others; `kind` is what a library makes."""
        target = self.temporary()
        site = self.bind(target, "new", reads, node)
        if kind:
            self.lowered.kinds[site] = kind
        self.hold(target, held, node)
        return Value(target, (), tags)

    def gathered(self, values: list[Value]) -> tuple[Place, ...]:
        """All that using some values looks at."""
        return unique(tuple(place for value in values for place in value.all_reads))

    def scalar(self, values: list[Value]) -> Value:
        """A number or the like, computed from values."""
        return Value(None, self.gathered(values), SCALAR)
