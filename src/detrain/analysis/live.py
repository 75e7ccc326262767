"""Which cells may still matter, at the head of a loop: backwards from the end of the program.

A cell matters if it may be read for something that matters: what is only computed from, into what
nobody looks at, does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from detrain.analysis.cells import Cell, Cells
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

__all__ = ["Liveness"]

Live = frozenset[Cell]


@dataclass(frozen=True)
class _After:
    """What is live where a block may go on: at its end, and where it can be left to."""

    end: Live
    returned: Live
    broken: Live = frozenset()
    continued: Live = frozenset()


class Liveness:
    """Liveness: variables die when they are surely written; what objects hold is never surely."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def at(self, chain: tuple[tuple[str, Op], ...]) -> set[Cell]:
        """What is live at the head of the last loop of a chain of loops and calls."""
        found: set[Cell] = set()
        scope, block = "", self._cells.program.main
        after = _After(frozenset(), frozenset())
        for scope, op in chain:
            after = self._to(scope, block, op, after)
            if isinstance(op, Call):
                # `after` is what is live when the call has returned.
                result = self._cells.header(scope, op).surely
                returned = after.end - result
                found |= {cell for cell in returned if cell[1] == scope or cell[0] == "object"}
                block = self._cells.program.function(op.function).body
                after = _After(returned, returned)
            else:
                assert isinstance(op, Loop)
                block, after = op.body, self._in_loop(scope, op, after)
        found |= after.continued
        return found

    def of_iteration(self, scope: str, op: Loop) -> set[Cell]:
        """What an iteration of a loop reads before it has written it."""
        nothing: Live = frozenset()
        found = set(self._block(scope, op.body, _After(nothing, nothing)))
        return found - (self._cells.cells(scope, op.target)[0] if op.target else set())

    def _to(self, scope: str, block: tuple[Op, ...], target: Op, after: _After) -> _After:
        """What is live right after an op somewhere in a block."""
        live = after.end
        for op in reversed(block):
            if op is target:
                return _After(live, after.returned, after.broken, after.continued)
            if isinstance(op, Branch):
                for each in (op.then, op.otherwise):
                    inner = _After(live, after.returned, after.broken, after.continued)
                    if _holds(each, target):
                        return self._to(scope, each, target, inner)
            live = self._before(
                scope, op, _After(live, after.returned, after.broken, after.continued)
            )
        raise AssertionError("the op is not in the block")

    def _in_loop(self, scope: str, op: Loop, after: _After) -> _After:
        """What is live inside a loop, given what is after it; `continued` is its head."""
        header = self._cells.header(scope, op).reads if op.how == "while" else set()
        given = self._cells.given(scope, op).reads
        head: Live = frozenset()
        while True:
            inner = _After(head | given, after.returned, after.end, head)
            body = self._block(scope, op.body, inner)
            if op.target is not None and len(op.target) == 1:
                body -= self._cells.cells(scope, op.target)[0]
            # Without a test a loop only ends where it is left.
            ends = after.end if op.reads else frozenset()
            made = frozenset(ends | body | header)
            if made == head:
                return inner
            head = made

    def _block(self, scope: str, block: tuple[Op, ...], after: _After) -> Live:
        live = after.end
        for op in reversed(block):
            live = self._before(
                scope, op, _After(live, after.returned, after.broken, after.continued)
            )
        return live

    def _before(self, scope: str, op: Op, after: _After) -> Live:
        """What is live before an op."""
        cells = self._cells
        if isinstance(op, Leave):
            live = {
                "return": after.returned, "break": after.broken, "continue": after.continued,
            }[op.how]  # fmt: skip
            return live | cells.header(scope, op).reads
        if isinstance(op, Branch):
            both = self._block(scope, op.then, after) | self._block(scope, op.otherwise, after)
            return both | cells.header(scope, op).reads
        if isinstance(op, Loop):
            live = after.end - cells.header(scope, op).surely
            if op.into is not None:
                live -= cells.effects(scope, op).surely
            inner = self._in_loop(
                scope, op, _After(live, after.returned, after.broken, after.continued)
            )
            return inner.continued | cells.header(scope, op).reads
        found = cells.effects(scope, op)
        if isinstance(op, Bind | Key | Draw | Mutate | Observe) and not found.writes & after.end:
            return after.end  # what it computes is never used
        return (after.end - found.surely) | found.reads


def _holds(block: tuple[Op, ...], target: Op) -> bool:
    for op in block:
        if op is target:
            return True
        if isinstance(op, Branch) and (_holds(op.then, target) or _holds(op.otherwise, target)):
            return True
    return False
