"""DT3xx: answers of the world that reach what is trained, or decide how it goes."""

from __future__ import annotations

from collections.abc import Iterator

from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Bind, Branch, Leave, Loop, Op, walk_ops
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
    for op in subject.in_order(iter(subject.ops.values())):
        if not isinstance(op, Branch | Loop) or op.span is None:
            continue
        if op.site not in subject.in_training and not _is_training_loop(subject, op):
            continue
        if not _matters(subject, op):
            continue
        for cause in sorted(subject.causes_of(op, op.reads)):
            if cause.kind == "world" and cause.what == "clock":
                origin = subject.ops[cause.site].span
                notes = ((origin, "the time is read here"),) if origin is not None else ()
                message = "which way the training goes depends on how fast the machine is"
                yield Diagnostic("DT303", message, op.span, notes=notes)
                break


def _is_training_loop(subject: Subject, op: Op) -> bool:
    return isinstance(op, Loop) and op.how == "while" and op.label in subject.loops.sites


def _matters(subject: Subject, op: Branch | Loop) -> bool:
    """Whether it matters for what is trained which way a branch goes."""
    if isinstance(op, Loop):
        return _is_training_loop(subject, op)
    for inner in (*walk_ops(op.then), *walk_ops(op.otherwise)):
        if "update" in subject.source.lowered.events.get(inner.site, ()):
            return True
        if isinstance(inner, Leave):
            return True
        written = subject.cells.effects(subject.scope_of[inner.site], inner).writes
        if not written.isdisjoint(subject.trained):
            return True
    return False


def memory(subject: Subject) -> Iterator[Diagnostic]:
    """DT304: memory that nobody has written reaches what is trained."""
    overwritten = {
        site
        for scope, place in subject.source.lowered.overwritten
        for cell in subject.cells.cells(scope, place)[0]
        for site in subject.cells.holds(cell)
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
