"""What keyed random numbers cost a sample, against loading without them, in one run.

    python benchmarks/keyed_rng.py

- an empty dataset: what is left is the cost of keying itself, for torch, numpy and `random`;
- the same with the three generators seeded anew for each sample, as programs do by hand;
- the augmentation of examples/torch/02_resnet_augment.py, loading alone, and its training.

All are interleaved, so that the machine's moods reach each of them. Processor seconds of one
process; the smallest of many rounds for single samples; for the example the median of pairs, with
their quartiles: where these lie far apart, the machine was too busy to tell.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import nn
from torch.utils.data import DataLoader, Dataset

from detrain.frameworks.following import Following
from detrain.frameworks.torch import loader as adapter
from detrain.frameworks.torch.keyed import KeyedDataset, Task
from detrain.rng import Address

BATCH, ROUNDS = 64, 1000
RESULTS = Path(__file__).parent / "results" / "keyed_rng.md"
EXAMPLE = Path(__file__).parents[1] / "examples" / "torch" / "02_resnet_augment.py"


class Empty(Dataset[int]):
    """Samples that cost nothing."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> int:
        return index


class Reseeded(Empty):
    """Samples that seed all generators by hand."""

    def __getitem__(self, index: int) -> int:
        torch.manual_seed(index)
        np.random.seed(index)
        random.seed(index)
        return index


def same(data: Any) -> Any:
    return data


def seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def per_sample() -> dict[str, float]:
    """Microseconds a sample, above those of the loop that loads without keys."""
    indices = list(range(BATCH))
    task = Task(7, 3, 0, indices, None)
    empty, reseeded = Empty(), Reseeded()
    keyed = KeyedDataset(empty, same, batched=True)
    followed = Following()
    ways: dict[str, Callable[[], Any]] = {
        "without keys": lambda: [empty[index] for index in indices],
        "keyed": lambda: keyed[task],
        "the three generators alone": lambda: [
            followed.at(Address(7, 1, 0, index)) for index in indices
        ],
        "seeded by hand": lambda: [reseeded[index] for index in indices],
    }
    best = dict.fromkeys(ways, float("inf"))
    for round_number in range(ROUNDS):
        for name, way in ways.items():
            if name == "the three generators alone":
                followed.begin()
            if name != "seeded by hand" or not round_number % 10:
                best[name] = min(best[name], seconds(way))
            if name == "the three generators alone":
                followed.end()
    found = {name: 1e6 * least / BATCH for name, least in best.items()}
    return {name: each - found["without keys"] for name, each in found.items()}


def example() -> Any:
    spec = importlib.util.spec_from_file_location("resnet_augment", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loading(module: Any) -> tuple[float, list[float]]:
    """The example's loader without workers: µs a sample without keys, and ratios with keys."""
    loader = DataLoader(module.ShapesDataset(768, seed=1, augment=True), batch_size=48)
    return paired(lambda: [None for _ in loader], 768, rounds=15)


def training(module: Any) -> tuple[float, list[float]]:
    """Epochs of the example, likewise."""
    loader = DataLoader(module.ShapesDataset(768, seed=1, augment=True), batch_size=48)
    net = module.ResNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    def epoch() -> None:
        for inputs, targets in loader:
            loss = criterion(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return paired(epoch, 768, rounds=15)


def paired(work: Callable[[], Any], samples: int, rounds: int) -> tuple[float, list[float]]:
    plain, keyed = [], []
    for _ in range(rounds):
        plain.append(seconds(work))
        adapter.install()
        try:
            keyed.append(seconds(work))
        finally:
            adapter.uninstall()
    ratios = [b / a for a, b in zip(plain, keyed, strict=True)]
    return 1e6 * statistics.median(plain) / samples, statistics.quantiles(ratios, n=4)


def main() -> None:
    torch.set_num_threads(1)
    cost = per_sample()
    module = example()
    rows = [
        ("| what | µs a sample | |", ""),
        ("| --- | ---: | --- |", ""),
        (f"| keyed: torch, numpy and `random` | {cost['keyed']:.2f} |", "limit 8 |"),
        (f"| of this, the generators alone | {cost['the three generators alone']:.2f} |", "|"),
        (
            f"| seeded by hand | {cost['seeded by hand']:.1f} |",
            f"{cost['seeded by hand'] / cost['keyed']:.0f} times the cost; limit 10 |",
        ),
    ]
    for name, measure in (("loading alone", loading), ("training", training)):
        plain, (low, middle, high) = measure(module)
        more = [f"{100 * (each - 1):+.1f}" for each in (middle, low, high)]
        said = f"{more[0]} % (quartiles {more[1]} to {more[2]}); limit 2 %"
        rows.append((f"| 02_resnet_augment, {name} | {plain:.1f} |", "without keys |"))
        rows.append((f"| the same, keyed | {plain * middle:.1f} |", f"{said} |"))
    cuda = torch.version.cuda or "none"
    facts = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, numpy {np.__version__}, torch {torch.__version__} "
        f"(CUDA: {cuda}; with it, `torch.manual_seed` also seeds its devices), "
        f"{os.getloadavg()[0]:.0f} processes at work on average"
    )
    text = "\n".join(" ".join(part for part in row if part) for row in rows)
    Console().print(text, highlight=False)
    RESULTS.write_text(
        "# What keyed random numbers cost\n\n"
        f"By `python benchmarks/keyed_rng.py`, which says what is measured. {facts}.\n\n{text}\n"
    )


if __name__ == "__main__":
    main()
