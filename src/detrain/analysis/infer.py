"""The causes of every cell: how its bits come about.

Found for the whole program at once, without order: the causes of a cell are those of all that is
ever written to it, and of all that decides whether it is written. Empty is *fixed*: the same bits
in every run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Set
from functools import cached_property

from detrain.analysis.bitset import BitSet, Numbering, closures
from detrain.analysis.cells import Cell, Cells, CellSet
from detrain.analysis.pretty import print_place
from detrain.analysis.program import (
    Branch,
    Call,
    Draw,
    Emit,
    Key,
    Leave,
    Loop,
    Observe,
    Op,
    targets_of,
    walk_ops,
)
from detrain.analysis.types import Cause

__all__ = ["Causes"]


class Causes:
    """The causes of the cells of a program, and of what it emits and decides."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._flow = _Flow()
        self._among: dict[CellSet, Set[Cause]] = {}
        self._parallel = self._parallel_functions()
        self._find_races()
        for scope, block in cells.scopes:
            control = self._flow.node(("control", scope))
            self._block(scope, block, control, self._parallel.get(scope, 0))
        found = self._flow.solve()
        self.of: defaultdict[Cell, Set[Cause]] = defaultdict(frozenset)
        for key, each in found.items():
            if isinstance(key, tuple) and len(key) == 3 and each:
                self.of[key] = each
        self.emitted: Set[Cause] = found["emitted"]
        """Causes of what the program shows."""
        self.deciding: Set[Cause] = found["deciding"]
        """Causes of what decides which way the program goes."""

    def among(self, cells: Set[Cell]) -> Set[Cause]:
        """The causes of all of some cells."""
        wanted = self._cells.set(cells)
        found = self._among.get(wanted)
        if found is None:
            bits = 0
            for causes, alike in self._alike:
                if not alike.isdisjoint(wanted):
                    bits |= causes.bits
            found = self._among[wanted] = BitSet(self._flow.causes, bits)
        return found

    @cached_property
    def everywhere(self) -> Set[Cause]:
        """The causes of any cell."""
        return self._flow.causes.union(causes for causes, _ in self._alike)

    @cached_property
    def _alike(self) -> list[tuple[BitSet[Cause], CellSet]]:
        """Cells by their causes: many have the same."""
        groups: defaultdict[Set[Cause], list[Cell]] = defaultdict(list)
        for cell, causes in self.of.items():
            groups[causes].append(cell)
        return [
            (self._flow.causes.set(causes), self._cells.set(alike))
            for causes, alike in groups.items()
        ]

    def _block(self, scope: str, block: tuple[Op, ...], control: int, parallel: int) -> None:
        """Say what flows where in a block, which runs or not as `control` says."""
        flow = self._flow
        for op in block:
            reads, reads_below, writes, writes_below, _ = self._cells.touched(scope, op)
            node = flow.node(("op", op.site))
            flow.add(control, node)
            self._read(reads, reads_below, node)
            match op:
                case Draw(generator=generator):
                    flow.cause(
                        Cause("race", op.site)
                        if parallel
                        else Cause("draw", op.site, print_place(generator)),
                        node,
                    )
                case Key():
                    flow.cause(Cause("key", op.site), node)
                case Observe(what=what):
                    flow.cause(Cause("race" if parallel else "world", op.site, what), node)
                case Emit():
                    flow.add(node, flow.node("emitted"))
                    if parallel:  # in which order things are shown
                        flow.cause(Cause("race", op.site), flow.node("emitted"))
                case Leave("return"):
                    flow.add(node, flow.node(("returned", scope)))
                case Call():
                    self._call(scope, op, node, control)
                case Branch() | Loop():
                    self._inside(scope, op, node, parallel)
            self._write(node, writes)
            for site in writes_below:
                flow.add(node, self._all_below(site, into=True))

    def _read(self, cells: CellSet, whole: BitSet[int], node: int) -> None:
        for cell in cells:
            self._flow.add(self._flow.node(cell), node)
        for site in whole:
            self._flow.add(self._all_below(site, into=False), node)

    def _write(self, node: int, cells: CellSet) -> None:
        for cell in cells:
            self._flow.add(node, self._flow.node(cell))

    def _all_below(self, site: int, *, into: bool) -> int:
        """A node that stands for all that can be reached from objects: as a source, or a target."""
        flow, key = self._flow, ("into" if into else "from", site)
        if flow.knows(key):
            return flow.node(key)
        start = flow.node(key)
        todo = [(site, start)]
        while todo:
            site, node = todo.pop()
            fields, held = self._cells.fields_and_held(site)
            others = [(key[0], each) for each in held]
            todo += [(each[1], flow.node(each)) for each in others if not flow.knows(each)]
            for other in [*fields, *others]:
                flow.add(*((node, flow.node(other)) if into else (flow.node(other), node)))
        return start

    def _inside(self, scope: str, op: Branch | Loop, node: int, parallel: int) -> None:
        flow = self._flow
        flow.add(node, flow.node("deciding"))
        if isinstance(op, Branch):
            self._block(scope, op.then, node, parallel)
            self._block(scope, op.otherwise, node, parallel)
            return
        for place in targets_of(op):
            self._write(node, self._cells.cells(scope, place)[0])
        self._block(scope, op.body, node, parallel or (op.site if op.how == "par" else 0))
        if op.into is not None and op.result is not None:
            given = flow.node(("given", op.site))
            flow.add(node, given)
            cells, passed = self._cells.cells(scope, op.result)
            self._read(cells | passed, self._cells.sites(scope, op.result), given)
            if op.unordered:
                flow.cause(Cause("race", op.site), given)
            self._write(given, self._cells.given(scope, op).writes)
            self._write(given, self._cells.cells(scope, op.into)[0])

    def _call(self, scope: str, op: Call, node: int, control: int) -> None:
        flow = self._flow
        flow.add(control, flow.node(("control", op.function)))
        flow.add(flow.node(("returned", op.function)), node)
        parameters = self._cells.functions[op.function].parameters
        for parameter, place in zip(parameters, op.arguments, strict=True):
            bound = flow.node(self._cells.variable(op.function, parameter))
            for cell in self._cells.cells(scope, place)[0]:
                flow.add(flow.node(cell), bound)

    # ---------------------------------------------------------------- parallel loops

    def _parallel_functions(self) -> dict[str, int]:
        """Functions that a parallel loop may call, with the loop's site."""
        found: dict[str, int] = {}
        bodies = dict(self._cells.scopes)
        todo = [(op.site, op.body) for _, op in self._parallel_loops()]
        while todo:
            site, block = todo.pop()
            for op in walk_ops(block):
                if isinstance(op, Call) and op.function not in found:
                    found[op.function] = site
                    todo.append((site, bodies[op.function]))
        return found

    def _parallel_loops(self) -> list[tuple[str, Loop]]:
        return [
            (scope, op)
            for scope, block in self._cells.scopes
            for op in walk_ops(block)
            if isinstance(op, Loop) and op.how == "par"
        ]

    def _find_races(self) -> None:
        """What iterations of a parallel loop change for each other, and leave behind."""
        for scope, op in self._parallel_loops():
            race = self._flow.node(("race", op.site))
            self._flow.cause(Cause("race", op.site), race)
            self._write(race, self._raced(scope, op))

    def _raced(self, scope: str, op: Loop) -> CellSet:
        cells = self._cells
        outside = self._read_outside(scope, op)
        written = cells.block(scope, op.body).writes
        first_read = cells.liveness.of_iteration(scope, op)
        own = cells.variables(scope) - first_read
        made_here = cells.made_by(each.site for each in walk_ops(op.body))
        # Objects that an iteration makes for itself are its own as long as nobody else sees them.
        return (written - own - (made_here - outside)) | (written & outside)

    def _read_outside(self, scope: str, op: Loop) -> CellSet:
        """What is read by ops that are not inside a loop, nor the loop itself."""
        cells = self._cells
        found = [reads for other, reads in self._reads.items() if other != scope]
        found += [
            cells.header(scope, each).reads
            for each in walk_ops(dict(cells.scopes)[scope])
            if each is not op and not cells.contains(op, each)
        ]
        return cells.nothing.numbering.union(found)

    @cached_property
    def _reads(self) -> dict[str, CellSet]:
        """What is read by the ops of each function, and of `main`."""
        union = self._cells.nothing.numbering.union
        return {
            scope: union(self._cells.header(scope, op).reads for op in walk_ops(block))
            for scope, block in self._cells.scopes
        }


class _Flow:
    """A graph along which causes flow: a node has those of all that flow into it."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._sources: list[list[int]] = []
        self.causes: Numbering[Cause] = Numbering()
        self._own: list[BitSet[Cause]] = []
        self.node("emitted")
        self.node("deciding")

    def node(self, key: Hashable) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._sources)
            self._sources.append([])
            self._own.append(self.causes.nothing)
        return number

    def knows(self, key: Hashable) -> bool:
        return key in self._numbers

    def add(self, source: int, target: int) -> None:
        self._sources[target].append(source)

    def cause(self, cause: Cause, target: int) -> None:
        self._own[target] |= self.causes.set((cause,))

    def solve(self) -> dict[Hashable, BitSet[Cause]]:
        found = closures(self._own, self._sources.__getitem__)
        return {key: found[number] for key, number in self._numbers.items()}
