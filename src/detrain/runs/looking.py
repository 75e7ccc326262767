"""Where runs are looked at: the folder itself, or a copy of what a store has of them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from detrain.checkpoint.objects import Objects
from detrain.runs.choose import runs_address, runs_root
from detrain.runs.remote import LEASE, fetch, runs_in, view_root

__all__ = ["looking_at"]


def looking_at(given: str | None, run: str | None = None, *, arrays: bool = False) -> Path:
    """The folder of all runs to look at; of a store, brought up to date first.

    With a `run`, that one alone is; with `arrays`, with all that it holds.
    """
    address = runs_address(given)
    if address is None:
        return runs_root(given)
    objects, root = Objects(address), view_root(address)
    found = runs_in(objects, run or "")
    for name, files in found.items():
        for _ in range(5):
            try:
                fetch(objects, root / name, arrays=arrays)
                break
            except FileNotFoundError:  # the run has just given something up
                continue
        (root / name / LEASE).unlink(missing_ok=True)
        if LEASE in files:
            with contextlib.suppress(FileNotFoundError):
                objects.get(f"{name}/{LEASE}", root / name / LEASE)
    if run is None and root.is_dir():
        for path in root.iterdir():
            if path.name not in found and (path / "run.json").exists():
                (path / "run.json").unlink()  # it is no longer in the store
    return root
