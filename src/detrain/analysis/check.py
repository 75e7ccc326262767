"""Whether a program is well formed: what the rest of the analysis relies on."""

from __future__ import annotations

from detrain.analysis.pretty import print_op, print_place
from detrain.analysis.program import (
    Bind,
    Call,
    Function,
    Leave,
    Loop,
    Op,
    Program,
    blocks_of,
    walk_ops,
)

__all__ = ["check"]


def check(program: Program) -> list[str]:
    """What is wrong with a program, as sentences; empty if nothing is."""
    troubles: list[str] = []
    functions = {each.name: each for each in program.functions}
    if len(functions) < len(program.functions):
        troubles.append("two functions have one name")
    blocks = [(f"def {each.name}", each.body) for each in program.functions]
    seen: set[str] = set()
    for where, block in [*blocks, ("main", program.main)]:
        for op in walk_ops(block):
            if isinstance(op, Loop) and op.label in seen:
                troubles.append(f"{where}: two loops have the label {op.label}")
            if isinstance(op, Loop):
                seen.add(op.label)
        troubles += [f"{where}: {each}" for each in _block(block, functions, (), where == "main")]
    return troubles


def _block(
    block: tuple[Op, ...], functions: dict[str, Function], around: tuple[Loop, ...], is_main: bool
) -> list[str]:
    troubles = []
    for op in block:
        if isinstance(op, Call):
            function = functions.get(op.function)
            if function is None:
                troubles.append(f"`{print_op(op)}` calls what is not defined")
            elif len(function.parameters) != len(op.arguments):
                wanted = len(function.parameters)
                troubles.append(f"`{print_op(op)}` gives {len(op.arguments)} of {wanted} arguments")
        if isinstance(op, Bind) and op.how == "alias" and not op.reads:
            troubles.append(f"`{print_place(op.target)}` is bound to nothing")
        if isinstance(op, Leave):
            if op.how == "return" and is_main:
                troubles.append("`return` outside a function")
            if op.how != "return" and not around:
                troubles.append(f"`{op.how}` outside a loop")
            in_par = [each for each in around if each.how == "par"]
            if in_par and (op.how == "return" or around[-1].how == "par"):
                troubles.append(f"`{op.how}` leaves the parallel loop {in_par[-1].label}")
        if isinstance(op, Loop):
            if op.how == "par" and (op.result is None) != (op.into is None):
                troubles.append(f"the parallel loop {op.label} gives something to nowhere")
            if not op.reads and op.how != "while":
                troubles.append(f"the loop {op.label} reads nothing")
        inner = (*around, op) if isinstance(op, Loop) else around
        for each in blocks_of(op):
            troubles += _block(each, functions, inner, is_main)
    return troubles
