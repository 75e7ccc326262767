"""Training loops: those that carry what is trained from one iteration into the next.

A loop trains if something in it, or in a function that it calls, updates parameters: an optimizer's
step, gradients applied, a parameter changed by its gradient. In a program that never does that, a
loop trains if gradients are taken in it and something is made anew from what it was (functional
updates), and in one without gradients, if an array is.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass

from detrain.analysis.frontend import Source
from detrain.analysis.lowered import LoopFacts
from detrain.analysis.program import Call, Loop, Op, blocks_of, walk_ops
from detrain.analysis.sites import LoopNode, loop_sites

__all__ = ["TrainingLoops", "find_loops", "over_parts"]

_PARTS = frozenset(
    {"parameters", "named_parameters", "param_groups", "state_dict", "modules", "named_modules",
     "trainable_variables", "trainable_weights", "children", "variables"}
)  # fmt: skip

_WANTED = ({"update"}, {"gradient", "self"}, {"self"})
"""What makes a loop a training loop; the weaker ones only where no loop has the stronger."""


@dataclass(frozen=True)
class TrainingLoops:
    """Loops on the way to an update, by label."""

    sites: dict[str, str]
    """The site of each, in the order of the text."""
    innermost: frozenset[str]
    """Those that no other training loop runs inside."""
    events: frozenset[str]
    """What is trained by, in the whole program."""


def find_loops(source: Source, marked: dict[str, frozenset[int]]) -> TrainingLoops:
    """The training loops of a program; `marked` are lines, by file, that a comment marks."""
    found = _Events(source)
    marks = {
        label
        for label, facts in source.lowered.loops.items()
        if facts.node.lineno in marked.get(facts.scope.module.path, frozenset())
    }
    candidates = {
        label: facts
        for label, facts in source.lowered.loops.items()
        if not _in_generator(facts) and (label in marks or not over_parts(facts.node))
    }
    trained: set[str] = set()
    for wanted in _WANTED:
        trained = {label for label in candidates if wanted <= found.by_loop[label]}
        if trained:
            break
    chosen = {label: facts for label, facts in candidates.items() if label in trained | marks}
    inner = {
        label
        for label in chosen
        if not any(
            # Loops that run inside each other do so by recursion.
            other in found.inside[label] and label not in found.inside[other]
            for other in chosen
        )
    }
    return TrainingLoops(_sites(chosen), frozenset(inner), frozenset(found.everywhere))


class _Events:
    """Which events and loops each loop contains, also by the functions that it calls."""

    def __init__(self, source: Source) -> None:
        self._marks, self._guessed = source.lowered.events, source.lowered.guessed
        program = source.program
        self._bodies = {each.name: each.body for each in program.functions}
        self._events: defaultdict[str, set[str]] = defaultdict(set)
        self._loops: defaultdict[str, set[str]] = defaultdict(set)
        self._calls: defaultdict[str, set[str]] = defaultdict(set)
        for name, body in self._bodies.items():
            self._scan(name, body)
        self._close()
        self.by_loop: defaultdict[str, set[str]] = defaultdict(set)
        self.inside: defaultdict[str, set[str]] = defaultdict(set)
        self.everywhere: set[str] = set()
        for block in (program.main, *self._bodies.values()):
            self._visit(block)

    def _scan(self, name: str, body: tuple[Op, ...]) -> None:
        for op in walk_ops(body):
            self._events[name] |= self._marks.get(op.site, set())
            if isinstance(op, Loop):
                self._loops[name].add(op.label)
            elif isinstance(op, Call) and op.site not in self._guessed:
                self._calls[name].add(op.function)

    def _close(self) -> None:
        """What a function's callees do, it does."""
        changed = True
        while changed:
            changed = False
            for name, callees in self._calls.items():
                for callee in callees:
                    for table in (self._events, self._loops):
                        if not table[callee] <= table[name]:
                            table[name] |= table[callee]
                            changed = True

    def _visit(self, block: tuple[Op, ...]) -> tuple[set[str], set[str]]:
        events: set[str] = set()
        loops: set[str] = set()
        for op in block:
            events |= self._marks.get(op.site, set())
            if isinstance(op, Call) and op.site not in self._guessed:
                events |= self._events[op.function]
                loops |= self._loops[op.function]
            for inner in blocks_of(op):
                more, found = self._visit(inner)
                events |= more
                loops |= found
                if isinstance(op, Loop):
                    self.by_loop[op.label] |= more
                    self.inside[op.label] |= found
            if isinstance(op, Loop):
                loops.add(op.label)
        self.everywhere |= events
        return events, loops


def over_parts(node: LoopNode) -> bool:
    """Whether a loop goes over the parts of one update: it is no place to stop."""
    if isinstance(node, ast.While):
        return False
    return any(isinstance(e, ast.Attribute) and e.attr in _PARTS for e in ast.walk(node.iter))


def _in_generator(facts: LoopFacts) -> bool:
    """Whether a loop stands in a generator, whose frame is not on the stack between its items."""
    scope = facts.scope
    return scope.kind == "function" and (
        isinstance(scope.node, ast.AsyncFunctionDef) or scope.yields
    )


def _sites(chosen: dict[str, LoopFacts]) -> dict[str, str]:
    """The site of each loop, by its label."""
    nodes = {facts.node for facts in chosen.values()}
    sites: dict[LoopNode, str] = {}
    for module in dict.fromkeys(facts.scope.module for facts in chosen.values()):
        sites |= loop_sites(module.tree, module.name, nodes.__contains__)
    return {label: sites[facts.node] for label, facts in chosen.items() if facts.node in sites}
