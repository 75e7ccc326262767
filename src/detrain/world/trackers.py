"""Experiment trackers: libraries that keep a record for the program, in files of their own.

What they ask the world and write is treated as if the program itself did it, so that on resume they
go on with the record of the first attempt instead of starting a second one. Those with a thread
that writes are made to write everything out before a cut.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

__all__ = ["flush_trackers", "go_on_with", "is_tracker"]

_PLACES = tuple(
    place.replace("/", os.sep)
    for place in (
        "/tensorboard/summary/writer/",
        "/tensorboard/compat/tensorflow_stub/",
        "/torch/utils/tensorboard/",
        "/tensorboardX/",
    )
)

_THREADS = {"_AsyncWriterThread": "_record_writer", "_EventLoggerThread": "_ev_writer"}
"""Classes of threads that write, and where each has what it writes to."""


@cache
def is_tracker(filename: str) -> bool:
    """Whether a file of code belongs to a tracker."""
    return any(place in filename for place in _PLACES)


def flush_trackers() -> None:
    """Have all that the program logged so far written to the trackers' files."""
    for thread in threading.enumerate():
        writer = getattr(thread, _THREADS.get(type(thread).__name__, ""), None)
        queue: Any = getattr(thread, "_queue", None)
        if writer is not None and queue is not None:
            queue.join()
            writer.flush()


def stay_silent() -> None:
    """Have trackers that are services send nothing: what they would send is there already."""
    os.environ["WANDB_MODE"] = "disabled"


def go_on_with(run: str) -> None:
    """Tell trackers that are services the name of the run, under which a resumed one goes on.

    What the user has set stays. Must be called before the program imports them, in a process that
    is this run's alone.
    """
    if "WANDB_RUN_ID" not in os.environ:
        os.environ["WANDB_RUN_ID"] = run
        os.environ.setdefault("WANDB_RESUME", "allow")
