"""`detrain export RUN --to X`: what a checkpoint holds, as others read it."""

from __future__ import annotations

import importlib
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from detrain.capture.forms import FORMS
from detrain.capture.sound import check_tree
from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.durable import write_durably
from detrain.checkpoint.format import ArrayBytes, encode_header
from detrain.checkpoint.manifest import SavedState
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint, UsageError
from detrain.runs.choose import find_run
from detrain.runs.looking import looking_at

__all__ = ["export"]

_ENDINGS = {".safetensors": "safetensors", ".pt": "pt", ".pth": "pt", ".bin": "pt"}


@click.command(short_help="Write a checkpoint as others read it.")
@click.argument("run", metavar="RUN")
@click.option("--step", type=int, help="Of which step [the newest checkpoint].")
@click.option("--to", "target", required=True, type=click.Path(path_type=Path), metavar="PATH",
              help="X.safetensors, X.pt, or a folder (see --as).")  # fmt: skip
@click.option("--as", "kind", type=click.Choice(["safetensors", "pt", "dcp", "hf"]),
              help="Format [by PATH's ending; folders: dcp, or hf if it ends in hf].")  # fmt: skip
@click.option("--object", "chosen", metavar="NAME", help="This module alone, without its name.")
@click.option("--all", "all_", is_flag=True, help="Everything, not the weights alone.")
@click.option("--force", is_flag=True, help="Write over what is there.")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
def export(
    run: str,
    step: int | None,
    target: Path,
    kind: str | None,
    chosen: str | None,
    all_: bool,
    force: bool,
    root: str | None,
) -> None:
    """Write the weights in a checkpoint of RUN under the names that `state_dict` gives them.

    Of several modules each name begins with the module's. Everything is verified before it is
    written; nothing of the program is run.
    """
    store = LocalStore(find_run(looking_at(root, run, arrays=True), run).checkpoints)
    at = _step(store, run, step)
    form = kind or _kind(target)
    if all_ and (chosen is not None or form == "hf"):
        raise UsageError("--all goes with neither --object nor a hf folder: leave one out")
    if target.exists() and not force:
        raise UsageError(f"{target} is there already: choose another path, or --force")
    state, arrays = _read(store, at)
    torch_side: Any = importlib.import_module("detrain.frameworks.torch.export")
    files: Any = importlib.import_module("detrain.frameworks.torch.files")
    left_out: tuple[str, ...] = ()
    if all_ and form == "safetensors":
        count = _write_arrays(target, state, arrays, {"run": run, "step": str(at)})
    elif all_:
        found, left_out = torch_side.everything(state.tree, arrays.__getitem__)
        count = len(found)
        files.write_plain(target, found) if form == "pt" else files.write_dcp(target, found)
    else:
        found = torch_side.weights(state.tree, arrays.__getitem__, chosen)
        count = len(found)
        if form == "pt":
            files.write_plain(target, found)
        elif form == "dcp":
            files.write_dcp(target, found)
        else:
            into = target / "model.safetensors" if form == "hf" else target
            into.parent.mkdir(parents=True, exist_ok=True)
            _write(into, files.as_bytes(found), {"format": "pt"})
            config = torch_side.config_of(state.tree, chosen) if form == "hf" else None
            if config is not None:
                text = json.dumps(config, indent=2).encode() + b"\n"
                write_durably(target / "config.json", [text], "config")
    what = "objects" if all_ and form != "safetensors" else "arrays"
    print(f"{count} {what} of step {at} of run {run} are in {target}")
    if left_out:
        print(f"not plain data, and left out: {', '.join(left_out)}")


def _step(store: LocalStore, run: str, step: int | None) -> int:
    """The step that is asked for, if there is a checkpoint of it."""
    steps = manifest_steps(store)
    at = step if step is not None else (steps[-1] if steps else None)
    if at is None or at not in steps:
        have = ", ".join(map(str, steps)) or "none"
        raise UsageError(f"run {run!r} has no checkpoint of step {step}; there are: {have}")
    return at


def _read(store: LocalStore, step: int) -> tuple[SavedState, dict[str, memoryview]]:
    """The state at the innermost loop of a checkpoint, verified.

    If it is compacted just now, its files are others a moment later.
    """
    while True:
        state = read_checkpoint(store, step).levels[-1].state
        check_tree(state.tree, FORMS, state.file)
        try:
            return state, verified_arrays(store, state)
        except DamagedCheckpoint:
            if read_checkpoint(store, step).levels[-1].state == state:
                raise


def _kind(target: Path) -> str:
    if target.suffix in _ENDINGS:
        return _ENDINGS[target.suffix]
    if target.suffix:
        raise UsageError(
            f"{target}: expected a path that ends in {', '.join(_ENDINGS)}, or a folder, found "
            f"{target.suffix!r}. --as says what it is to be"
        )
    return "hf" if target.name.endswith("hf") else "dcp"


def _write_arrays(
    target: Path, state: SavedState, arrays: Mapping[str, memoryview], facts: dict[str, str]
) -> int:
    """All arrays, by the names that they have in the checkpoint."""
    known = {node.array.leaf: node.array for node in state.tree.nodes if node.array is not None}
    found = [
        ArrayBytes(name, known[name].dtype, known[name].shape, data)
        for name, data in sorted(arrays.items())
        if name in known
    ]
    _write(target, found, facts)
    return len(found)


def _write(target: Path, arrays: list[ArrayBytes], facts: dict[str, str]) -> None:
    """A safetensors file with something said about it."""
    header = encode_header(arrays)
    entries = {"__metadata__": facts, **json.loads(header[8:])}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    parts = [struct.pack("<Q", len(text)), text, *(array.data for array in arrays)]
    write_durably(Path(os.fspath(target)), parts, "export")
