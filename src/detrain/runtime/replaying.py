"""Doing steps of a run again, to look at them.

The program is rebuilt as for a resume, from the newest checkpoint before the first of the steps, in
a copy of the run. From there on it sees the world as it was at that checkpoint, and what it writes
goes nowhere; the output is hidden up to the first step, and after the last one the program ends.
Each step is compared with the run's trace, and the state wherever that has a digest of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from detrain.errors import UsageError

if TYPE_CHECKING:
    from detrain.trace.log import Trace
    from detrain.world.observe import Observation

__all__ = ["Replayed", "Replaying", "parse_steps"]


class Replayed(SystemExit):
    """All steps that were asked for are done."""


@dataclass(frozen=True)
class Replaying:
    """The steps to be looked at, and what is known of them."""

    first: int
    last: int
    digested: frozenset[int]
    """Steps after which the run digested its state."""
    observed: tuple[Observation, ...] = ()
    """What the world answered before the first loop, for a program that begins at its top."""
    compared: list[int] = field(default_factory=list)
    """Steps whose states were compared."""

    @staticmethod
    def of(trace: Trace, steps: str, observed: tuple[Observation, ...] = ()) -> Replaying:
        """The steps that are meant, of those that a run has done."""
        done = trace.events[-1][0].step if trace.events else 0
        first, last = parse_steps(steps, done)
        digested = frozenset(event.step for event, _ in trace.events if event.state)
        return Replaying(first, last, digested, observed)

    def compares(self, step: int) -> bool:
        """Whether the state after this step is digested, as it was then; if so, it counts."""
        if step not in self.digested:
            return False
        self.compared.append(step)
        return True


def parse_steps(text: str, done: int) -> tuple[int, int]:
    """Read `12`, `10:20` (both included), `10:` or `:20`, of the steps that are done."""
    found = re.fullmatch(r"(\d*)(:?)(\d*)", text)
    if found is None or not (found[1] or found[3]) or (found[3] and not found[2]):
        raise UsageError(f"steps: expected 12, 10:20, 10: or :20, found {text!r}")
    first = int(found[1] or 1)
    last = int(found[3] or done) if found[2] else first
    if not 1 <= first <= last:
        raise UsageError(f"steps: expected a first and a last one from 1 on, found {text!r}")
    if last > done:
        raise UsageError(f"steps: the run has done {done} steps, found {text!r}")
    return first, last
