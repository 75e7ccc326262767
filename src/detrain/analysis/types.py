"""The types: how the bits of a cell come about, and how they are had again after a cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Cause", "Life", "Type"]

Life = Literal["setup", "rebuilt", "carried", "scratch"]
"""*setup*: unchanged since before the outermost loop. *rebuilt*: written again on the way to the
cut. *carried*: neither, and may be read: saved. *scratch*: not read any more: dropped."""


@dataclass(frozen=True, order=True)
class Cause:
    """Why bits may be others: a draw, a keyed draw, a race, an answer of the world."""

    kind: Literal["draw", "key", "race", "world"]
    site: int
    what: str = ""


@dataclass(frozen=True)
class Type:
    """The type of a cell at a cut; without causes it is *fixed*."""

    causes: frozenset[Cause]
    life: Life
