"""Cells: what can be changed. Variables, and the contents, fields and elements of objects.

Objects are known by the op that makes them: all that one op makes are one here. Which objects a
variable or a field may hold is found for the whole program at once, without order, so that it
holds at every point: two places that may be the same object have cells in common.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from detrain.analysis.program import (
    ELEMENT,
    Bind,
    Branch,
    Call,
    Draw,
    Emit,
    Function,
    Key,
    Leave,
    Loop,
    Mutate,
    Observe,
    Op,
    Place,
    Program,
    walk_ops,
)

__all__ = ["Cell", "Cells", "Effects", "locals_of", "targets_of"]

Cell = tuple[str, str, str]
"""`("", function, name)` is a variable, of `main` if the function is ""; `("object", op, field)` is
a field of the objects that an op makes, "" being their content and "[]" their elements."""


def targets_of(op: Op) -> tuple[Place, ...]:
    """The places that an op binds."""
    match op:
        case Bind(target) | Draw(target) | Key(target) | Observe(target):
            return (target,)
        case Call(target=target) if target is not None:
            return (target,)
        case Loop(target=target, into=into):
            return tuple(each for each in (target, into) if each is not None)
    return ()


def locals_of(function: Function) -> frozenset[str]:
    """The variables that live in a function's own frame."""
    bound = {
        place[0] for op in walk_ops(function.body) for place in targets_of(op) if len(place) == 1
    }
    names = (bound | set(function.parameters)) - set(function.globals)
    return frozenset(name for name in names if not name.startswith("@"))


@dataclass
class Effects:
    """What an op may read and write. `surely` are variables that it writes whatever happens."""

    reads: set[Cell] = field(default_factory=set)
    writes: set[Cell] = field(default_factory=set)
    surely: set[Cell] = field(default_factory=set)

    def add(self, other: Effects) -> None:
        """Also what another op does, which may not run at all."""
        self.reads |= other.reads
        self.writes |= other.writes


