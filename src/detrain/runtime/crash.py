"""Killing a run at a named step of a commit, for tests of what survives.

`DETRAIN_CRASH_AT=manifest-synced:3` kills the process with SIGKILL when that point is reached for
the third time, `DETRAIN_CRASH_AT=step=60` at the end of the run's 60th step, whichever process does
it. Without it nothing happens.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from detrain.checkpoint.commit import CRASH_POINTS
from detrain.checkpoint.durable import ignore
from detrain.errors import UsageError

__all__ = ["VARIABLE", "crash_point"]

VARIABLE = "DETRAIN_CRASH_AT"


def crash_point() -> Callable[[str], None]:
    """What to call at each point: does nothing, unless the environment says where to crash."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return ignore
    point, _, count = wanted.partition(":")
    if (point not in CRASH_POINTS and not point.startswith("step=")) or not (
        count or "1"
    ).isdigit():
        raise UsageError(f"{VARIABLE}: expected one of {', '.join(CRASH_POINTS)}, found {wanted!r}")
    left = int(count or "1")

    def reached(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reached
