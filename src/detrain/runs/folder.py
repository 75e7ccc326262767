"""A run's folder: what lies where in it, and what it tells about the run.

run.json          who the run is                 attempts.jsonl    the processes that worked on it
outcome.json      how the last attempt ended     lock, owner.json  who works on it now
trace.jsonl       an event for each step         stdout.log, stderr.log   the program's output
checkpoints/      manifests and data files
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.durable import write_durably
from detrain.checkpoint.protected import protected
from detrain.checkpoint.regular import check_own_files, read_regular
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint
from detrain.runs.lease import BEAT, read_lease
from detrain.runs.lock import is_locked
from detrain.runs.records import Attempt, Outcome, RunRecord
from detrain.runs.remote import LEASE
from detrain.trace.log import read_trace

__all__ = ["RunFolder", "summary"]

_LARGEST_RECORD = 1 << 24


class RunFolder:
    """Paths and records of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.trace = path / "trace.jsonl"
        self.checkpoints = path / "checkpoints"

    def record(self) -> RunRecord:
        """Who the run is; `DamagedCheckpoint` if that can't be read."""
        path = self.path / "run.json"
        try:
            return msgspec.json.decode(read_regular(path, _LARGEST_RECORD), type=RunRecord)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedCheckpoint(str(path), f"can't be read: {error}") from error

    def write_record(self, record: RunRecord) -> None:
        """Write down who the run is."""
        write_durably(self.path / "run.json", [_pretty(record)], "record")

    def attempts(self) -> list[Attempt]:
        """All attempts, oldest first; a torn last line is left out."""
        path = self.path / "attempts.jsonl"
        found = []
        for line in path.read_bytes().splitlines() if path.exists() else []:
            try:
                found.append(msgspec.json.decode(line, type=Attempt))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
        return found

    def add_attempt(self, attempt: Attempt) -> None:
        """Write down that an attempt works on the run from now on."""
        path = self.path / "attempts.jsonl"
        torn = path.exists() and not path.read_bytes().endswith(b"\n")
        with path.open("ab") as file:
            file.write((b"\n" if torn else b"") + msgspec.json.encode(attempt) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def outcome(self) -> Outcome | None:
        """How the last attempt ended; None if it did not come to an end."""
        path = self.path / "outcome.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Outcome)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def write_outcome(self, outcome: Outcome) -> None:
        """Write down how the attempt ended."""
        write_durably(self.path / "outcome.json", [_pretty(outcome)], "outcome")

    def clear_outcome(self) -> None:
        """A new attempt begins: how the last one ended no longer holds."""
        (self.path / "outcome.json").unlink(missing_ok=True)

    def status(self) -> str:
        """*running*, *complete*, *failed*, or *interrupted*. Not for the owning process."""
        if is_locked(self.path) or self._is_leased():
            return "running"
        outcome = self.outcome()
        return "interrupted" if outcome is None else outcome.status

    def _is_leased(self) -> bool:
        """In a copy of what a store has: whether a process somewhere gives signs of life."""
        path = self.path / LEASE
        holder = read_lease(path.read_bytes()) if path.is_file() else None
        if holder is None or holder.released:
            return False
        return time.time() - max(holder.seen, holder.since) < 5 * BEAT


def summary(folder: RunFolder) -> dict[str, Any]:
    """What `detrain show` tells of a run, as plain data."""
    check_own_files(folder.path, folder.checkpoints.name)
    record, outcome, attempts = folder.record(), folder.outcome(), folder.attempts()
    trace = read_trace(folder.trace)
    store = LocalStore(folder.checkpoints)
    checkpoints, names = [], protected(folder.checkpoints)
    for step in manifest_steps(store):
        try:
            manifest = read_checkpoint(store, step)
        except DamagedCheckpoint as error:
            checkpoints.append({"step": step, "damaged": str(error)})
            continue
        files = manifest.data_files()
        checkpoints.append(
            {
                "step": step,
                "bytes": sum(files.values()),
                "left_out": manifest.levels[-1].state.left_out,
                "created": manifest.created,
                "compacted": any(state.packed for state in manifest.states()),
                "names": sorted(name for name, at in names.items() if at == step),
            }
        )
    resumes = [attempt.resumed_at for attempt in attempts if attempt.resumed_at is not None]
    return {
        "name": folder.name,
        "status": folder.status(),
        "script": record.script,
        "argv": list(record.argv),
        "seed": record.seed,
        "created": record.created,
        "steps": trace.events[-1][0].step if trace.events else 0,
        "checkpoints": checkpoints,
        "resumes": resumes,
        "state_digest": outcome.state_digest if outcome else None,
        "trace_digest": trace.end.chain or None,
        "exit_code": outcome.exit_code if outcome else None,
        "traceback": outcome.traceback if outcome else "",
        "diverged_at": outcome.diverged_at if outcome else None,
        "fingerprint": attempts[-1].fingerprint if attempts else {},
    }


def _pretty(record: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record, order="deterministic"), indent=2) + b"\n"
