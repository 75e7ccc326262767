"""A loader whose samples, batches and sampler draw from everything that can be drawn from.

`batches` gives the digests of the batches of three epochs for some settings of the loader.
"""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

MODULE_RNG = np.random.default_rng(11)


class Noise:
    """A transform with generators of its own, one of them made when it is first needed."""

    def __init__(self):
        self.python, self.legacy, self.late = random.Random(3), np.random.RandomState(4), None

    def __call__(self, value):
        if self.late is None:
            self.late = np.random.default_rng()
        return value + self.python.random() + self.legacy.normal() + self.late.random()


class Samples(Dataset):
    def __init__(self):
        self.generator = np.random.default_rng(5)
        self.transforms = [lambda_free, Noise()]

    def __len__(self):
        return 29

    def __getitem__(self, index):
        drawn = [index, random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn()]
        drawn += [torch.rand(()).item(), torch.randn(()).item(), torch.initial_seed() / 2**64]
        drawn += [self.generator.random(), np.random.default_rng().random(), MODULE_RNG.random()]
        drawn += [random.Random().random()]
        for transform in self.transforms:
            drawn.append(transform(index))
        return torch.tensor(drawn, dtype=torch.float64)


def lambda_free(value):
    return value * random.uniform(0.5, 2)


def collate(samples):
    return torch.stack(samples) * torch.rand(()) + np.random.rand() + random.random()


def init(worker):
    random.seed(worker)
    np.random.seed(worker)
    torch.manual_seed(worker)
    torch.utils.data.get_worker_info().dataset.generator = np.random.default_rng(worker)


class Wandering:
    """A sampler of the program's own that draws for each batch, also from a generator it holds."""

    def __init__(self, generator):
        self.generator = generator

    def __iter__(self):
        for _ in range(7):
            first = random.randrange(29) + int(torch.randint(9, ()))
            yield [(first + int(step)) % 29 for step in self.generator.integers(0, 29, 4)]

    def __len__(self):
        return 7


def loader(sampler="shuffled", **settings):
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(7)
    options = {"batch_size": 4, "shuffle": True, "generator": None}
    if sampler == "own generator":
        options["generator"] = torch.Generator().manual_seed(2)
    elif sampler == "replacement":
        generator = torch.Generator().manual_seed(2)
        drawn = torch.utils.data.RandomSampler(range(29), replacement=True, generator=generator)
        options = {"batch_size": 4, "sampler": drawn}
    elif sampler == "wandering":
        options = {"batch_sampler": Wandering(np.random.default_rng(6))}
    elif sampler == "no batches":
        options = {"batch_size": None, "shuffle": True, "collate_fn": None}
    if settings.get("num_workers"):
        settings.setdefault("worker_init_fn", init)
    return DataLoader(Samples(), **{"collate_fn": collate, **options, **settings})


def batches(sampler="shuffled", epochs=3, stop=None, **settings):
    """Digests of all batches, and of what the program itself draws after each and each epoch."""
    made = loader(sampler, **settings)
    found = []
    for _ in range(epochs):
        for number, batch in enumerate(made):
            found.append(digest(batch.numpy().tobytes(), own_draws()))
            if number == stop:
                break
        found.append(digest(own_draws()))
    return found


def own_draws():
    numbers = [random.random(), np.random.rand(), torch.rand(()).item()]
    return np.array(numbers).tobytes()


def digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(batches(**json.loads(sys.argv[1]))))
