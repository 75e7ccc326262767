"""Which run a command line means: an unfinished one of the same command, or a new one."""

from __future__ import annotations

import os
import re
import secrets
import time
from pathlib import Path

from detrain.checkpoint.objects import is_address
from detrain.errors import ProgramChanged, UnknownRun, UsageError
from detrain.runs.folder import RunFolder
from detrain.runs.records import RunRecord
from detrain.runs.remote import staging_root
from detrain.trace.digest import digest_text

__all__ = ["Wanted", "all_runs", "choose", "find_run", "runs_address", "runs_root", "script_digest"]

import msgspec


class Wanted(msgspec.Struct, frozen=True):
    """What was typed: the program, and which run of it."""

    script: Path
    argv: tuple[str, ...]
    root: Path
    seed: int | None = None
    overrides: bool = False
    """Whether the seed changes what the program seeds by itself, too."""
    name: str | None = None
    resume: str | None = None
    fresh: bool = False
    accept_changes: bool = False
    trust_files: bool = False
    version: str = ""
    choices: tuple[str, ...] = ()
    """Options that may change the bits."""
    address: str | None = None
    """The store of which `root` is this machine's copy."""

    @property
    def base(self) -> Path:
        """What the script's path is relative to: the same on every machine."""
        return self.root.parent if self.address is None else Path.cwd()


def runs_address(given: str | os.PathLike[str] | None = None) -> str | None:
    """The address of the store that runs live in; None if they live in a folder."""
    found = str(given or os.environ.get("DETRAIN_RUNS") or "")
    return found.rstrip("/") if is_address(found) else None


def runs_root(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder of all runs: as given, or `DETRAIN_RUNS`, or `.detrain` here.

    For a store it is the folder in which this machine works on its runs.
    """
    address = runs_address(given)
    if address is not None:
        return staging_root(address)
    return Path(given or os.environ.get("DETRAIN_RUNS") or ".detrain").absolute()


def script_digest(script: Path) -> str:
    """The digest of a program's text."""
    return digest_text(script.read_bytes()) if script.is_file() else ""


def all_runs(root: Path) -> list[RunFolder]:
    """All runs, oldest first. A folder without a record is none: its creation was cut short."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    found = [RunFolder(path) for path in folders if (path / "run.json").is_file()]
    return sorted(found, key=lambda run: (run.record().created, run.name))


def find_run(root: Path, name: str) -> RunFolder:
    """The run of that name; `UnknownRun` if there is none."""
    for run in all_runs(root):
        if run.name == name:
            return run
    raise UnknownRun(name, str(root), tuple(run.name for run in all_runs(root)))


def choose(wanted: Wanted) -> tuple[RunFolder, RunRecord]:
    """The run to work on; it is created if it is new. `ProgramChanged` if it can't go on."""
    if wanted.fresh and wanted.resume:
        raise UsageError("--fresh and --resume exclude each other: leave one out")
    script = os.path.relpath(wanted.script, wanted.base)
    if wanted.resume:
        run = find_run(wanted.root, wanted.resume)
        status = run.status()
        if status == "complete":
            raise UsageError(f"run {run.name!r} is complete: there is nothing to resume")
        return run, _checked(run, wanted, script)
    if not wanted.fresh:
        for run in reversed(all_runs(wanted.root)):
            record = run.record()
            same = record.command == (script, *wanted.argv)
            named = wanted.name is None or run.name == wanted.name
            if same and named and run.status() != "complete":
                return run, _checked(run, wanted, script)
    return _create(wanted, script)


def _checked(run: RunFolder, wanted: Wanted, script: str) -> RunRecord:
    """The record of a run that is to be resumed, if the program is still the same."""
    record = run.record()
    changes = []
    attempts = run.attempts()
    before = attempts[-1].script_digest if attempts else record.script_digest
    if record.script != script:
        changes.append(f"the script: it was {record.script}, it is {script}")
    elif before != script_digest(wanted.script):
        changes.append(f"the text of {script}")
    if record.argv != wanted.argv:
        was, now = " ".join(record.argv) or "none", " ".join(wanted.argv) or "none"
        changes.append(f"the arguments: they were {was}, they are {now}")
    if wanted.seed is not None and wanted.seed != record.seed:
        changes.append(f"the seed: it was {record.seed}, it is {wanted.seed}")
    if record.choices != wanted.choices:
        was, now = " ".join(record.choices) or "none", " ".join(wanted.choices) or "none"
        changes.append(f"the options that decide bits: they were {was}, they are {now}")
    if changes and not wanted.accept_changes:
        raise ProgramChanged(run.name, tuple(changes))
    return record


def _create(wanted: Wanted, script: str) -> tuple[RunFolder, RunRecord]:
    wanted.root.mkdir(parents=True, exist_ok=True)
    if wanted.name is not None:
        if not re.fullmatch(r"[\w][\w.+-]*", wanted.name):
            raise UsageError(f"name: expected letters, digits and . + - _, found {wanted.name!r}")
        path = wanted.root / wanted.name
        if (path / "run.json").exists():
            raise UsageError(
                f"there is a run named {wanted.name!r} already, of another command or complete: "
                "choose another name, or --resume it"
            )
        path.mkdir(exist_ok=True)
    else:
        path = _next_folder(wanted.root, re.sub(r"[^\w.+-]", "-", wanted.script.stem) or "run")
    seed = secrets.randbits(48) if wanted.seed is None else wanted.seed
    record = RunRecord(
        name=path.name,
        script=script,
        argv=wanted.argv,
        seed=seed,
        created=time.time(),
        script_digest=script_digest(wanted.script),
        detrain=wanted.version,
        overrides=wanted.overrides,
        choices=wanted.choices,
    )
    folder = RunFolder(path)
    folder.write_record(record)
    return folder, record


def _next_folder(root: Path, stem: str) -> Path:
    """The first free `stem-N`; making the directory is what claims it."""
    taken = [re.fullmatch(rf"{re.escape(stem)}-(\d+)", path.name) for path in root.iterdir()]
    number = max((int(found[1]) for found in taken if found), default=0) + 1
    while True:
        try:
            (root / f"{stem}-{number}").mkdir()
        except FileExistsError:
            number += 1
        else:
            return root / f"{stem}-{number}"
