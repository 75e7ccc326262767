"""Where the world decides which way the training goes: a time budget, a pace that is measured.

Only what a test itself looks at counts, not all that hangs on it: an object that also keeps the
time somewhere decides nothing by that.
"""

from __future__ import annotations

from collections.abc import Iterator

from detrain.analysis.cells import Cells, CellSet
from detrain.analysis.infer import Causes
from detrain.analysis.loops import TrainingLoops
from detrain.analysis.lowered import Lowered
from detrain.analysis.program import Branch, Call, Leave, Loop, Op, walk_ops
from detrain.analysis.types import Cause

__all__ = ["decided_by_clock", "in_training"]


def in_training(cells: Cells, loops: TrainingLoops) -> set[int]:
    """The ops that run inside training loops, by calls too."""
    found: set[int] = set()
    done: set[str] = set()
    todo: list[tuple[Op, ...]] = [
        op.body
        for _, block in cells.scopes
        for op in walk_ops(block)
        if isinstance(op, Loop) and op.label in loops.sites
    ]
    while todo:
        for op in walk_ops(todo.pop()):
            found.add(op.site)
            if isinstance(op, Call) and op.function not in done:
                done.add(op.function)
                todo.append(cells.functions[op.function].body)
    return found


def decided_by_clock(
    cells: Cells, causes: Causes, loops: TrainingLoops, lowered: Lowered, trained: CellSet
) -> Iterator[tuple[Branch | Loop, Cause]]:
    """Tests that the clock decides and that matter for what is trained, with the clock."""
    inside = in_training(cells, loops)
    for scope, block in cells.scopes:
        for op in walk_ops(block):
            if isinstance(op, Branch):
                matters = op.site in inside and _matters(cells, lowered, trained, scope, op)
            else:
                matters = isinstance(op, Loop) and op.how == "while" and op.label in loops.sites
            if not matters or not isinstance(op, Branch | Loop):
                continue
            found = {
                cause
                for place in op.reads
                for cell in cells.cells(scope, place)[0]
                for cause in causes.of.get(cell, ())
                if cause.kind == "world" and cause.what == "clock"
            }
            if found:
                yield op, min(found)


def _matters(cells: Cells, lowered: Lowered, trained: CellSet, scope: str, op: Branch) -> bool:
    """Whether it matters for what is trained which way a branch goes."""
    for inner in (*walk_ops(op.then), *walk_ops(op.otherwise)):
        if "update" in lowered.events.get(inner.site, ()) or isinstance(inner, Leave):
            return True
        if not cells.effects(scope, inner).writes.isdisjoint(trained):
            return True
    return False
