"""`detrain.key` and `detrain.keyed`, in threads and processes."""

from __future__ import annotations

import copy
import multiprocessing
import random
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import detrain
from detrain.frameworks import find
from detrain.rng import Permutation


def numbers(task):
    key = detrain.key("test", 7, task)
    return (
        torch.rand(3, generator=key.torch()).tolist(), key.numpy().normal(size=3).tolist(),
        key.python().random(), key.permutation(100)[5],
    )  # fmt: skip


def test_keys_give_the_same_numbers_in_threads_and_processes():
    expected = [numbers(task) for task in range(8)]
    assert len({str(each) for each in expected}) == 8
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(numbers, range(8))) == expected
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        assert list(pool.map(numbers, reversed(range(8)))) == expected[::-1]


def test_generators_of_a_key_are_independent_objects():
    key = detrain.key(1)
    one, other = key.python(), key.python()
    assert one is not other
    assert one.random() == other.random() != one.random()


def test_the_kinds_of_generators_of_a_key_have_nothing_in_common():
    one = detrain.key("noise", 7)
    python = set(one.python().getstate()[1][:624])
    in_memory = one.torch().get_state()[24 : 24 + 8 * 624].numpy().view(np.uint64)
    assert len(python & set(in_memory.tolist())) == 0
    drawn = one.numpy().bit_generator.random_raw(312).view(np.uint32)
    assert len(set(drawn.tolist()) & (python | set(in_memory.tolist()))) == 0


def test_a_part_of_a_key():
    assert detrain.key(1).key("a", 2) == detrain.key(1, "a", 2) != detrain.key(1, "a", 3)
    assert hash(detrain.key(1)) == hash(detrain.key(1))
    assert repr(detrain.key(1, "a")) == "Key(1, 'a')"
    assert isinstance(detrain.key(1).permutation(3), Permutation)


def test_global_generators_follow_a_key():
    before = find.positions_now()
    with detrain.key("a").following():
        inside = random.random()
    with detrain.key("a").following():
        assert random.random() == inside
    assert find.positions_now() == before
    find.by_name("numpy").release()


def test_the_examples_of_the_page_run():
    page = (Path(__file__).parents[2] / "docs" / "randomness.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2
    assert names["simulate"](3) == names["simulate"](3) != names["simulate"](4)
    assert names["data"][2] == names["data"][2] != names["data"][3] - 1
    find.by_name("numpy").release()


class Samples:
    kind = "samples"

    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        drawn = [index, random.random(), np.random.rand(), torch.rand(()).item()]
        return torch.tensor([*drawn, self.rng.random()], dtype=torch.float64)


def load(dataset, order, **settings):
    loader = DataLoader(dataset, sampler=order, batch_size=3, **settings)
    rows = torch.cat(list(loader))
    return rows[rows[:, 0].argsort()]


@pytest.mark.filterwarnings("ignore:This process")
def test_a_keyed_dataset_needs_no_run():
    dataset = detrain.keyed(Samples(), seed=7)
    assert dataset.kind == "samples"
    assert len(dataset) == 12
    expected = load(dataset, range(12))
    assert torch.equal(load(dataset, [*reversed(range(12))]), expected)
    assert torch.equal(load(dataset, range(12), num_workers=2), expected)
    assert torch.equal(load(copy.deepcopy(dataset), range(12)), expected)
    dataset.set_epoch(1)
    assert not torch.equal(load(dataset, range(12)), expected)
    assert not torch.equal(load(detrain.keyed(Samples(), seed=8), range(12)), expected)
    assert not torch.equal(load(Samples(), range(12)), load(Samples(), range(12)))
    find.by_name("numpy").release()
