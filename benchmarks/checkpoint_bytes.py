"""How much a checkpoint holds, against what the program needs to go on.

    python benchmarks/checkpoint_bytes.py [--why] [number…]

Each program of examples/torch runs twice for a few dozen steps, with its plan and with `--no-plan`,
and is killed after the same checkpoint. *Saved* are the array bytes of all data files that the
newest manifest names: the cut, the loops around it, the loops that were finished. *Needed* is found
without asking the plan: in the checkpoint of the run without one, which holds all that can be
reached, it is the parameters and buffers of modules, the state of optimizers, and the arrays that
the program carries besides, which are written down below; each array once.

`--why` lists what is saved with the plan beyond that, by level and variable.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.manifest import Manifest, SavedState
from detrain.checkpoint.store import LocalStore
from detrain.state import StateTree
from detrain.testing import WarmProcess

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE.parent / "examples" / "torch").glob("[01]*.py"))
RESULTS = HERE / "results" / "checkpoint_bytes.md"
LIMIT = 1.05

# As in tests/e2e/test_zoo.py: draws in loader workers are outside the promise yet.
ARGS = {"02": ["--num-workers", "0"], "14": ["--num-workers", "0"]}

# Steps between checkpoints, and the step after which the program is killed: in its second epoch
# or later, so that the loops around the cut have something to hold.
EVERY = {"08": (40, 170), "10": (15, 47), "15": (150, 400)}
USUAL = (10, 62)

CARRIED: dict[str, dict[str, str]] = {
    "07": {r"fake_[ab]_buffer\.data": "pools of earlier pictures, which the discriminators see"},
    "08": {r"/hidden\b": "the hidden state goes from one piece of text to the next"},
    "09": {r"__main__/[XY]$": "the batch of the next step is fetched at the end of this one"},
    "10": {r"\.grad$": "gradients of several batches add up to one update"},
    "15": {
        r"memory\.memory": "the replay memory",
        r"env\.state|__main__/state": "where the cart and its pole are",
    },
}
"""Arrays besides parameters, buffers and optimizer state, by program: a pattern of paths, and why
the next steps can't be done without them."""


@dataclass(frozen=True)
class Checkpoint:
    """The newest checkpoint of a run, and the sizes of its arrays by file and name."""

    manifest: Manifest
    arrays: dict[str, dict[str, int]]

    @staticmethod
    def newest(folder: Path) -> Checkpoint:
        store = LocalStore(folder)
        manifest = read_checkpoint(store, manifest_steps(store)[-1])
        return Checkpoint(
            manifest,
            {
                file: {name: len(data) for name, data in store.arrays(file, size).items()}
                for file, size in manifest.data_files().items()
            },
        )

    @property
    def saved(self) -> int:
        """Bytes of all arrays that it needs, each file once."""
        return sum(sum(sizes.values()) for sizes in self.arrays.values())

    def size(self, state: SavedState, name: str) -> int:
        """Bytes of an array of a state, which may lie in another's file."""
        lender = state.borrowed.get(name)
        if lender is not None:
            return self.arrays[lender.file][lender.name]
        return self.arrays[state.file][name]

    @property
    def cut(self) -> SavedState:
        """The state at the innermost loop."""
        return self.manifest.levels[-1].state

    @property
    def at(self) -> str:
        """Where the loops stood."""
        return ", ".join(str(level.iteration) for level in self.manifest.levels)

    def states(self) -> Iterator[tuple[str, SavedState]]:
        """Each file's state, with what it is."""
        seen: set[str] = set()
        named = [(f"cut {self.manifest.levels[-1].site}", self.cut)]
        named += [(f"around {each.site}", each.state) for each in self.manifest.levels[:-1]]
        loops = [loop for level in self.manifest.levels for loop in level.finished]
        named += [
            (f"finished {loop.site}", loop.exit)
            for loop in (*self.manifest.finished, *loops)
            if loop.exit is not None
        ]
        for what, state in named:
            if state.file not in seen:
                seen.add(state.file)
                yield what, state


