"""Deterministic training, automatic checkpoints and bit-exact resume.

    import detrain

    with detrain.run(seed=7) as run:
        for epoch in run.loop(range(10), scheduler=scheduler):
            for x, y in run.loop(loader, model=model, optimizer=optimizer):
                ...

Importing this imports no framework.
"""

from __future__ import annotations

__version__ = "0.1.0"

from detrain.errors import (
    DamagedCheckpoint,
    DetrainError,
    NewerFormat,
    ProgramChanged,
    ResumeMismatch,
    RunLocked,
    UncapturableState,
    UnknownRun,
    UsageError,
)
from detrain.frameworks.keys import Key, Keyed, key, keyed
from detrain.runtime.api import Loop, Run, loop, run

__all__ = [
    "DamagedCheckpoint",
    "DetrainError",
    "Key",
    "Keyed",
    "Loop",
    "NewerFormat",
    "ProgramChanged",
    "ResumeMismatch",
    "Run",
    "RunLocked",
    "UncapturableState",
    "UnknownRun",
    "UsageError",
    "__version__",
    "key",
    "keyed",
    "loop",
    "run",
]
