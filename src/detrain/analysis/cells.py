"""Cells: what can be changed. Variables, and the contents, fields and elements of objects.

Objects are known by the op that makes them: all that one op makes are one here. Which objects a
variable or a field may hold is found for the whole program at once, without order, so that it
holds at every point: two places that may be the same object have cells in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from detrain.analysis.bitset import BitSet, Numbering, closures
from detrain.analysis.live import Liveness
from detrain.analysis.pointsto import PointsTo
from detrain.analysis.program import (
    ELEMENT,
    FORM,
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
    blocks_of,
    walk_ops,
)

__all__ = ["Cell", "CellSet", "Cells", "Effects", "Touched", "locals_of", "read_by", "targets_of"]

Cell = tuple[str, str, str]
"""`("", function, name)` is a variable, of `main` if the function is ""; `("object", op, field)` is
a field of the objects that an op makes, "" being their content and "[]" their elements."""

CellSet = BitSet[Cell]
Sites = BitSet[int]


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


@dataclass(frozen=True, slots=True)
class Effects:
    """What an op may read and write. `surely` is what it writes whatever happens: variables, and
    fields of an object that is the only one that its op makes.
    """

    reads: CellSet
    writes: CellSet
    surely: CellSet

    def along(self, other: Effects) -> Effects:
        """Also what another op does, which may not run at all."""
        return Effects(self.reads | other.reads, self.writes | other.writes, self.surely)


class Touched(NamedTuple):
    """What an op touches: cells, and objects of which it touches all that is below them."""

    reads: CellSet
    reads_below: Sites
    writes: CellSet
    writes_below: Sites
    surely: CellSet


class _Spot(NamedTuple):
    """Where a place is: the cells that it may be, those on the way there, the objects in it."""

    cells: CellSet
    passed: CellSet
    sites: Sites


class Cells:
    """The cells of a program, which of them its places are, and what its ops do to them."""

    def __init__(self, program: Program, crowd: int = 48, *, strong: bool = True) -> None:
        """`crowd` is how many ops' objects are told apart where they come together.

        `strong` liveness lets an op whose result nobody uses read nothing. It is not for Python:
        there, looking at a variable that isn't there is an error, whatever comes of it.
        """
        self.program, self.strong = program, strong
        self.functions = {each.name: each for each in program.functions}
        self.scopes: list[tuple[str, tuple[Op, ...]]] = [
            *((each.name, each.body) for each in program.functions),
            ("", program.main),
        ]
        self._locals = {each.name: locals_of(each) for each in program.functions}
        self._numbering: Numbering[Cell] = Numbering()
        self.nothing = self._numbering.nothing
        self._spots: dict[tuple[str, Place], _Spot] = {}
        self._named: dict[tuple[Sites, str], CellSet] = {}
        self._held: dict[Cell, Sites] = {}
        self._under: dict[Sites, CellSet] = {}
        self._below: dict[tuple[CellSet, CellSet, Sites], CellSet] = {}
        self._touched: dict[int, Touched] = {}
        self._headers: dict[int, Effects] = {}
        self._effects: dict[int, Effects] = {}
        self._objects = PointsTo(crowd)
        self._no_sites = self._objects.sites.nothing
        for scope, block in self.scopes:
            for op in walk_ops(block):
                self._flow(scope, op)
        self._objects.solve()

    def contains(self, op: Op, other: Op) -> bool:
        """Whether an op is somewhere inside another."""
        first, last = self._written[op.site]
        return first < self._written[other.site][0] <= last

    @cached_property
    def _written(self) -> dict[int, tuple[int, int]]:
        """Where ops stand among all as they are written, and the last op inside each."""
        found: dict[int, tuple[int, int]] = {}

        def number(block: tuple[Op, ...]) -> None:
            for op in block:
                first = len(found)
                found[op.site] = first, first
                for inner in blocks_of(op):
                    number(inner)
                found[op.site] = first, len(found) - 1

        for _, block in self.scopes:
            number(block)
        return found

    # ---------------------------------------------------------------- variables and places

    def set(self, cells: Iterable[Cell]) -> CellSet:
        """Cells as a set of this program's cells."""
        return self._numbering.set(cells)

    def variable(self, scope: str, name: str) -> Cell:
        """The cell of a variable that is used in a function, or in `main`."""
        return ("", scope if name in self._locals.get(scope, ()) else "", name)

    def variables(self, scope: str) -> CellSet:
        """All variables of a function's frame, or all global ones."""
        return self._variables[scope]

    @cached_property
    def _variables(self) -> dict[str, CellSet]:
        found = {
            scope: self.set(("", scope, name) for name in sorted(names))
            for scope, names in self._locals.items()
        }
        used = (
            self.variable(scope, place[0])
            for scope, block in self.scopes
            for op in walk_ops(block)
            for place in (*targets_of(op), *read_by(op))
        )
        return found | {"": self.set(cell for cell in used if cell[1] == "")}

    def cells(self, scope: str, place: Place) -> tuple[CellSet, CellSet]:
        """The cells that a place may be, and those that are read to get to it."""
        spot = self._spot(scope, place)
        return spot.cells, spot.passed

    def sites(self, scope: str, place: Place) -> Sites:
        """The ops that make the objects that a place may hold."""
        return self._spot(scope, place).sites

    def items(self, chain: tuple[tuple[str, Op], ...]) -> Sites:
        """The ops that make the objects that the loops of a chain may go through."""
        found = self._no_sites
        for number, (scope, op) in enumerate(chain):
            if isinstance(op, Loop) and op.how == "for":
                sites = self.sites(scope, (*op.reads[0], ELEMENT))
                if number == 0:  # it is entered once, before anything is made inside it
                    alone = filter(
                        self._objects.is_alone, (each.site for each in walk_ops(op.body))
                    )
                    sites -= self._objects.sites.set(alone)
                found |= sites
        return found

    def _spot(self, scope: str, place: Place) -> _Spot:
        owner = self.variable(scope, place[0])[1]
        found = self._spots.get((owner, place))
        if found is None:
            found = self._spots[owner, place] = self._find(owner, place)
        return found

    def _find(self, owner: str, place: Place) -> _Spot:
        if len(place) == 1:
            cell: Cell = ("", owner, place[0])
            return _Spot(self.set((cell,)), self.nothing, self.holds(cell))
        around, name = self._spot(owner, place[:-1]), place[-1]
        passed = around.passed | around.cells
        if name == FORM:
            return _Spot(self._form_of(around.sites), passed, self._no_sites)
        cells = self._fields_named(around.sites, name)
        if name == ELEMENT:
            passed |= self._fields_named(around.sites, "")
        return _Spot(cells, passed, self._objects.sites.union(map(self.holds, cells)))

    def holds(self, cell: Cell) -> Sites:
        """The ops that make the objects which a cell may hold."""
        found = self._held.get(cell)
        if found is None:
            kind, owner, name = cell
            key = (int(owner), name) if kind else cell
            found = self._held[cell] = self._objects.held(self._objects.holder(key))
        return found

    def summary(self, function: str) -> Effects:
        """What a function may read and write of what is not its own."""
        return self._summaries[function]

    def _fields_named(self, sites: Sites, name: str) -> CellSet:
        found = self._named.get((sites, name))
        if found is None:
            found = self.set(("object", str(site), name) for site in sites)
            self._named[sites, name] = found
        return found

    # ---------------------------------------------------------------- objects

    def fields(self, site: int) -> CellSet:
        """The cells of the objects that an op makes."""
        owner = str(self._objects.site(site))
        return self.set(("object", owner, name) for name in self._objects.fields(site))

    def _form_of(self, sites: Sites) -> CellSet:
        """The cells below some objects that hold objects, or elements."""
        cells = self.under(sites) - self._contents
        return self.set(cell for cell in cells if cell[2] == ELEMENT or self.holds(cell))

    @cached_property
    def _contents(self) -> CellSet:
        """The contents of all objects."""
        return self._fields_named(self._objects.sites.set(self._objects.all_sites()), "")

    @cached_property
    def of_objects(self) -> CellSet:
        """All cells that are not variables."""
        return self._numbering.union(map(self.fields, self._objects.all_sites()))

    def makes(self, site: int) -> bool:
        """Whether an op of the program makes objects: what is read may be written otherwise."""
        return self._objects.knows(site)

    def object(self, site: int) -> int:
        """The op by which the objects that an op makes are known: itself, or one for many."""
        return self._objects.site(site)

    def made_by(self, sites: Iterable[int]) -> CellSet:
        """The cells of objects that are known to be made by these ops and by no other."""
        known = set(self._objects.all_sites())
        alone = (each for each in sites if each in known and self._objects.is_alone(each))
        return self._numbering.union(map(self.fields, alone))

    @cached_property
    def _inside(self) -> dict[int, tuple[CellSet, Sites, CellSet]]:
        """For each site its fields, the sites of the objects in them, and all that is below."""
        sites = self._objects.all_sites()
        number = {site: at for at, site in enumerate(sites)}
        fields = [self.fields(site) for site in sites]
        held = [
            self._objects.sites.union(
                self._objects.held(self._objects.field(site, name))
                for name in self._objects.fields(site)
            )
            for site in sites
        ]
        below = closures(fields, lambda at: [number[site] for site in held[at]])
        return dict(zip(sites, zip(fields, held, below, strict=True), strict=True))

    def fields_and_held(self, site: int) -> tuple[CellSet, Sites]:
        """The cells of the objects that an op makes, and the ops that make what is in them."""
        fields, held, _ = self._inside[site]
        return fields, held

    def under(self, sites: Sites) -> CellSet:
        """All cells of some objects, and of all that can be reached from them."""
        found = self._under.get(sites)
        if found is None:
            found = self._numbering.union(self._inside[site][2] for site in sites)
            self._under[sites] = found
        return found

    def below(
        self, cells: Set[Cell], beyond: Set[Cell] = frozenset(), objects: Sites | None = None
    ) -> CellSet:
        """These cells, and all that can be reached from them, and from the objects of some ops,
        without going `beyond` some.
        """
        found, limit = self.set(cells), self.set(beyond)
        objects = objects or self._no_sites
        key = found, limit, objects
        if key in self._below:
            return self._below[key]
        seen = objects | self._objects.sites.union(map(self.holds, found - limit))
        todo = list(seen)
        while todo:
            fields, held, _ = self._inside[todo.pop()]
            found |= fields
            if not fields.isdisjoint(limit):
                held = self._objects.sites.union(map(self.holds, fields - limit))
            todo += held - seen
            seen |= held
        self._below[key] = found
        return found

    def read(self, scope: str, place: Place) -> CellSet:
        """All cells that reading a place looks at."""
        cells, passed, sites = self._spot(scope, place)
        return cells | passed | self.under(sites)

    def _flow(self, scope: str, op: Op) -> None:
        """Say which objects an op passes on."""
        objects = self._objects
        match op:
            case Bind(target, "new"):
                made = objects.holder(("made", op.site))
                objects.make(op.site, made)
                self._give(scope, target, made)
            case Bind(target, "alias", (place, *_)):
                self._give(scope, target, self._holder(scope, place))
            case Call(name, arguments, target):
                for parameter, place in zip(
                    self.functions[name].parameters, arguments, strict=True
                ):
                    variable = objects.holder(self.variable(name, parameter))
                    objects.copy(self._holder(scope, place), variable)
                if target is not None:
                    self._give(scope, target, objects.holder(("returned", name)))
            case Leave("return", value) if value is not None:
                objects.copy(self._holder(scope, value), objects.holder(("returned", scope)))
            case Loop():
                if op.target is not None and op.reads:
                    self._give(scope, op.target, self._holder(scope, (*op.reads[0], ELEMENT)))
                if op.into is not None and op.result is not None:
                    made = objects.holder(("made", op.site))
                    objects.make(op.site, made)
                    objects.copy(self._holder(scope, op.result), objects.field(op.site, ELEMENT))
                    self._give(scope, op.into, made)
            case Draw(target, generator):
                self._give(scope, target, objects.nowhere)
                self._give(scope, generator, objects.nowhere)
            case Bind(target) | Key(target) | Observe(target):
                self._give(scope, target, objects.nowhere)

    def _holder(self, scope: str, place: Place) -> int:
        holder = self._objects.holder(self.variable(scope, place[0]))
        for name in place[1:]:
            holder = self._objects.load(holder, name)
        return holder

    def _give(self, scope: str, place: Place, source: int) -> None:
        if len(place) == 1:
            self._objects.copy(source, self._objects.holder(self.variable(scope, place[0])))
        else:
            self._objects.store(self._holder(scope, place[:-1]), place[-1], source)

    # ---------------------------------------------------------------- effects

    def effects(self, scope: str, op: Op) -> Effects:
        """What an op does, with all that is inside it and all that it calls."""
        found = self._effects.get(op.site)
        if found is None:
            found = self._effects[op.site] = self._all_effects(scope, op)
        return found

    def _all_effects(self, scope: str, op: Op) -> Effects:
        found = self.header(scope, op)
        if isinstance(op, Branch):
            return found.along(self.block(scope, op.then)).along(self.block(scope, op.otherwise))
        if isinstance(op, Loop):
            found = found.along(self.block(scope, op.body)).along(self.given(scope, op))
            for target in targets_of(op):
                found = found.along(self._bound(scope, target))
            into = self.nothing if op.into is None else self._bound(scope, op.into).surely
            return Effects(found.reads, found.writes, into)
        if isinstance(op, Call):
            return self._called(found, op.function)
        return found

    def _called(self, found: Effects, name: str) -> Effects:
        """What a call does: its header, and what its function does to what is not its own."""
        summary, replaced = self._summaries[name], self.reading.replaced_by(name)
        # What the function has written whenever it comes to read it is not read from outside.
        reads = found.reads | (summary.reads - replaced)
        return Effects(reads, found.writes | summary.writes, found.surely | replaced)

    def header(self, scope: str, op: Op) -> Effects:
        """What an op itself does, without what is inside it or called by it."""
        found = self._headers.get(op.site)
        if found is None:
            reads, reads_below, writes, writes_below, surely = self.touched(scope, op)
            if reads_below:
                reads |= self.under(reads_below)
            if writes_below:
                writes |= self.under(writes_below)
            found = self._headers[op.site] = Effects(reads, writes, surely)
        return found

    def touched(self, scope: str, op: Op) -> Touched:
        """What `header` says, with the objects that are read or changed as wholes by their ops."""
        found = self._touched.get(op.site)
        if found is None:
            found = self._touched[op.site] = self._touch(scope, op)
        return found

    def _touch(self, scope: str, op: Op) -> Touched:
        reads, writes = list[CellSet](), list[CellSet]()
        surely, whole, shaken = self.nothing, self._no_sites, self._no_sites
        for number, place in enumerate(read_by(op)):
            cells, passed, sites = self._spot(scope, place)
            reads += cells, passed
            if isinstance(op, Loop) and op.listed:
                reads += self._fields_named(sites, ""), self._fields_named(sites, ELEMENT)
            elif sites and not _hands_on(op, number):
                whole |= sites
        if not isinstance(op, Loop):
            for target in targets_of(op):
                cells, passed, _ = self._spot(scope, target)
                reads.append(passed)
                writes.append(cells)
                surely = self._surely(scope, target)
        match op:
            case Bind(how="new"):
                writes.append(self.fields(op.site))
            case Draw(generator=generator):
                # It moves the object that the generator is, or what holds its number.
                cells, passed, sites = self._spot(scope, generator)
                moved = cells, self._fields_named(sites, "")
                reads += passed, *moved
                writes += moved
            case Mutate(place, deep=deep, contents=contents):
                cells, passed, sites = self._spot(scope, place)
                reads += cells, passed
                if deep:
                    whole |= sites
                if contents:
                    writes.append(self.under(sites) & self._contents)
                elif deep:
                    shaken = sites
                else:
                    reads.append(self._fields_named(sites, ""))
                    writes.append(self._fields_named(sites, ""))
        union = self._numbering.union
        return Touched(union(reads), whole, union(writes), shaken, surely)

    def given(self, scope: str, op: Loop) -> Effects:
        """What a parallel loop does with the result of each iteration."""
        if op.result is None or op.into is None:
            return Effects(self.nothing, self.nothing, self.nothing)
        cells, passed = self.cells(scope, op.result)
        return Effects(cells | passed, self.fields(op.site), self.nothing)

    def block(self, scope: str, block: tuple[Op, ...]) -> Effects:
        """What all ops of a block may do."""
        found = Effects(self.nothing, self.nothing, self.nothing)
        for op in block:
            found = found.along(self.effects(scope, op))
        return found

    def _bound(self, scope: str, target: Place) -> Effects:
        cells, passed = self.cells(scope, target)
        return Effects(passed, cells, self._surely(scope, target))

    def _surely(self, scope: str, target: Place) -> CellSet:
        """The cells that binding a place surely writes: a variable, a field of the one object."""
        is_field = len(target) == 2 and target[1] != ELEMENT
        if len(target) == 1 or (is_field and self.variable(scope, target[0]) in self._fixed):
            return self._spot(scope, target).cells
        return self.nothing

    @cached_property
    def _fixed(self) -> frozenset[Cell]:
        """Variables that are bound once, at the top of `main`, to the one object made there.

        Where such a variable is not bound yet, there is no such object yet.
        """
        bound = Counter(
            self.variable(scope, place[0])
            for scope, block in self.scopes
            for op in walk_ops(block)
            for place in (*targets_of(op), *((op.generator,) if isinstance(op, Draw) else ()))
            if len(place) == 1
        )
        return frozenset(
            cell
            for op in self.program.main
            if isinstance(op, Bind) and op.how == "new" and len(op.target) == 1
            if bound[cell := self.variable("", op.target[0])] == 1
            if self._objects.is_alone(op.site)
        )

    @cached_property
    def _summaries(self) -> dict[str, Effects]:
        """What each function does to what is not its own, with all that it calls."""
        names = list(self.functions)
        number = {name: at for at, name in enumerate(names)}
        called: list[dict[int, None]] = [{} for _ in names]
        reads, writes = [self.nothing] * len(names), [self.nothing] * len(names)
        for at, name in enumerate(names):
            for op in walk_ops(self.functions[name].body):
                if isinstance(op, Call):
                    called[at].setdefault(number[op.function])
                found = self._own(name, op)
                reads[at] |= found.reads
                writes[at] |= found.writes
            reads[at] -= self.variables(name)
            writes[at] -= self.variables(name)
        both = zip(
            closures(reads, called.__getitem__), closures(writes, called.__getitem__), strict=True
        )
        return {
            name: Effects(read, written, self.nothing)
            for name, (read, written) in zip(names, both, strict=True)
        }

    def _own(self, scope: str, op: Op) -> Effects:
        """What an op does by itself, a loop's binding of its target and its results included."""
        found = self.header(scope, op)
        if isinstance(op, Loop):
            found = found.along(self.given(scope, op))
            for target in targets_of(op):
                found = found.along(self._bound(scope, target))
        return found

    @cached_property
    def liveness(self) -> Liveness:
        """What may still matter where: one for all who ask, as it remembers its answers."""
        return Liveness(self)

    @cached_property
    def reading(self) -> Liveness:
        """What may still be read where, if only for nothing."""
        return Liveness(self, all_reads=True)


def _hands_on(op: Op, number: int) -> bool:
    """Whether an op passes the objects of a place on as they are, without looking into them."""
    if isinstance(op, Bind):
        return op.how == "alias" and number == 0
    return isinstance(op, Call | Leave)


def read_by(op: Op) -> tuple[Place, ...]:
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
