"""DT4xx: parallel work that changes the same things, and operations that vary."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Loop
from detrain.analysis.rules.subject import Subject

__all__ = ["RULES"]

_SHARES = ("torch.nn.Module.share_memory", "torch.Tensor.share_memory_")


def hogwild(subject: Subject) -> Iterator[Diagnostic]:
    """DT401: several at once change what is trained."""
    names = {name for name, *_ in subject.source.lowered.calls}
    shares = bool(names & set(_SHARES))
    threads = any(name.startswith("threading.Thread") for name in names)
    for op, around in subject.walk():
        if not (isinstance(op, Loop) and op.how == "par") or op.span is None:
            continue
        if not op.label.rpartition(":")[2].startswith("P"):
            continue  # the workers of a loader have memory of their own
        many = any(isinstance(each, Loop) for each in around)
        if not (shares or (threads and many)):
            continue
        written = subject.cells.block(subject.scope_of[op.site], op.body).writes
        if not written.isdisjoint(subject.trained):
            message = "what these processes or threads train is the same memory, and nobody waits"
            yield Diagnostic("DT401", message, op.span)


def varying(subject: Subject) -> Iterator[Diagnostic]:
    """DT402: operations whose bits may vary."""
    deterministic = any(
        isinstance(node, ast.Attribute)
        and node.attr in ("use_deterministic_algorithms", "enable_op_determinism")
        for node, _ in subject.nodes
    )
    seen: set[str] = set()
    for name, why, span in sorted(
        subject.source.lowered.varies, key=lambda each: (each[2].file, each[2].line)
    ):
        if name in seen or (deterministic and why.startswith("unless")):
            continue
        seen.add(name)
        yield Diagnostic("DT402", f"{name}: {why}", span)


RULES = (hogwild, varying)
