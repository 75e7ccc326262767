from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from detrain.frameworks import find
from detrain.runtime.seeding import Seeding


def draws():
    return random.random(), np.random.rand(), torch.rand(1).item()


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed=seed)
    torch.manual_seed(seed)


@pytest.fixture
def typed():
    seedings = []

    def watch(seed):
        seeding = Seeding(seed)
        for name in ("python", "numpy", "torch"):
            seeding.watch(find.by_name(name).seeders())
        seedings.append(seeding)
        return seeding

    yield watch
    for each in seedings:
        each.stop()


def drawn(typed, seed, own):
    seeding = typed(seed)
    seed_all(own)
    found = draws()
    seeding.stop()
    return found


def test_a_typed_seed_rules_the_seeds_of_the_program(typed):
    one, two = drawn(typed, 1, 0), drawn(typed, 2, 0)
    assert all(a != b for a, b in zip(one, two, strict=True))
    assert drawn(typed, 1, 0) == one


def test_different_seeds_of_the_program_stay_different(typed):
    assert all(a != b for a, b in zip(drawn(typed, 1, 0), drawn(typed, 1, 1), strict=True))


def test_without_it_the_program_seeds_as_it_likes(typed):
    seed_all(3)
    plain = draws()
    drawn(typed, 1, 0)
    seed_all(3)
    assert draws() == plain


def test_a_function_that_calls_another_mixes_once(typed, monkeypatch):
    seen = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seen.append)
    seeding = typed(1)
    torch.manual_seed(5)
    seeding.stop()
    assert seen == [torch.initial_seed()]
