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

from detrain.checkpoint.commit import manifest_name, manifest_steps, read_checkpoint
from detrain.checkpoint.regular import check_own_files
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint
from detrain.runs.folder import RunFolder
from detrain.runs.lease import is_alive

__all__ = ["copy_run", "place_for_copies"]

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


def copy_run(run: RunFolder, step: int, into: Path) -> RunFolder:
    """Copy a run, with its checkpoints up to a step: if the newest is damaged, the one before it
    is taken, as for a resume.
    """
    check_own_files(run.path, run.checkpoints.name)
    copy = RunFolder(into / run.name)
    copy.checkpoints.mkdir(parents=True)
    for each in manifest_steps(LocalStore(run.checkpoints)):
        if each <= step:
            _copy_checkpoint(run.checkpoints, copy.checkpoints, each)
    _copy_records(run, copy)
    return copy


def _copy_checkpoint(source: Path, target: Path, step: int) -> None:
    """Copy what there is of a checkpoint. One that the run gives up meanwhile is left out."""
    manifest = manifest_name(step)
    try:
        _link(source / manifest, target / manifest)
        named = read_checkpoint(LocalStore(target), step).data_files()
    except (FileNotFoundError, DamagedCheckpoint):
        return
    for name in named:
        try:
            if not (target / name).exists():
                _link(source / name, target / name)
        except FileNotFoundError:
            if not (source / manifest).exists():
                (target / manifest).unlink(missing_ok=True)


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
