"""The causes of every cell: how its bits come about.

Found for the whole program at once, without order: the causes of a cell are those of all that is
ever written to it, and of all that decides whether it is written. Empty is *fixed*: the same bits
in every run.
"""

from __future__ import annotations

from collections import defaultdict

from detrain.analysis.cells import Cell, Cells, targets_of
from detrain.analysis.live import Liveness
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
    walk_ops,
)
from detrain.analysis.types import Cause

__all__ = ["Causes"]

_NONE: frozenset[Cause] = frozenset()


class Causes:
    """The causes of the cells of a program, and of what it emits and decides."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        program = cells.program
        self._scopes = [*((each.name, each.body) for each in program.functions), ("", program.main)]
        self.of: defaultdict[Cell, set[Cause]] = defaultdict(set)
        self.emitted: set[Cause] = set()
        """Causes of what the program shows."""
        self.deciding: set[Cause] = set()
        """Causes of what decides which way the program goes."""
        self._control: defaultdict[str, set[Cause]] = defaultdict(set)
        self._returned: defaultdict[str, set[Cause]] = defaultdict(set)
        self._parallel = self._parallel_functions()
        self._find_races()
        size = -1
        while size != (size := self._size()):
            for scope, block in self._scopes:
                parallel = self._parallel.get(scope, 0)
                self._block(scope, block, frozenset(self._control[scope]), parallel)

    def _size(self) -> int:
        kept = (self.of, self._control, self._returned)
        return sum(len(found) for each in kept for found in each.values()) + len(self.emitted)

    def _block(
        self, scope: str, block: tuple[Op, ...], control: frozenset[Cause], parallel: int
    ) -> None:
        for op in block:
            header = self._cells.header(scope, op)
            found = set(control).union(*(self.of[cell] for cell in header.reads))
            match op:
                case Draw(generator=generator):
                    found.add(
                        Cause("race", op.site)
                        if parallel
                        else Cause("draw", op.site, print_place(generator))
                    )
                case Key():
                    found.add(Cause("key", op.site))
                case Observe(what=what):
                    found.add(Cause("race" if parallel else "world", op.site, what))
                case Emit():
                    self.emitted |= found
                    if parallel:  # in which order things are shown
                        self.emitted.add(Cause("race", op.site))
                case Leave("return"):
                    self._returned[scope] |= found
                case Call():
                    found |= self._call(scope, op, control)
            for cell in header.writes:
                self.of[cell] |= found
            if isinstance(op, Branch | Loop):
                self._inside(scope, op, frozenset(found), parallel)

    def _inside(
        self, scope: str, op: Branch | Loop, found: frozenset[Cause], parallel: int
    ) -> None:
        self.deciding |= found
        if isinstance(op, Branch):
            for block in (op.then, op.otherwise):
                self._block(scope, block, found, parallel)
            return
        for place in targets_of(op):
            for cell in self._cells.cells(scope, place)[0]:
                self.of[cell] |= found
        self._block(scope, op.body, found, parallel or (op.site if op.how == "par" else 0))
        if op.into is not None and op.result is not None:
            given = set(found).union(
                *(self.of[cell] for cell in self._cells.read(scope, op.result))
            )
            if op.unordered:
                given.add(Cause("race", op.site))
            made = {("object", str(op.site), name) for name in ("", "[]")}
            for cell in made | self._cells.cells(scope, op.into)[0]:
                self.of[cell] |= given

    def _call(self, scope: str, op: Call, control: frozenset[Cause]) -> set[Cause]:
        function = self._cells.program.function(op.function)
        self._control[op.function] |= control
        for parameter, place in zip(function.parameters, op.arguments, strict=True):
            for cell in self._cells.cells(scope, place)[0]:
                self.of[self._cells.variable(op.function, parameter)] |= self.of[cell]
        return set(self._returned[op.function])

    # ---------------------------------------------------------------- parallel loops

    def _parallel_functions(self) -> dict[str, int]:
        """Functions that a parallel loop may call, with the loop's site."""
        found: dict[str, int] = {}
        bodies = dict(self._scopes)
        todo = [
            (op.site, op.body)
            for _, block in self._scopes
            for op in walk_ops(block)
            if isinstance(op, Loop) and op.how == "par"
        ]
        while todo:
            site, block = todo.pop()
            for op in walk_ops(block):
                if isinstance(op, Call) and op.function not in found:
                    found[op.function] = site
                    todo.append((site, bodies[op.function]))
        return found

    def _find_races(self) -> None:
        """What iterations of a parallel loop change for each other, and leave behind."""
        for scope, block in self._scopes:
            for op in walk_ops(block):
                if isinstance(op, Loop) and op.how == "par":
                    for cell in self._raced(scope, op):
                        self.of[cell].add(Cause("race", op.site))

    def _raced(self, scope: str, op: Loop) -> set[Cell]:
        body = self._cells.block(scope, op.body)
        first_read = Liveness(self._cells).of_iteration(scope, op)
        shared = {c for c in body.writes if c[0] == "object" or c[1] != scope or c in first_read}
        inside = {id(each) for each in walk_ops(op.body)}
        outside: set[Cell] = set()
        for other, block in self._scopes:
            for each in walk_ops(block):
                if id(each) not in inside and each is not op:
                    outside |= self._cells.header(other, each).reads
        left = body.writes & outside
        made_here = {
            ("object", str(each.site), name) for each in walk_ops(op.body) for name in ("", "[]")
        }
        # Objects that an iteration makes for itself are its own as long as nobody else sees them.
        return (shared - (made_here - outside)) | left
