"""What DETrain costs an iteration, against the plain loop, in one run.

    python benchmarks/loop_overhead.py

Without checkpoints: what is measured is the hook itself with its trace (one event a step). The
plain loop is interleaved with the others, so that the machine's moods reach all of them.
"""

from __future__ import annotations

import ast
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.data import DataLoader, TensorDataset

import detrain
from detrain.frameworks.torch import loader as adapter
from detrain.instrument.find import find_training
from detrain.instrument.rewrite import rewrite
from detrain.runtime.api import active
from detrain.runtime.hooks import Hooks

ITEMS, ROUNDS = 30_000, 9

FOUND = """
def for_loop(iterable):
    for _ in iterable:
        update.backward()

def while_loop(iterable):
    i = 0
    while i < len(iterable):
        update.backward()
        i += 1
"""


class Update:
    """Stands for an update, so that the loops are found; does nothing."""

    def backward(self) -> None:
        pass


def functions(*, rewritten: bool) -> dict[str, Any]:
    tree = ast.parse(FOUND)
    if rewritten:
        training = find_training({"bench": ast.parse(FOUND)})
        tree = rewrite(tree, "bench", training.is_on_the_way)
    space: dict[str, Any] = {"update": Update()}
    exec(compile(tree, __file__, "exec"), space)
    return space


def timed(body: Callable[[Any], None], iterable: Any) -> float:
    """Microseconds an iteration; what it takes to enter and leave a loop is taken off."""
    once = iterable[:1] if isinstance(iterable, range) else ()
    times = []
    for each in (once, iterable):
        started = time.perf_counter()
        body(each)
        times.append(time.perf_counter() - started)
    return (times[1] - times[0]) / (len(iterable) - len(once)) * 1e6


def main() -> None:
    os.environ["DETRAIN_RUNS"] = tempfile.mkdtemp(prefix="detrain-bench-")
    loader = DataLoader(TensorDataset(torch.zeros(ITEMS // 10, 4)), batch_size=None)
    plain, found = functions(rewritten=False), functions(rewritten=True)
    table = Table(box=None, pad_edge=False)
    for title in ("loop", "plain µs/iter", "with DETrain", "added", "limit"):
        table.add_column(title, justify="left" if title == "loop" else "right")

    with detrain.run(seed=1, save_every="never", digest_every=0, fresh=True) as run:
        session = active()
        assert session is not None
        Hooks(session).start()

        def written(iterable: Any) -> None:
            for _ in run.loop(iterable):
                found["update"].backward()

        def recorded(iterable: Any) -> None:
            for _ in run.loop(iterable):
                found["update"].backward()
                run.record(loss=0.5)

        numbers = range(ITEMS)
        cases = {
            "for, found by DETrain": (numbers, plain["for_loop"], found["for_loop"], "2"),
            "while, found by DETrain": (numbers, plain["while_loop"], found["while_loop"], "2"),
            "for over a DataLoader, found": (loader, plain["for_loop"], found["for_loop"], "50"),
            "run.loop": (numbers, plain["for_loop"], written, "50"),
            "run.loop and run.record": (numbers, plain["for_loop"], recorded, "50"),
        }
        for label, (iterable, without, within, limit) in cases.items():
            a, b = [], []
            for _ in range(ROUNDS):
                adapter.uninstall()
                a.append(timed(without, iterable))
                adapter.install()
                b.append(timed(within, iterable))
            left, right = statistics.median(a), statistics.median(b)
            table.add_row(label, f"{left:.2f}", f"{right:.2f}", f"{right - left:.2f}", limit)
        Hooks(session).stop()
    Console().print(table)


if __name__ == "__main__":
    main()
