"""How a run is to be worked on; nothing here changes the bits, unless it says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from detrain.checkpoint.policy import (
    DEFAULT_BUDGET,
    SaveEvery,
    parse_budget,
    parse_save_every,
    parse_span,
)
from detrain.checkpoint.retention import Retention
from detrain.checkpoint.streaming import parse_memory
from detrain.errors import UsageError

__all__ = ["DEFAULT_SAVE_EVERY", "Options"]

DEFAULT_SAVE_EVERY = SaveEvery(budget=DEFAULT_BUDGET)


@dataclass(frozen=True)
class Options:
    """When to save, how many to keep, how often to digest the state into the trace."""

    save_every: SaveEvery = DEFAULT_SAVE_EVERY
    budget: float = DEFAULT_BUDGET
    """The share of the run's time that checkpoints may take, where it decides."""
    grace: float = 30.0
    """Seconds from being asked to end to ending, saved or not."""
    keep: int = 3
    keep_every: int | None = None
    compact: bool = False
    """Whether checkpoints that are kept besides the last ones are stored in less room."""
    snapshot_memory: int | None = None
    """Bytes that a copy of the state may take; a larger one is written while the program waits."""
    digest_every: int = 100
    quiet: bool = False
    use_plan: bool = True
    """Whether checkpoints leave out what the plan of the program says is not needed."""
    audit: bool = False
    """Whether that is watched after every checkpoint, rather than after a loop's first."""
    unordered: bool = False
    """Whether pools give results as they are done; this one may change the bits of a program."""
    one_stream: bool = False
    """Whether iterable datasets give what they give without workers; so may this one."""
    typed: frozenset[str] = frozenset()
    """Options typed on the command line: what the program asks for changes others only."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What was chosen that may change the bits, as it is typed."""
        chosen = {"--one-stream": self.one_stream, "--unordered": self.unordered}
        return tuple(name for name, is_chosen in chosen.items() if is_chosen)

    @property
    def policy(self) -> SaveEvery:
        """When a checkpoint is due."""
        every = self.save_every
        return every if every.budget is None else replace(every, budget=self.budget)

    @property
    def retention(self) -> Retention:
        """Which checkpoints are kept."""
        return Retention(self.keep, self.keep_every, self.compact)

    def asked(self, **wanted: str | int | None) -> Options:
        """With what a program asks for, where it asks and nothing else was typed."""
        return self._with(
            {k: v for k, v in wanted.items() if v is not None and k not in self.typed}
        )

    def typing(self, **wanted: str | int | None) -> Options:
        """With what was typed on the command line."""
        given = {name: value for name, value in wanted.items() if value is not None}
        return replace(self._with(given), typed=self.typed | frozenset(given))

    def _with(self, given: dict[str, str | int]) -> Options:
        changes: dict[str, Any] = {}
        for name, value in given.items():
            if name == "save_every":
                changes[name] = parse_save_every(str(value))
            elif name == "budget":
                changes[name] = parse_budget(str(value))
            elif name == "grace":
                changes[name] = parse_span(str(value), "grace")
            elif name == "snapshot_memory":
                changes[name] = parse_memory(str(value))
            elif name in ("keep", "keep_every", "digest_every"):
                least = 0 if name == "digest_every" else 1
                if int(value) < least:
                    raise UsageError(f"{name}: expected a number from {least} on, found {value}")
                changes[name] = int(value)
        return replace(self, **changes)
