"""What is written down about a run besides its state: who it is, its attempts, how it ended."""

from __future__ import annotations

import msgspec

__all__ = ["Attempt", "Outcome", "RunRecord"]


class RunRecord(msgspec.Struct, frozen=True):
    """What a run is, written once when it begins.

    `command` is what the same line typed again is recognised by: the script, relative to the folder
    of the runs, and its arguments.
    """

    name: str
    script: str
    argv: tuple[str, ...]
    seed: int
    created: float
    script_digest: str
    detrain: str
    overrides: bool = False
    """Whether the seeds of the program itself are mixed with this one: it was typed."""
    choices: tuple[str, ...] = ()
    """Options that may change the bits."""

    @property
    def command(self) -> tuple[str, ...]:
        """The script and its arguments."""
        return (self.script, *self.argv)


class Attempt(msgspec.Struct, frozen=True):
    """One process that worked on a run; `resumed_at` is None for the first."""

    pid: int
    host: str
    started: float
    resumed_at: int | None
    script_digest: str
    fingerprint: dict[str, str]
    plan: str = ""
    """The digest of the plan that its trace was made with; the digests of steps depend on it."""


class Outcome(msgspec.Struct, frozen=True):
    """How the last attempt ended, if it came to an end."""

    status: str
    exit_code: int
    ended: float
    steps: int
    state_digest: str
    trace_digest: str
    traceback: str = ""
    diverged_at: int | None = None
