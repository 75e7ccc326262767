"""A copy of a run, in which its steps can be done again without touching the run.

Large files are linked where the file system allows: nobody writes into them, and one that has two
names is never written over.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from detrain.checkpoint.commit import manifest_name, manifest_steps, read_checkpoint
from detrain.checkpoint.regular import check_own_files
from detrain.checkpoint.store import LocalStore
from detrain.errors import UsageError
from detrain.runs.folder import RunFolder
from detrain.runs.lease import is_alive

if TYPE_CHECKING:
    from detrain.checkpoint.manifest import Manifest

__all__ = ["checkpoint_before", "copy_run", "place_for_copies"]

_FILES = (
    "run.json",
    "attempts.jsonl",
    "answers.jsonl",
    "files.jsonl",
    "trace.jsonl",
    "stdout.log",
    "stderr.log",
)
_FOLDERS = ("aside", "listings")

_OFTEN = 5
"""A run that is at work may give up a checkpoint while it is copied: then another one is."""


def place_for_copies(root: Path) -> Path:
    """A folder beside the runs for the copies of this process. What killed ones left is removed."""
    host = socket.gethostname()
    for path in root.glob(f".replay-{host}-*"):
        number = path.name.rpartition("-")[2]
        if number.isdigit() and not is_alive(int(number)):
            shutil.rmtree(path, ignore_errors=True)
    place = root / f".replay-{host}-{os.getpid()}"
    try:
        shutil.rmtree(place, ignore_errors=True)  # of another process that had this number
        place.mkdir()
    except OSError:  # a folder that is only to be read
        return Path(tempfile.mkdtemp(prefix="detrain-replay-"))
    return place


def checkpoint_before(run: RunFolder, step: int) -> Manifest | None:
    """The newest checkpoint that has no more steps behind it; None if there is none."""
    store = LocalStore(run.checkpoints)
    steps = [each for each in manifest_steps(store) if each <= step]
    return read_checkpoint(store, steps[-1]) if steps else None


def copy_run(run: RunFolder, step: int, into: Path) -> tuple[RunFolder, Manifest | None]:
    """Copy a run, with its newest checkpoint at or before a step and no other."""
    check_own_files(run.path, run.checkpoints.name)
    copy = RunFolder(into / run.name)
    for _ in range(_OFTEN):
        shutil.rmtree(copy.path, ignore_errors=True)
        copy.checkpoints.mkdir(parents=True)
        manifest = checkpoint_before(run, step)
        try:
            _copy_checkpoint(run, copy, manifest)
        except FileNotFoundError:
            continue
        _copy_records(run, copy)
        return copy, manifest
    raise UsageError(
        f"run {run.name!r} gives up its checkpoints faster than they can be copied: "
        "`detrain keep` one, or wait until the run is over"
    )


def _copy_checkpoint(run: RunFolder, copy: RunFolder, manifest: Manifest | None) -> None:
    if manifest is None:
        return
    for name in (*manifest.data_files(), manifest_name(manifest.step)):
        _link(run.checkpoints / name, copy.checkpoints / name)


def _copy_records(run: RunFolder, copy: RunFolder) -> None:
    for name in _FILES:
        if (run.path / name).exists():
            shutil.copyfile(run.path / name, copy.path / name)
    for name in _FOLDERS:
        if (run.path / name).is_dir():
            shutil.copytree(run.path / name, copy.path / name, copy_function=_link, symlinks=True)


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target, follow_symlinks=False)
