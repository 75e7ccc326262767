"""What lowering finds besides the ops."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from detrain.analysis.program import Place, Span
from detrain.analysis.scopes import Scope
from detrain.analysis.sites import LoopNode

__all__ = ["LoopFacts", "Lowered"]


@dataclass(frozen=True)
class LoopFacts:
    """A loop statement of the project."""

    label: str
    node: LoopNode
    scope: Scope


@dataclass
class Lowered:
    """What was found in a reading of a project; ops are named by their numbers."""

    numbers: int = 0
    temporaries: int = 0
    loops: dict[str, LoopFacts] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    events: dict[int, set[str]] = field(default_factory=dict)
    """By op: "update", "gradient", "self" (something is made from what it was), "library"."""
    kinds: dict[int, str] = field(default_factory=dict)
    """By op that makes an object: what kind of thing of a library it is."""
    unknown: list[tuple[str, Span]] = field(default_factory=list)
    """Calls that nothing is known of."""
    seeded: dict[str, list[int]] = field(default_factory=dict)
    """By generator: the ops that seed it."""
    calls: list[tuple[str, int, ast.Call, Scope]] = field(default_factory=list)
    """Library calls: the row's name, the op before it, the call, where it stands."""
    observed: dict[int, str] = field(default_factory=dict)
    """By op that asks the world: the row that says so."""
    clears: dict[int, Place] = field(default_factory=dict)
    """By op that clears gradients: the optimizer whose gradients they are."""
    steps: dict[int, Place] = field(default_factory=dict)
    """By op that uses gradients: the optimizer that makes a step with its own and with no other."""
    overwritten: list[tuple[str, Place]] = field(default_factory=list)
    """Arrays that a call fills anew, by the function and the place."""
    opened: list[tuple[Span, bool]] = field(default_factory=list)
    """Where variables are looked at or bound that can't be named, and whether that may be at any
    time. If it is, or is in a training loop, nothing may be dropped."""
    copies: dict[str, str] = field(default_factory=dict)
    """Functions of the program that are a small function of the project as one call sees it."""
    versions: set[tuple[str, str]] = field(default_factory=set)
    """Variables, by function and name, that are more than one variable of the program."""
    guessed: set[int] = field(default_factory=set)
    """Calls that only may be there, because nothing is known of who is given an object."""
    stored: set[str] = field(default_factory=set)
    """Functions that are kept where they can't be followed, and may be called from anywhere."""
    registered: set[str] = field(default_factory=set)
    """Those among the ones given away that nothing tells when they are called: hooks, threads."""
    given_away: set[str] = field(default_factory=set)
    """Functions that a library was given, and may call at any time."""
    varies: list[tuple[str, str, Span]] = field(default_factory=list)
    """Calls whose bits may vary: the row's name, why, and where."""

    used_up: set[int] = field(default_factory=set)
    """Calls of which an element or a method is asked at once, so that nobody keeps the result."""

    def is_used_up(self, node: ast.AST) -> bool:
        """Whether nobody keeps the result of a call."""
        return id(node) in self.used_up

    def mark(self, site: int, event: str) -> None:
        """Note that something is trained at an op."""
        self.events.setdefault(site, set()).add(event)
