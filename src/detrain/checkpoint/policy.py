"""When a checkpoint is due. Pure functions of what has passed and what checkpoints have cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from detrain.errors import UsageError

__all__ = [
    "DEFAULT_BUDGET",
    "Cost",
    "SaveEvery",
    "interval",
    "parse_budget",
    "parse_save_every",
    "parse_span",
]

LEAST = 10.0
"""Seconds: to save more often than this loses no less work that matters."""

BEHIND = 0.1
"""How much of the time in which a checkpoint is written behind the program is lost to it."""


@dataclass(frozen=True)
class Cost:
    """What a checkpoint took: seconds that the program stood still, and that writing took."""

    stall: float
    write: float

    @property
    def lost(self) -> float:
        """Seconds of training that it cost."""
        return self.stall + BEHIND * self.write


def interval(costs: Sequence[Cost], budget: float) -> float:
    """Seconds from one checkpoint to the next, so that their cost stays within a budget.

    The dearest of the last ones counts: a disk that is slow now and then must not take more than
    its share. One is never due while the one before is still being written.
    """
    if not costs:
        return LEAST
    return max(LEAST, *(max(cost.lost / budget, cost.write) for cost in costs))


@dataclass(frozen=True)
class SaveEvery:
    """Every so many steps, or every so many seconds, or as often as a budget (a share of the run's
    time) allows; or, with none of them, never.
    """

    steps: int | None = None
    seconds: float | None = None
    budget: float | None = None

    def due(self, steps: int, seconds: float, costs: Sequence[Cost] = ()) -> bool:
        """Whether a checkpoint is due after that many steps and seconds without one.

        `costs` are those of the last ones.
        """
        if steps <= 0:
            return False
        if self.budget is not None:
            return seconds >= interval(costs, self.budget)
        by_steps = self.steps is not None and steps >= self.steps
        return by_steps or (self.seconds is not None and seconds >= self.seconds)

    @property
    def never(self) -> bool:
        """Whether no checkpoint is ever due."""
        return self.steps is None and self.seconds is None and self.budget is None

    @property
    def timed(self) -> bool:
        """Whether the clock decides."""
        return self.seconds is not None or self.budget is not None


DEFAULT_BUDGET = 0.03
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_save_every(text: str) -> SaveEvery:
    """Read `100` (steps), `30s`, `10m`, `1h`, `auto` or `never`."""
    if text == "never":
        return SaveEvery()
    if text == "auto":
        return SaveEvery(budget=DEFAULT_BUDGET)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None or float(found[1]) <= 0 or (not found[2] and not found[1].isdigit()):
        raise UsageError(
            f"save-every: expected a number of steps (100), a time (30s, 10m, 1h), auto or never, "
            f"found {text!r}"
        )
    if found[2]:
        return SaveEvery(seconds=float(found[1]) * _UNITS[found[2]])
    return SaveEvery(steps=int(found[1]))


def parse_budget(text: str) -> float:
    """Read `3%` or `0.03`: a share of the run's time."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text)
    share = float(found[1]) / (100 if found[2] else 1) if found is not None else 0.0
    if not 0 < share <= 1:
        raise UsageError(f"budget: expected a share of the run's time (3%, 0.03), found {text!r}")
    return share


def parse_span(text: str, what: str) -> float:
    """Read `30s`, `5m` or `1h` as seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        raise UsageError(f"{what}: expected a time (30s, 5m, 1h), found {text!r}")
    return float(found[1]) * _UNITS[found[2]]
