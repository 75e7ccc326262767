"""Public helpers for tests of programs that run under DETrain.

`resume_everywhere` kills and resumes a program at several steps and compares everything: what
`detrain prove` does. `WarmProcess` starts programs from a process that has imported the framework
already, so that a test can start, kill and resume a program many times a minute. `CRASH_POINTS` and
`COMPACT_POINTS` are the places where `DETRAIN_CRASH_AT` can kill it. `faulty` makes a disk fail.
"""

from __future__ import annotations

from detrain.checkpoint.commit import CRASH_POINTS
from detrain.checkpoint.compaction import COMPACT_POINTS
from detrain.testing.faults import Fault, faulty
from detrain.testing.prove import Kill, Proof, resume_everywhere
from detrain.testing.warm import Child, WarmProcess

__all__ = [
    "COMPACT_POINTS",
    "CRASH_POINTS",
    "Child",
    "Fault",
    "Kill",
    "Proof",
    "WarmProcess",
    "faulty",
    "resume_everywhere",
]
