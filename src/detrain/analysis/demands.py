"""Demands: what a run must record or key, and what can't be replayed."""

from __future__ import annotations

from collections.abc import Iterator

from detrain.analysis.cells import Cells, CellSet
from detrain.analysis.decisions import decided_by_clock
from detrain.analysis.frontend import Source
from detrain.analysis.infer import Causes
from detrain.analysis.loops import TrainingLoops
from detrain.analysis.pretty import print_op
from detrain.analysis.program import Call, Draw, Loop, Op, blocks_of, walk_ops
from detrain.analysis.types import Cause
from detrain.plan import Action, PlanItem

__all__ = ["demands", "varies"]

_VARYING = frozenset({"clock", "entropy", "memory", "network"})
"""Answers of the world that another run on the same machine gets otherwise."""

_KEPT = _VARYING - {"memory"}
"""Those of them that can be kept and given again: what lay in memory is no answer."""

_POOLS = ("concurrent.futures.", "multiprocessing.pool.", "multiprocessing.dummy.")

_RACED = "its bits depend on the order in which parallel work is done"


def demands(
    source: Source, cells: Cells, causes: Causes, loops: TrainingLoops, trained: CellSet
) -> Iterator[PlanItem]:
    """What must be recorded or keyed, and what can't be replayed."""
    ops = _ops(source)
    lowered = source.lowered
    decisions = decided_by_clock(cells, causes, loops, lowered, trained)
    reached = {*causes.among(trained), *(cause for _, cause in decisions)}
    for cause in reached:
        op = ops.get(cause.site)
        if op is None or op.span is None:
            continue
        if cause.kind == "world" and cause.what in _KEPT:
            why = f"the {cause.what} reaches what is trained, or decides which way it goes"
            yield PlanItem(print_op(op), "record", why, op.span.line, op.span.file)
        elif cause.kind == "race" and not _is_loader(op) and not isinstance(op, Draw):
            # Tasks of a pool that may draw take turns, in the order of submission.
            takes_turns = _is_pool(op, source) and _draws(op, cells)
            action: Action = "rekey" if takes_turns else "refuse"
            yield PlanItem(print_op(op), action, _RACED, op.span.line, op.span.file)
    # A draw moves a generator that others draw from, whatever becomes of the number.
    raced = {cause.site for cause in causes.everywhere if cause.kind == "race"}
    for site in raced:
        op = ops.get(site)
        if isinstance(op, Draw) and op.span is not None:
            yield PlanItem(print_op(op), "rekey", _RACED, op.span.line, op.span.file)


def _is_loader(op: Op) -> bool:
    """Whether an op is the workers of a loader: what they draw is keyed, the rest is their own."""
    return isinstance(op, Loop) and op.label.rpartition(":")[2].startswith("W")


def _is_pool(op: Op, source: Source) -> bool:
    """Whether a parallel loop is the tasks of a pool of Python's own."""
    return op.span is not None and any(
        name.startswith(_POOLS)
        and (node.lineno, node.col_offset) == (op.span.line, op.span.column)
        and scope.module.path == op.span.file
        for name, _, node, scope in source.lowered.calls
    )


def _draws(op: Op, cells: Cells) -> bool:
    """Whether a parallel loop may come to a draw."""
    bodies = dict(cells.scopes)
    todo, seen = list(blocks_of(op)), set[str]()
    while todo:
        for each in walk_ops(todo.pop()):
            if isinstance(each, Draw):
                return True
            if isinstance(each, Call) and each.function not in seen:
                seen.add(each.function)
                todo.append(bodies[each.function])
    return False


def _ops(source: Source) -> dict[int, Op]:
    program = source.program
    blocks = (program.main, *(each.body for each in program.functions))
    return {op.site: op for block in blocks for op in walk_ops(block)}


def varies(cause: Cause) -> bool:
    """Whether another run on the same machine gets another answer."""
    return cause.kind == "world" and cause.what in _VARYING
