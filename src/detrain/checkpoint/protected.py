"""Checkpoints that somebody protected, by name: `best` → step 1200.

They lie in one file beside the manifests. `detrain keep` writes it while a run may be at work on
the same folder; both hold a lock between looking and doing, so that a checkpoint is not given up
while it is being protected.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from detrain.checkpoint.durable import write_durably
from detrain.checkpoint.regular import read_regular
from detrain.errors import DamagedCheckpoint

__all__ = ["PROTECTED", "decode_protected", "protect", "protected", "protecting"]

PROTECTED = "protected.json"
_LARGEST = 1 << 20


def decode_protected(raw: bytes, file: str) -> dict[str, int]:
    """Read names and steps; `DamagedCheckpoint` names `file` if they can't be."""
    try:
        return msgspec.json.decode(raw, type=dict[str, int])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedCheckpoint(file, f"expected names and steps: {error}") from error


def protected(folder: Path) -> dict[str, int]:
    """The steps that are protected, by their names."""
    path = folder / PROTECTED
    return decode_protected(read_regular(path, _LARGEST), str(path)) if path.exists() else {}


def protect(folder: Path, names: Mapping[str, int]) -> None:
    """Protect these and no others. Call it inside `protecting`."""
    body = msgspec.json.encode(dict(names), order="sorted")
    write_durably(folder / PROTECTED, [body + b"\n"], "protected")


@contextlib.contextmanager
def protecting(folder: Path) -> Iterator[None]:
    """Hold the lock: nothing is given up, and nothing protected, by others meanwhile."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
