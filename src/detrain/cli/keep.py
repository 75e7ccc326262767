"""`detrain keep RUN STEP [NAME]` and `detrain unkeep RUN NAME`: protect a checkpoint by name."""

from __future__ import annotations

from pathlib import Path

import click

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.objects import Objects
from detrain.checkpoint.protected import PROTECTED, protect, protected, protecting
from detrain.checkpoint.store import LocalStore
from detrain.errors import UsageError
from detrain.runs.choose import find_run, runs_address
from detrain.runs.looking import looking_at

__all__ = ["keep", "unkeep"]


@click.command(short_help="Protect a checkpoint by a name.")
@click.argument("run", metavar="RUN")
@click.argument("step", type=int)
@click.argument("name", required=False)
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
def keep(run: str, step: int, name: str | None, root: str | None) -> None:
    """Keep the checkpoint of STEP until `detrain unkeep`, under NAME, by default its number.

    The run may be at work meanwhile.
    """
    folder = find_run(looking_at(root, run), run).checkpoints
    store, label = LocalStore(folder), name or str(step)
    with protecting(folder):
        if step not in manifest_steps(store):
            have = ", ".join(map(str, manifest_steps(store))) or "none"
            raise UsageError(f"run {run!r} has no checkpoint of step {step}; there are: {have}")
        read_checkpoint(store, step)  # one that can't be read is not worth keeping
        names = protected(folder)
        if names.get(label, step) != step:
            raise UsageError(
                f"{label!r} is the name of step {names[label]} already: choose another one, or "
                f"`detrain unkeep {run} {label}`"
            )
        protect(folder, {**names, label: step})
        _tell_store(root, run, folder)
    print(f"the checkpoint of step {step} is kept as {label!r}")


@click.command(short_help="No longer protect a checkpoint.")
@click.argument("run", metavar="RUN")
@click.argument("name")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
def unkeep(run: str, name: str, root: str | None) -> None:
    """Let the checkpoint that is kept as NAME go when its time comes."""
    folder = find_run(looking_at(root, run), run).checkpoints
    with protecting(folder):
        names = protected(folder)
        if name not in names:
            have = ", ".join(sorted(names)) or "none"
            raise UsageError(f"run {run!r} keeps no checkpoint as {name!r}; there are: {have}")
        step = names.pop(name)
        protect(folder, names)
        _tell_store(root, run, folder)
    print(f"the checkpoint of step {step} is no longer kept as {name!r}")


def _tell_store(root: str | None, run: str, folder: Path) -> None:
    """Of a run in a store, the list there is the valid one; its courier brings it to the run."""
    address = runs_address(root)
    if address is not None:
        Objects(address).put(f"{run}/checkpoints/{PROTECTED}", folder / PROTECTED)
