"""Killing a run at a chosen point, for tests of what survives.

`DETRAIN_CRASH_AT=manifest-synced:3` kills the process with SIGKILL when that point of a commit is
reached for the third time, `step=60` at the end of the run's 60th step, `train.py@120:2` when line
120 of that file is about to run for the second time. Without it nothing happens.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from detrain.checkpoint.commit import CRASH_POINTS
from detrain.checkpoint.compaction import COMPACT_POINTS
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
    file, _, line = point.partition("@")
    known = point in (*CRASH_POINTS, *COMPACT_POINTS) or point.startswith("step=") or line.isdigit()
    if not known or not (count or "1").isdigit():
        raise UsageError(
            f"{VARIABLE}: expected step=N, FILE@LINE or one of {', '.join(CRASH_POINTS)}, "
            f"found {wanted!r}"
        )
    left = int(count or "1")
    if line:
        _watch_line(file, int(line), lambda: reached(point))

    def reached(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reached


def _watch_line(file: str, line: int, about_to_run: Callable[[], None]) -> None:
    """Have `about_to_run` called before each run of a line of a file of this name."""

    def entered(frame: FrameType, _event: str, _value: object) -> Any:
        return inside if Path(frame.f_code.co_filename).name == file else None

    def inside(frame: FrameType, event: str, _value: object) -> Any:
        if event == "line" and frame.f_lineno == line:
            about_to_run()
        return inside

    sys.settrace(entered)
