"""Where the places of a program are: variables, and the contents, fields and elements of objects.

Objects are known by the op that makes them: all that one op makes are one here. Which objects a
variable or a field may hold is found for the whole program at once, without order, so that it
holds at every point: two places that may be the same object have cells in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import cached_property
from typing import NamedTuple

from detrain.analysis.bitset import BitSet, Numbering, closures
from detrain.analysis.pointsto import PointsTo
from detrain.analysis.program import (
    ELEMENT,
    FORM,
    Bind,
    Call,
    Draw,
    Key,
    Leave,
    Loop,
    Observe,
    Op,
    Place,
    Program,
    blocks_of,
    locals_of,
    read_by,
    targets_of,
    walk_ops,
)

__all__ = ["Cell", "CellSet", "Sites", "Spot", "Spots"]

Cell = tuple[str, str, str]
"""`("", function, name)` is a variable, of `main` if the function is ""; `("object", op, field)` is
a field of the objects that an op makes, "" being their content and "[]" their elements."""

CellSet = BitSet[Cell]
Sites = BitSet[int]


class Spot(NamedTuple):
    """Where a place is: the cells that it may be, those on the way there, the objects in it."""

    cells: CellSet
    passed: CellSet
    sites: Sites


class Spots:
    """The cells of a program, and which of them its places are."""

    def __init__(self, program: Program, crowd: int) -> None:
        """`crowd` is how many ops' objects are told apart where they come together."""
        self.program = program
        self.functions = {each.name: each for each in program.functions}
        self.scopes: list[tuple[str, tuple[Op, ...]]] = [
            *((each.name, each.body) for each in program.functions),
            ("", program.main),
        ]
        self._locals = {each.name: locals_of(each) for each in program.functions}
        self._numbering: Numbering[Cell] = Numbering()
        self.nothing = self._numbering.nothing
        self._spots: dict[tuple[str, Place], Spot] = {}
        self._named: dict[tuple[Sites, str], CellSet] = {}
        self._held: dict[Cell, Sites] = {}
        self._under: dict[Sites, CellSet] = {}
        self._below: dict[tuple[CellSet, CellSet, Sites], CellSet] = {}
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

    def _spot(self, scope: str, place: Place) -> Spot:
        owner = self.variable(scope, place[0])[1]
        found = self._spots.get((owner, place))
        if found is None:
            found = self._spots[owner, place] = self._find(owner, place)
        return found

    def _find(self, owner: str, place: Place) -> Spot:
        if len(place) == 1:
            cell: Cell = ("", owner, place[0])
            return Spot(self.set((cell,)), self.nothing, self.holds(cell))
        around, name = self._spot(owner, place[:-1]), place[-1]
        passed = around.passed | around.cells
        if name == FORM:
            return Spot(self._form_of(around.sites), passed, self._no_sites)
        cells = self._fields_named(around.sites, name)
        if name == ELEMENT:
            passed |= self._fields_named(around.sites, "")
        return Spot(cells, passed, self._objects.sites.union(map(self.holds, cells)))

    def holds(self, cell: Cell) -> Sites:
        """The ops that make the objects which a cell may hold."""
        found = self._held.get(cell)
        if found is None:
            kind, owner, name = cell
            key = (int(owner), name) if kind else cell
            found = self._held[cell] = self._objects.held(self._objects.holder(key))
        return found

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
