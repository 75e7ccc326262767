"""DT3xx: answers of the world that reach what is trained, or decide how it goes."""

from __future__ import annotations

from collections.abc import Iterator

from detrain.analysis.decisions import decided_by_clock
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Bind
from detrain.analysis.rules.subject import Subject

__all__ = ["RULES"]


def clock(subject: Subject) -> Iterator[Diagnostic]:
    """DT301: the clock reaches what is trained."""
    for op in subject.world("clock"):
        if op.span is not None and op.site not in subject.seeds_from:
            message = "the time that is read here reaches the state that is trained"
            yield Diagnostic("DT301", message, op.span)


def entropy(subject: Subject) -> Iterator[Diagnostic]:
    """DT302: entropy reaches what is trained."""
    for op in subject.world("entropy", "network"):
        if op.span is not None and op.site not in subject.seeds_from:
            message = "an answer that is another each time reaches the state that is trained"
            yield Diagnostic("DT302", message, op.span)


def decisions(subject: Subject) -> Iterator[Diagnostic]:
    """DT303: the clock decides whether something is trained."""
    lowered = subject.source.lowered
    for op, cause in decided_by_clock(
        subject.cells, subject.causes, subject.loops, lowered, subject.trained
    ):
        if op.span is None:
            continue
        origin = subject.ops[cause.site].span
        notes = ((origin, "the time is read here"),) if origin is not None else ()
        message = "which way the training goes depends on how fast the machine is"
        yield Diagnostic("DT303", message, op.span, notes=notes)


def memory(subject: Subject) -> Iterator[Diagnostic]:
    """DT304: memory that nobody has written reaches what is trained."""
    overwritten = {
        int(cell[1])
        for scope, place in subject.source.lowered.overwritten
        for cell in subject.cells.below(subject.cells.cells(scope, place)[0])
        if cell[0] == "object"
    }
    for op in subject.world("memory"):
        target = getattr(op, "target", None)
        made = {
            each.site
            for each in subject.ops.values()
            if isinstance(each, Bind) and target in each.reads
        }
        if op.span is not None and not made & overwritten:
            message = "nothing is seen to fill this array before what is trained depends on it"
            yield Diagnostic("DT304", message, op.span)


RULES = (clock, entropy, decisions, memory)
