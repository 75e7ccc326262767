"""Cells: what can be changed, and what each op does to it.

A cell is a variable, or the content, a field or the elements of the objects that one op makes;
`spots.py` says which cells a place may be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from detrain.analysis.bitset import closures
from detrain.analysis.live import Liveness
from detrain.analysis.program import (
    ELEMENT,
    Bind,
    Branch,
    Call,
    Draw,
    Leave,
    Loop,
    Mutate,
    Op,
    Place,
    Program,
    read_by,
    targets_of,
    walk_ops,
)
from detrain.analysis.spots import Cell, CellSet, Sites, Spots

__all__ = ["Cell", "CellSet", "Cells", "Effects", "Touched"]


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


class Cells(Spots):
    """The cells of a program, which of them its places are, and what its ops do to them."""

    def __init__(self, program: Program, crowd: int = 48, *, strong: bool = True) -> None:
        """`crowd` is how many ops' objects are told apart where they come together.

        `strong` liveness lets an op whose result nobody uses read nothing. It is not for Python:
        there, looking at a variable that isn't there is an error, whatever comes of it.
        """
        super().__init__(program, crowd)
        self.strong = strong
        self._touched: dict[int, Touched] = {}
        self._headers: dict[int, Effects] = {}
        self._effects: dict[int, Effects] = {}

    def summary(self, function: str) -> Effects:
        """What a function may read and write of what is not its own."""
        return self._summaries[function]

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
