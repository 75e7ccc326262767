"""Rules: what in a program would keep it from the same bits. One room for each hundred of codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.rules import order, parallel, randomness, state, world
from detrain.analysis.rules.subject import Subject

__all__ = ["RULES", "Subject", "diagnose"]

RULES: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    *randomness.RULES, *order.RULES, *world.RULES, *parallel.RULES, *state.RULES,
)  # fmt: skip


def diagnose(subject: Subject) -> tuple[Diagnostic, ...]:
    """All that the rules find, each once."""
    return tuple(dict.fromkeys(found for rule in RULES for found in rule(subject)))
