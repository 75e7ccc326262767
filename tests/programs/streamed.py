"""Trains on an iterable dataset that is split among its workers, and draws for each element.

    streamed.py WORKERS [KIND] [EPOCHS] [CONTEXT]

It prints a digest of each batch and of the parameters. In `ranges` each worker has a part of the
numbers, in `strides` every so-many-th line of a file, and `carried` makes each element from the one
before, so that elements can't be had without those before them.
"""

from __future__ import annotations

import hashlib
import math
import random
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

COUNT, SIZE = 46, 4


class Ranges(IterableDataset):
    def __init__(self):
        self.generator = np.random.default_rng(3)

    def sample(self, index):
        drawn = [index / COUNT, random.random(), np.random.rand(), torch.rand(()).item()]
        return torch.tensor([*drawn, self.generator.random()], dtype=torch.float32)

    def __iter__(self):
        info = get_worker_info()
        start, end = 0, COUNT
        if info is not None:
            part = math.ceil(COUNT / info.num_workers)
            start = info.id * part
            end = min(start + part, COUNT)
        for index in range(start, end):
            yield self.sample(index)


class Strides(Ranges):
    def __init__(self):
        super().__init__()
        self.path = Path("numbers.txt")

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        salt = torch.rand(()).item()
        with self.path.open() as file:
            for number, line in enumerate(file):
                if number % step != first:
                    continue
                sample = self.sample(int(line))
                yield sample + salt


class Carried(Ranges):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        before = torch.zeros(5)
        for index in range(first, COUNT, step):
            before = self.sample(index) + 0.5 * before
            yield before


KINDS = {"ranges": Ranges, "strides": Strides, "carried": Carried}


def collate(samples):
    return torch.stack(samples) * torch.rand(())


def loader(kind, workers, **settings):
    return DataLoader(
        KINDS[kind](), batch_size=SIZE, num_workers=workers, collate_fn=collate, **settings
    )


def digest(tensor):
    return hashlib.sha256(tensor.numpy().tobytes()).hexdigest()[:12]


def main(workers, kind="ranges", epochs=3, context=None):
    if not Path("numbers.txt").exists():
        Path("numbers.txt").write_text("".join(f"{n}\n" for n in range(COUNT)))
    torch.manual_seed(3)
    settings = {"multiprocessing_context": context} if int(workers) and context else {}
    batches = loader(kind, int(workers), **settings)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(int(epochs)):
        for number, batch in enumerate(batches):
            loss = model(batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, number, digest(batch), digest(model.weight.detach()))


if __name__ == "__main__":
    main(*sys.argv[1:])
