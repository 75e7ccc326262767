"""What keyed random numbers cost a sample, against loading without them, in one run.

    python benchmarks/keyed_rng.py

- an empty dataset: what is left is the cost of keying itself, for torch, numpy and `random`;
- the same with the three generators seeded anew for each sample, as programs do by hand;
- the augmentation of examples/torch/02_resnet_augment.py: loading alone, its training with all in
  one process, and its training as it is.

All are interleaved, those of the example batch by batch, so that the machine's moods reach each of
them. Processor seconds of one process, and the smallest of many rounds: what disturbs a machine
only adds to them. Beside that stand the quartiles of what keys add to single epochs as they come.
With workers, it is the median of pairs of epochs.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator
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
ROUNDS_OF_EPOCHS = 50
_END = "end"
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

    def epoch() -> Iterator[None]:
        for _ in loader:
            yield
            yield

    return paired(epoch, 768, rounds=ROUNDS_OF_EPOCHS)


def training(module: Any) -> tuple[float, list[float]]:
    """Epochs of the example, likewise."""
    loader = DataLoader(module.ShapesDataset(768, seed=1, augment=True), batch_size=48)
    net = module.ResNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    def epoch() -> Iterator[None]:
        for inputs, targets in loader:
            yield
            loss = criterion(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield

    return paired(epoch, 768, rounds=ROUNDS_OF_EPOCHS)


def as_it_is(module: Any) -> tuple[float, list[float]]:
    """Epochs of the example with its two workers, by the clock: what its user waits for."""
    data = module.ShapesDataset(768, seed=1, augment=True)
    loader = DataLoader(data, batch_size=48, shuffle=True, num_workers=2)
    net = module.ResNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    def epoch(install: Callable[[], None]) -> float:
        install()
        started = time.perf_counter()
        for inputs, targets in loader:
            loss = criterion(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return time.perf_counter() - started

    epoch(adapter.install)
    ways = (adapter.uninstall, adapter.install)
    plain, ratios = [], []
    for number in range(60):
        # By turns in another order, so that none is always the second.
        spent = {way: epoch(way) for way in (ways if number % 2 else reversed(ways))}
        plain.append(spent[adapter.uninstall])
        ratios.append(spent[adapter.install] / spent[adapter.uninstall])
    adapter.uninstall()
    return 1e6 * statistics.median(plain) / len(data), statistics.quantiles(ratios, n=4)


def paired(
    epoch: Callable[[], Iterator[None]], samples: int, rounds: int
) -> tuple[float, list[float]]:
    """Two epochs at a time, batch by batch in turns, one of them with keys.

    An epoch yields when a batch is loaded, and when it is used. Keys make no difference to the
    second, so that its moods are kept out of what they add.
    """
    plain: list[list[float]] = []
    keyed: list[list[float]] = []
    for number in range(rounds + 1):
        first, second = timed(epoch, plain_first=bool(number % 2))
        if number:  # the first one warms up
            plain.append(first)
            keyed.append(second)
    # A part of an epoch is what it takes undisturbed. The first includes its beginning.
    best = [list(map(min, zip(*each, strict=True))) for each in (plain, keyed)]
    whole, added = sum(best[0]), sum(best[1][::2]) - sum(best[0][::2])
    pairs = [(sum(b[::2]) - sum(a[::2])) / sum(a) for a, b in zip(plain, keyed, strict=True)]
    low, _, high = statistics.quantiles(pairs, n=4)
    return 1e6 * whole / samples, [1 + low, 1 + added / whole, 1 + high]


def timed(
    epoch: Callable[[], Iterator[None]], *, plain_first: bool
) -> tuple[list[float], list[float]]:
    """The seconds of all parts of two epochs, of which the second has keys."""
    spent: tuple[list[float], list[float]] = [], []
    under_way = epoch(), epoch()
    ended = 0
    while ended < 2:
        ended = 0
        for each in (0, 1) if plain_first else (1, 0):
            # A loader is keyed or not for good when its first batch is asked for.
            adapter.install() if each and not spent[each] else adapter.uninstall()
            for _ in range(2):
                started = time.process_time()
                going = next(under_way[each], _END) is None
                spent[each].append(time.process_time() - started)
                if not going:
                    ended += 1
                    break
    return spent


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
    for name, measure in (
        ("loading alone", loading),
        ("training, without workers", training),
        ("training as it is, two workers, by the clock", as_it_is),
    ):
        plain, (low, middle, high) = measure(module)
        more = [f"{100 * (each - 1):+.1f}" for each in (middle, low, high)]
        limit = "; limit 2 %" if measure is not loading else ""
        said = f"{more[0]} % (quartiles {more[1]} to {more[2]}){limit}"
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
