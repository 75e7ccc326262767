"""Which cells may still matter, at the head of a loop: backwards from the end of the program.

A cell matters if it may be read for something that matters: what is only computed from, into what
nobody looks at, does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from detrain.analysis.program import (
    Bind,
    Branch,
    Call,
    Draw,
    Key,
    Leave,
    Loop,
    Mutate,
    Observe,
    Op,
)

if TYPE_CHECKING:
    from detrain.analysis.cells import Cells, CellSet

__all__ = ["Liveness"]

Chain = tuple[tuple[str, Op], ...]


class _Exits(NamedTuple):
    """What is live where a block can be left to; `continued` is the head of the loop around it."""

    returned: CellSet
    broken: CellSet
    continued: CellSet

    def within(self, other: _Exits) -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))


class _Inside(NamedTuple):
    """A block that is entered on the way to a cut, and what is live where it can go on to."""

    block: tuple[Op, ...]
    end: CellSet
    exits: _Exits


class _Head(NamedTuple):
    """What was found for the head of a loop, and what was live after it then."""

    end: CellSet
    exits: _Exits
    live: CellSet


class Liveness:
    """Liveness: a cell dies where it is surely written."""

    def __init__(self, cells: Cells, *, all_reads: bool = False) -> None:
        """With `all_reads` what is read matters, even if nothing comes of it."""
        self._cells, self._all_reads = cells, all_reads
        self._heads: dict[int, _Head] = {}
        self._exposures: dict[str, CellSet] = {}
        self._replaced: dict[str, CellSet] = {}
        nothing = cells.nothing
        start = _Inside(cells.program.main, nothing, _Exits(nothing, nothing, nothing))
        self._entered: dict[tuple[int, ...], _Inside] = {(): start}

    def at(self, chain: Chain, *, entered: bool = False) -> CellSet:
        """What is live at the head of the last loop of a chain of loops and calls.

        If it is known to be `entered`, another iteration follows: what that surely writes is dead,
        though it is read after the loop.
        """
        inside = self._inside(chain)
        found = inside.exits.continued
        if entered:
            scope, op = chain[-1]
            assert isinstance(op, Loop)
            found = self._iteration(scope, op, found, inside.exits)
        # Objects are got at from variables, and from the loops that are under way: what these go
        # through was taken when they were entered, whatever held it.
        variables = found - self._cells.of_objects
        return found & self._cells.below(variables, objects=self._cells.items(chain))

    def of_iteration(self, scope: str, op: Loop) -> CellSet:
        """What an iteration of a loop reads before it has written it."""
        nothing = self._cells.nothing
        found = self._block(scope, op.body, nothing, _Exits(nothing, nothing, nothing))
        return found - (self._cells.cells(scope, op.target)[0] if op.target else nothing)

    def replaced_by(self, name: str) -> CellSet:
        """The global variables that a function writes whatever happens, before it reads them."""
        cells = self._cells
        if name not in self._replaced:
            self._replaced[name] = cells.nothing  # what calls itself is not looked into again
            variables = cells.variables("")
            # If all were live at its ends, those that are not at its beginning are replaced.
            exits = _Exits(variables, cells.nothing, cells.nothing)
            first = self._block(name, cells.functions[name].body, variables, exits)
            self._replaced[name] = variables - first
        return self._replaced[name]

    def replaced(self, scope: str, op: Branch | Loop) -> CellSet:
        """The variables that an op writes whatever happens, before it reads them."""
        cells = self._cells
        end = cells.variables(scope) | cells.variables("")
        return end - self._before(scope, op, end, _Exits(end, end, end))

    def _inside(self, chain: Chain) -> _Inside:
        key = tuple(op.site for _, op in chain)
        found = self._entered.get(key)
        if found is None:
            scope, op = chain[-1]
            found = self._entered[key] = self._enter(scope, op, self._inside(chain[:-1]))
        return found

    def _enter(self, scope: str, op: Op, around: _Inside) -> _Inside:
        cells = self._cells
        end = self._after(scope, around.block, op, around.end, around.exits)
        if isinstance(op, Loop):
            head = self._head(scope, op, end, around.exits)
            exits = _Exits(around.exits.returned, end, head)
            return _Inside(op.body, head, exits)
        assert isinstance(op, Call)
        end -= cells.header(scope, op).surely
        exits = _Exits(end, cells.nothing, cells.nothing)
        return _Inside(cells.functions[op.function].body, end, exits)

    def _after(
        self, scope: str, block: tuple[Op, ...], target: Op, live: CellSet, exits: _Exits
    ) -> CellSet:
        """What is live right after an op somewhere in a block."""
        for op in reversed(block):
            if op is target:
                return live
            if isinstance(op, Branch) and self._cells.contains(op, target):
                for each in (op.then, op.otherwise):
                    if any(one is target or self._cells.contains(one, target) for one in each):
                        return self._after(scope, each, target, live, exits)
            live = self._before(scope, op, live, exits)
        raise AssertionError("the op is not in the block")

    def _head(self, scope: str, op: Loop, end: CellSet, exits: _Exits) -> CellSet:
        """What is live at the head of a loop, given what is after it.

        More after it makes more live at its head: what was found for less is a start.
        """
        cells = self._cells
        last = self._heads.get(op.site)
        head = cells.nothing
        if last is not None and last.end <= end and last.exits.within(exits):
            if end == last.end and exits == last.exits:
                return last.live
            head = last.live
        # Without a test a loop only ends where it is left.
        ending = end if op.reads else cells.nothing
        while True:
            inner = _Exits(exits.returned, end, head)
            made = ending | self._iteration(scope, op, head, inner)
            if made == head:
                self._heads[op.site] = _Head(end, exits, head)
                return head
            head = made

    def _iteration(self, scope: str, op: Loop, head: CellSet, exits: _Exits) -> CellSet:
        """What is live at the head of a loop, for the iteration that follows it."""
        cells = self._cells
        found = self._block(scope, op.body, head | cells.given(scope, op).reads, exits)
        if op.target is not None:
            bound, passed = cells.cells(scope, op.target)
            found = found - bound if len(op.target) == 1 else found | passed
        return found | cells.header(scope, op).reads if op.how == "while" else found

    def _block(self, scope: str, block: tuple[Op, ...], live: CellSet, exits: _Exits) -> CellSet:
        for op in reversed(block):
            live = self._before(scope, op, live, exits)
        return live

    def _before(self, scope: str, op: Op, live: CellSet, exits: _Exits) -> CellSet:
        """What is live before an op."""
        cells = self._cells
        if isinstance(op, Leave):
            live = {
                "return": exits.returned, "break": exits.broken, "continue": exits.continued,
            }[op.how]  # fmt: skip
            return live | cells.header(scope, op).reads
        if isinstance(op, Branch):
            then = self._block(scope, op.then, live, exits)
            otherwise = self._block(scope, op.otherwise, live, exits)
            return then | otherwise | cells.header(scope, op).reads
        if isinstance(op, Loop):
            live -= cells.effects(scope, op).surely
            return self._head(scope, op, live, exits) | cells.header(scope, op).reads
        found = cells.effects(scope, op)
        is_local = isinstance(op, Bind | Key | Draw | Mutate | Observe)
        is_strong = cells.strong and not self._all_reads
        if is_strong and is_local and found.writes.isdisjoint(live):
            return live  # what it computes is never used
        reads = found.reads
        if isinstance(op, Call) and not cells.strong:
            reads = cells.header(scope, op).reads | self.exposed(op.function)
        return (live - found.surely) | reads

    def exposed(self, function: str) -> CellSet:
        """What a function reads before it has written it; of objects, all that it reads."""
        cells = self._cells
        found = self._exposures.get(function)
        if found is None:
            reads = cells.summary(function).reads
            self._exposures[function] = reads  # for calls of itself
            nothing = cells.nothing
            body = cells.functions[function].body
            entry = self._block(function, body, nothing, _Exits(nothing, nothing, nothing))
            found = self._exposures[function] = reads & (cells.of_objects | entry)
        return found
