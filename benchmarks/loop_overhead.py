"""What `run.loop` costs an iteration, against the plain loop, in one run.

    python benchmarks/loop_overhead.py

Without checkpoints: what is measured is the hook itself with its trace (one line a step).
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.data import DataLoader, TensorDataset

import detrain
from detrain.frameworks.torch import loader as adapter

ITEMS, ROUNDS = 20_000, 7


def timed(body: Callable[[], None]) -> float:
    started = time.perf_counter()
    body()
    return time.perf_counter() - started


def main() -> None:
    os.environ["DETRAIN_RUNS"] = tempfile.mkdtemp(prefix="detrain-bench-")
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.zeros(ITEMS // 10, 4))
    loader = DataLoader(data, batch_size=None)

    with detrain.run(seed=1, save_every="never", digest_every=0, fresh=True) as run:

        def plain(iterable: object) -> None:
            adapter.uninstall()
            for _ in iterable:  # type: ignore[attr-defined]
                pass
            adapter.install()

        def hooked(iterable: object) -> None:
            for _ in run.loop(iterable, model=model, optimizer=optimizer):  # type: ignore[arg-type]
                pass

        def recorded(iterable: object) -> None:
            for _ in run.loop(iterable, model=model, optimizer=optimizer):  # type: ignore[arg-type]
                run.record(loss=0.5)

        cases = {
            "range, run.loop": (range(ITEMS), ITEMS, hooked),
            "range, run.loop and run.record": (range(ITEMS), ITEMS, recorded),
            "DataLoader, run.loop": (loader, len(loader), hooked),
        }
        table = Table(box=None, pad_edge=False)
        for title in ("loop", "plain µs/iter", "with DETrain", "added", "limit"):
            table.add_column(title, justify="left" if title == "loop" else "right")
        for label, (iterable, count, body) in cases.items():
            without, within = [], []
            for _ in range(ROUNDS):  # interleaved, so that the machine's moods reach both
                without.append(timed(lambda it=iterable: plain(it)) / count * 1e6)
                within.append(timed(lambda it=iterable, b=body: b(it)) / count * 1e6)
            a, b = statistics.median(without), statistics.median(within)
            table.add_row(label, f"{a:.2f}", f"{b:.2f}", f"{b - a:.2f}", "50")
    Console().print(table)


if __name__ == "__main__":
    main()
