"""When a checkpoint is due. A pure function of what has passed since the last one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from detrain.errors import UsageError

__all__ = ["SaveEvery", "parse_save_every"]


@dataclass(frozen=True)
class SaveEvery:
    """Every so many steps, or every so many seconds, or (with neither) never."""

    steps: int | None = None
    seconds: float | None = None

    def due(self, steps: int, seconds: float) -> bool:
        """Whether a checkpoint is due after that many steps and seconds without one."""
        if steps <= 0:
            return False
        by_steps = self.steps is not None and steps >= self.steps
        return by_steps or (self.seconds is not None and seconds >= self.seconds)

    @property
    def never(self) -> bool:
        """Whether no checkpoint is ever due."""
        return self.steps is None and self.seconds is None


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_save_every(text: str) -> SaveEvery:
    """Read `100` (steps), `30s`, `10m`, `1h` or `never`."""
    if text == "never":
        return SaveEvery()
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None or float(found[1]) <= 0 or (not found[2] and not found[1].isdigit()):
        raise UsageError(
            f"save-every: expected a number of steps (100), a time (30s, 10m, 1h) or never, "
            f"found {text!r}"
        )
    if found[2]:
        return SaveEvery(seconds=float(found[1]) * _UNITS[found[2]])
    return SaveEvery(steps=int(found[1]))
