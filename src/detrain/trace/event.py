"""One event for each step: what happened, without when. Two equal runs have equal events."""

from __future__ import annotations

import msgspec

__all__ = ["Event"]


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finished step.

    `at` is the position in the loops, outermost first, as (site, iteration). `values` are those
    that the program recorded, as exact text. `state` is the digest of the state, every N steps.
    """

    step: int
    at: tuple[tuple[str, int], ...]
    values: dict[str, str] = {}
    state: str = ""