class Cells:
    """The cells of a program, which of them its places are, and what its ops do to them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._functions = {each.name: each for each in program.functions}
        self._locals = {each.name: locals_of(each) for each in program.functions}
        self._holds: defaultdict[Cell, set[int]] = defaultdict(set)
        self._fields: defaultdict[int, set[str]] = defaultdict(lambda: {"", ELEMENT})
        self._returns: defaultdict[str, set[int]] = defaultdict(set)
        self._scopes: list[tuple[str, tuple[Op, ...]]] = [
            *((each.name, each.body) for each in program.functions),
            ("", program.main),
        ]
        self._find_objects()
        self._summaries = {name: Effects() for name in self._functions}
        self._summarise()

    # ---------------------------------------------------------------- objects

    def variable(self, scope: str, name: str) -> Cell:
        """The cell of a variable that is used in a function, or in `main`."""
        return ("", scope if name in self._locals.get(scope, ()) else "", name)

    def variables(self, scope: str) -> set[Cell]:
        """All variables of a function's frame, or all global ones."""
        if scope:
            return {("", scope, name) for name in self._locals[scope]}
        return self._globals

    @cached_property
    def _globals(self) -> set[Cell]:
        found = set()
        for scope, block in self._scopes:
            for op in walk_ops(block):
                for place in (*targets_of(op), *_read_by(op)):
                    cell = self.variable(scope, place[0])
                    if cell[1] == "":
                        found.add(cell)
        return found

    def cells(self, scope: str, place: Place) -> tuple[set[Cell], set[Cell]]:
        """The cells that a place may be, and those that are read to get to it."""
        cells, passed = {self.variable(scope, place[0])}, set[Cell]()
        for name in place[1:]:
            passed |= cells
            sites = {site for cell in cells for site in self._holds.get(cell, ())}
            if name == ELEMENT:
                passed |= {("object", str(site), "") for site in sites}
            cells = {("object", str(site), name) for site in sites}
        return cells, passed

    def below(self, cells: set[Cell], beyond: frozenset[Cell] = frozenset()) -> set[Cell]:
        """These cells, and all that can be reached from them without going `beyond` some."""
        found, todo = set(cells), list(cells)
        while todo:
            cell = todo.pop()
            for site in () if cell in beyond else self._holds.get(cell, ()):
                for name in self._fields[site]:
                    cell = ("object", str(site), name)
                    if cell not in found:
                        found.add(cell)
                        todo.append(cell)
        return found

    def read(self, scope: str, place: Place) -> set[Cell]:
        """All cells that reading a place looks at."""
        cells, passed = self.cells(scope, place)
        return self.below(cells) | passed

    def _held(self, scope: str, place: Place) -> set[int]:
        return {site for cell in self.cells(scope, place)[0] for site in self._holds.get(cell, ())}

    def _find_objects(self) -> None:
        size = -1
        while size != (size := self._size()):
            for scope, block in self._scopes:
                for op in walk_ops(block):
                    self._flow(scope, op)

    def _size(self) -> int:
        return sum(map(len, self._holds.values())) + sum(map(len, self._fields.values()))

    def _flow(self, scope: str, op: Op) -> None:
        match op:
            case Bind(target, "new"):
                self._give(scope, target, {op.site})
            case Bind(target, "alias", (place, *_)):
                self._give(scope, target, self._held(scope, place))
            case Call(name, arguments, target):
                function = self._functions[name]
                for parameter, place in zip(function.parameters, arguments, strict=True):
                    self._holds[self.variable(name, parameter)] |= self._held(scope, place)
                if target is not None:
                    self._give(scope, target, self._returns[name])
            case Leave("return", value) if value is not None:
                self._returns[scope] |= self._held(scope, value)
            case Loop():
                if op.target is not None and op.reads:
                    items = (*op.reads[0], ELEMENT)
                    self._give(scope, op.target, self._held(scope, items))
                if op.into is not None and op.result is not None:
                    self._give(scope, op.into, {op.site})
                    made = ("object", str(op.site), ELEMENT)
                    self._holds[made] |= self._held(scope, op.result)
            case Draw(target, generator):
                self._give(scope, target, set())
                self._give(scope, generator, set())
            case Bind(target) | Key(target) | Observe(target):
                self._give(scope, target, set())

    def _give(self, scope: str, place: Place, sites: set[int]) -> None:
        for cell in self.cells(scope, place)[0]:
            if cell[0] == "object":
                self._fields[int(cell[1])].add(cell[2])
            self._holds[cell] |= sites

    # ---------------------------------------------------------------- effects

    def effects(self, scope: str, op: Op) -> Effects:
        """What an op does, with all that is inside it and all that it calls."""
        found = self.header(scope, op)
        if isinstance(op, Branch):
            for block in (op.then, op.otherwise):
                found.add(self.block(scope, block))
        elif isinstance(op, Loop):
            found.add(self.block(scope, op.body))
            found.add(self.given(scope, op))
            if op.target is not None:
                found.writes |= self.cells(scope, op.target)[0]
            self._bind(found, scope, op.into, surely=True)
        elif isinstance(op, Call):
            summary = self._summaries[op.function]
            found.reads |= summary.reads
            found.writes |= summary.writes
        return found

    def header(self, scope: str, op: Op) -> Effects:
        """What an op itself does, without what is inside it or called by it."""
        found = Effects()
        for number, place in enumerate(_read_by(op)):
            cells, passed = self.cells(scope, place)
            found.reads |= passed | (cells if _hands_on(op, number) else self.below(cells))
        match op:
            case Bind(target, how):
                self._bind(found, scope, target, surely=True)
                if how == "new":
                    found.writes |= {
                        ("object", str(op.site), name) for name in self._fields[op.site]
                    }
            case Draw(target, generator):
                cells, passed = self.cells(scope, generator)
                moved = self._moved(cells)
                found.reads |= passed | cells | moved
                found.writes |= moved
                self._bind(found, scope, target, surely=True)
            case Key(target) | Observe(target):
                self._bind(found, scope, target, surely=True)
            case Mutate(place, deep=deep):
                cells, passed = self.cells(scope, place)
                contents: set[Cell] = {
                    ("object", str(site), name)
                    for site in self._held(scope, place)
                    for name in (self._fields[site] if deep else ("",))
                }
                if deep:
                    contents = self.below(contents)
                found.reads |= passed | cells | contents
                found.writes |= contents
            case Call(target=target):
                self._bind(found, scope, target, surely=True)
        return found

    def given(self, scope: str, op: Loop) -> Effects:
        """What a parallel loop does with the result of each iteration."""
        found = Effects()
        if op.result is not None and op.into is not None:
            cells, passed = self.cells(scope, op.result)
            found.reads |= cells | passed
            found.writes |= {("object", str(op.site), name) for name in ("", ELEMENT)}
        return found

    def block(self, scope: str, block: tuple[Op, ...]) -> Effects:
        """What all ops of a block may do."""
        found = Effects()
        for op in block:
            found.add(self.effects(scope, op))
        return found

    def _moved(self, cells: set[Cell]) -> set[Cell]:
        """What a draw from a generator changes: the object that it is, or what holds its number."""
        sites = {site for cell in cells for site in self._holds.get(cell, ())}
        return cells | {("object", str(site), "") for site in sites}

    def _bind(self, found: Effects, scope: str, target: Place | None, *, surely: bool) -> None:
        if target is None:
            return
        cells, passed = self.cells(scope, target)
        found.reads |= passed
        found.writes |= cells
        if surely and len(target) == 1:
            found.surely |= cells

    def _summarise(self) -> None:
        """What each function does to what is not its own."""
        changed = True
        while changed:
            changed = False
            for name, function in self._functions.items():
                found = self.block(name, function.body)
                own = self.variables(name)
                made = Effects(found.reads - own, found.writes - own)
                if made != self._summaries[name]:
                    self._summaries[name] = made
                    changed = True


def _hands_on(op: Op, number: int) -> bool:
    """Whether an op passes the objects of a place on as they are, without looking into them."""
    if isinstance(op, Bind):
        return op.how == "alias" and number == 0
    return isinstance(op, Call | Leave)


def _read_by(op: Op) -> tuple[Place, ...]:
    """The places that an op reads."""
    match op:
        case Bind(reads=reads) | Mutate(reads=reads) | Key(reads=reads) | Emit(reads):
            return reads
        case Branch(reads=reads) | Loop(reads=reads):
            return reads
        case Call(arguments=arguments):
            return arguments
        case Leave(value=value) if value is not None:
            return (value,)
    return ()
