"""Runs that live in a store: what of them lies where, and how a machine gets a copy.

Every file of a run's folder is an object of the same name below `<address>/<run>/`. A machine works
on a copy in its cache, where a checkpoint is committed first; `courier` uploads from there. Which
local file is which object is remembered by the file's size and time and the object's mark, so that
nothing is moved twice.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from detrain.checkpoint.durable import write_durably
from detrain.runs.records import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.checkpoint.objects import Found, Objects

__all__ = [
    "LEASE",
    "Synced",
    "fetch",
    "fetch_heads",
    "is_local_only",
    "present",
    "runs_in",
    "staging_root",
    "step_of",
    "version_here",
    "version_there",
    "view_root",
]

LEASE = "lease.json"
"""Who works on a run, in the store only."""

_LOCAL_ONLY = ("lock", "owner.json", "outbox/", "scratch/", "synced.json", LEASE)
_OUTCOME = "outcome.json"
_MANIFEST = re.compile(r"checkpoints/(\d{10})\.json", re.ASCII)
_RUN = re.compile(r"\w[\w.+-]*", re.ASCII)

Version = tuple[bool, int]
"""How far a run is: whether it is complete, and the step of its newest checkpoint."""


def staging_root(address: str) -> Path:
    """The folder in which this machine works on the runs of a store."""
    given = os.environ.get("DETRAIN_CACHE")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    base = Path(given or Path(cache) / "detrain").expanduser().absolute()
    plain = re.sub(r"[^\w.-]+", "-", address.rstrip("/"))
    digest = hashlib.blake2b(address.rstrip("/").encode(), digest_size=4).hexdigest()
    return base / f"{plain}-{digest}"


def view_root(address: str) -> Path:
    """The folder for copies that are only looked at: what the store has, whatever is done here."""
    return staging_root(address).with_name(f"{staging_root(address).name}-view")


def is_local_only(path: str) -> bool:
    """Whether a file of a run's folder belongs to the machine, not to the run."""
    return path.startswith(_LOCAL_ONLY) or path.endswith(".staged")


def step_of(path: str) -> int | None:
    """The step, if a path in a run's folder is that of a manifest."""
    found = _MANIFEST.fullmatch(path)
    return int(found[1]) if found else None


def version_here(folder: Path) -> Version:
    """How far the copy on this machine is."""
    raw = (folder / _OUTCOME).read_bytes() if (folder / _OUTCOME).is_file() else b""
    steps = [step_of(f"checkpoints/{path.name}") for path in folder.glob("checkpoints/*.json")]
    return _is_complete(raw), max((step for step in steps if step is not None), default=-1)


def version_there(objects: Objects, run: str, found: Mapping[str, Found]) -> Version:
    """How far the run in the store is."""
    raw = b""
    if _OUTCOME in found:
        try:
            raw = objects.read(f"{run}/{_OUTCOME}", 1 << 24)
        except FileNotFoundError:  # another attempt has just begun
            raw = b""
    steps = [step_of(path) for path in found]
    return _is_complete(raw), max((step for step in steps if step is not None), default=-1)


def _is_complete(outcome: bytes) -> bool:
    try:
        return msgspec.json.decode(outcome, type=Outcome).status == "complete"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


class Synced:
    """Which files of a folder are which objects."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            raw = (folder / "synced.json").read_bytes()
            self._known = msgspec.json.decode(raw, type=dict[str, tuple[int, int, str]])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._known = {}

    def are_equal(self, path: str, found: Found | None) -> bool:
        """Whether a file here is known to be that object."""
        known = self._known.get(path)
        return found is not None and known == (*self._stamp(path), found.mark)

    def note(self, path: str, mark: str, stamp: tuple[int, int] | None = None) -> None:
        """A file here, as it was when it had that stamp, is an object now."""
        self._known[path] = (*(stamp or self._stamp(path)), mark)

    def write(self) -> None:
        """Remember it for later."""
        self._folder.mkdir(parents=True, exist_ok=True)
        known = {path: each for path, each in self._known.items() if (self._folder / path).exists()}
        write_durably(self._folder / "synced.json", [msgspec.json.encode(known)], "synced")

    def _stamp(self, path: str) -> tuple[int, int]:
        try:
            facts = os.lstat(self._folder / path)
        except OSError:
            return (-1, -1)
        return facts.st_size, facts.st_mtime_ns


def _stays_below(path: str) -> bool:
    """Whether a path, which anybody may have chosen, stays in the folder that it is put below."""
    return "\0" not in path and not {"", ".", ".."} & {*path.split("/")}


def runs_in(objects: Objects, below: str = "") -> dict[str, dict[str, Found]]:
    """The runs of a store, each with the objects of its folder by their paths in it."""
    runs: dict[str, dict[str, Found]] = {}
    for name, found in objects.list(below).items():
        run, _, path = name.partition("/")
        if path and _RUN.fullmatch(run) and _stays_below(path):
            runs.setdefault(run, {})[path] = found
    return {run: files for run, files in runs.items() if "run.json" in files}


def fetch_heads(objects: Objects, root: Path) -> None:
    """Bring what tells runs apart to this machine, so that one can be chosen.

    A run that is further here than there is left as it is.
    """
    for run, files in runs_in(objects).items():
        folder = root / run
        there = version_there(objects, run, files)
        if (folder / "run.json").exists() and there <= version_here(folder):
            continue
        heads = ["run.json", "attempts.jsonl", *([_OUTCOME] if there[0] else [])]
        for path in heads:
            if path in files:
                objects.get(f"{run}/{path}", folder / path)


def fetch(objects: Objects, folder: Path, *, arrays: bool = True, keep_newer: bool = False) -> None:
    """Make a folder what the store has of a run. Manifests go first and come last.

    Without `arrays`, large files are left where they are. `keep_newer` leaves a copy alone that is
    as far as the store's, or further.
    """
    run = folder.name
    files = runs_in(objects, run).get(run, {})
    if not files:
        return
    if keep_newer and version_there(objects, run, files) <= version_here(folder):
        return
    synced = Synced(folder)
    there = {path: found for path, found in files.items() if not is_local_only(path)}
    gone = [path for path in _files(folder) if path not in there and not is_local_only(path)]
    if keep_newer:  # what is fetched anew may belong to other manifests than the ones here
        gone += [path for path in _files(folder) if step_of(path) is not None and path in there]
    for path in sorted(gone, key=lambda path: step_of(path) is None):
        (folder / path).unlink()
    for path in sorted(there, key=lambda path: (step_of(path) is not None, path)):
        if synced.are_equal(path, there[path]) or (not arrays and _is_large(path)):
            continue
        objects.get(f"{run}/{path}", folder / path)
        synced.note(path, there[path].mark)
    synced.write()


def _is_large(path: str) -> bool:
    return path.endswith(".safetensors") or path.startswith("aside/")


def _files(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() or path.is_symlink()
    ]


def present(folder: Path, wanted: Callable[[str], bool]) -> list[str]:
    """The files of a run's folder that are wanted in the store, sorted."""
    return [
        path
        for path in _files(folder)
        if not is_local_only(path) and wanted(path) and not (folder / path).is_symlink()
    ]