def needed(tree: StateTree, patterns: dict[str, str]) -> set[str]:
    """The arrays of a state that the program can't go on without."""
    found: set[str] = set()
    for node in tree.nodes:
        fields = dict(node.fields)
        held = []
        if {"_parameters", "_buffers"} <= fields.keys():  # a module
            held = [fields["_parameters"], fields["_buffers"]]
        elif {"state", "param_groups"} <= fields.keys():  # an optimizer
            held = [fields["state"]]
        found.update(*(_leaves(tree, ref) for ref in held))
    for path, node in zip(tree.paths, tree.nodes, strict=True):
        if node.array is not None and any(re.search(pattern, path) for pattern in patterns):
            found.add(node.array.leaf)
    return found


def _leaves(tree: StateTree, ref: object) -> Iterator[str]:
    """The arrays in a dictionary or a list, and in those inside it."""
    if not isinstance(ref, int):
        return
    node = tree.nodes[ref]
    if node.array is not None:
        yield node.array.leaf
        return
    for inner in node.items:
        yield from _leaves(tree, inner)


def run(warm: WarmProcess, script: Path, folder: Path, *options: str) -> Checkpoint:
    """Run a program until it is killed."""
    number = script.name[:2]
    every, last = EVERY.get(number, USUAL)
    common = ("--seed", "4", "--name", "it", "--save-every", str(every), "--digest-every", "0")
    argv = ["run", *common, *options, str(script), *ARGS.get(number, [])]
    ended = warm.run(argv, folder, {"DETRAIN_CRASH_AT": f"step={last}"})
    if ended.code != -9:
        sys.exit(f"{script.name} was not killed but ended with {ended.code}:\n{ended.stderr}")
    return Checkpoint.newest(folder / ".detrain" / "it" / "checkpoints")


def beyond(planned: Checkpoint, patterns: dict[str, str]) -> Counter[str]:
    """What is saved beyond what is needed, by level and variable."""
    found: Counter[str] = Counter()
    for what, state in planned.states():
        wanted = needed(state.tree, patterns) if what.startswith("cut") else set[str]()
        paths = {
            node.array.leaf: path
            for path, node in zip(state.tree.paths, state.tree.nodes, strict=True)
            if node.array is not None
        }
        for name, size in planned.arrays[state.file].items():
            if name not in wanted:
                variable = re.sub(r"\[[^]]*\]|\(\d+\)", "[]", paths.get(name, name))
                found[f"{what}: {variable}"] += size
    return found


def facts() -> str:
    """The machine, in a line."""
    return (
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--why", action="store_true")
    parser.add_argument("numbers", nargs="*")
    chosen = parser.parse_args()
    console = Console()
    rows: list[tuple[str, ...]] = []
    titles = (
        "program", "loops at", "needed", "with plan", "ratio", "without plan", "ratio",
    )  # fmt: skip
    scripts = [s for s in PROGRAMS if not chosen.numbers or s.name[:2] in chosen.numbers]
    with (
        WarmProcess(["torch._dynamo", "numpy", "tqdm"]) as warm,
        tempfile.TemporaryDirectory(prefix="detrain-bench-") as folder,
    ):
        for script in scripts:
            patterns = CARRIED.get(script.name[:2], {})
            planned = run(warm, script, Path(folder, script.stem, "plan"))
            full = run(warm, script, Path(folder, script.stem, "full"), "--no-plan")
            names = needed(full.cut.tree, patterns)
            wanted = sum(full.size(full.cut, name) for name in names)
            ratio = planned.saved / wanted
            rows.append(
                (
                    script.stem, planned.at, f"{wanted:,}", f"{planned.saved:,}", f"{ratio:.2f}",
                    f"{full.saved:,}", f"{full.saved / wanted:.2f}",
                )
            )  # fmt: skip
            console.print(*rows[-1], style="red" if ratio > LIMIT else "")
            if chosen.why:
                for what, size in beyond(planned, patterns).most_common(12):
                    console.print(f"    {size:>10,}  {what}", highlight=False, soft_wrap=True)
    table = Table(*titles, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if not chosen.numbers:
        write(titles, rows)


def write(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """The table as markdown."""
    lines = [
        "# Bytes of a checkpoint",
        "",
        f"By `python benchmarks/checkpoint_bytes.py`, which says what the columns mean. {facts()}.",
        "",
        f"| {' | '.join(titles)} |",
        f"| {' | '.join('---' if at < 2 else '---:' for at in range(len(titles)))} |",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
