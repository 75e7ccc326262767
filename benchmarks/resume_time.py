"""Time from the start of an epoch's iterator to the first new batch, far into the epoch.

    python benchmarks/resume_time.py [batches]

DETrain's skip by index, against consuming the batches and, where installed, torchdata's
StatefulDataLoader and accelerate's `skip_first_batches`. Samples are real work: each is normalised.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.data import DataLoader, Dataset

from detrain.frameworks.torch import loader as adapter
from detrain.runtime.advance import advancing

BATCH = 4


class Samples(Dataset[torch.Tensor]):
    """Vectors that are normalised when they are asked for."""

    def __init__(self, count: int) -> None:
        self.data = torch.arange(count * 16, dtype=torch.float32).reshape(count, 16)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> torch.Tensor:
        sample = self.data[index]
        return (sample - sample.mean()) / sample.std()


def fresh(count: int, kind: Any = DataLoader) -> Any:
    torch.manual_seed(1)
    return kind(Samples(count), batch_size=BATCH, shuffle=True)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = action()
    return time.perf_counter() - started, found


def by_index(count: int, skip: int) -> Any:
    source = advancing(fresh(count))
    source.advance(skip, source.origin())
    return next(source.iterator)


def by_consuming(count: int, skip: int) -> Any:
    iterator = iter(fresh(count))
    for _ in range(skip):
        next(iterator)
    return next(iterator)


def by_torchdata(count: int, skip: int) -> tuple[float, Any]:
    from torchdata.stateful_dataloader import StatefulDataLoader

    loader = fresh(count, StatefulDataLoader)
    iterator = iter(loader)
    for _ in range(skip):
        next(iterator)
    state = loader.state_dict()
    again = fresh(count, StatefulDataLoader)
    again.load_state_dict(state)
    return timed(lambda: next(iter(again)))


def by_accelerate(count: int, skip: int) -> Any:
    from accelerate.data_loader import skip_first_batches

    return next(iter(skip_first_batches(fresh(count), skip)))


def main() -> None:
    skip = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    count = (skip + 10) * BATCH
    table = Table(box=None, pad_edge=False)
    for title in ("way", f"seconds at batch {skip}", "at batch 0", "same batch"):
        table.add_column(title, justify="left" if title == "way" else "right")
    expected = by_consuming(count, skip)
    rows: list[tuple[str, Callable[[int], tuple[float, Any]]]] = [
        ("consuming the batches", lambda k: timed(lambda: by_consuming(count, k))),
        ("accelerate skip_first_batches", lambda k: timed(lambda: by_accelerate(count, k))),
        ("torchdata StatefulDataLoader", lambda k: by_torchdata(count, k)),
        ("DETrain", lambda k: timed(lambda: by_index(count, k))),
    ]
    for name, way in rows:
        if name == "DETrain":
            adapter.install()
        try:
            seconds, batch = way(skip)
            start, _ = way(0)
        except ImportError:
            table.add_row(name, "not installed", "", "")
            continue
        table.add_row(name, f"{seconds:.3f}", f"{start:.3f}", str(torch.equal(batch, expected)))
    Console().print(table)


if __name__ == "__main__":
    main()
