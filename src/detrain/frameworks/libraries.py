"""Libraries with random numbers of their own that no object of the program leads to.

A row is looked at if its module is imported. Most libraries need none: albumentations, MONAI and
TorchIO keep generators in their objects, which are found there; torchvision, kornia and torchaudio
draw from torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["LANE", "ROWS", "Row", "holders", "seeds"]

LANE = 3
"""Where in an address the seeds of libraries come from."""


@dataclass(frozen=True)
class Row:
    """How a library's random numbers are reached: objects that hold them, or a function to seed."""

    module: str
    holders: Callable[[Any], dict[str, Any]] | None = None
    seed: Callable[[Any, int], None] | None = None


ROWS = (
    Row("imgaug.random", holders=lambda module: {"global": module.get_global_rng()}),
    Row("cv2", seed=lambda module, word: module.setRNGSeed(word & 0x7FFFFFFF)),
)


def holders() -> dict[str, Any]:
    """Objects of imported libraries that hold generators."""
    return {
        f"{row.module} {name}": obj
        for row in ROWS
        if row.holders is not None and (module := sys.modules.get(row.module)) is not None
        for name, obj in row.holders(module).items()
    }


def seeds() -> list[Callable[[int], None]]:
    """Functions that seed generators of imported libraries."""

    def bound(row: Row, module: Any) -> Callable[[int], None]:
        return lambda word: row.seed(module, word) if row.seed is not None else None

    return [
        bound(row, sys.modules[row.module])
        for row in ROWS
        if row.seed is not None and row.module in sys.modules
    ]
