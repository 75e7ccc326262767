"""Iterable datasets: keyed draws, shuffle buffers, and going on in the middle."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from detrain.frameworks import find
from detrain.frameworks.torch import loader as adapter
from detrain.runtime.advance import advancing


@pytest.fixture(autouse=True)
def installed():
    adapter.install()
    yield
    adapter.uninstall()
    find.by_name("numpy").release()


class Shuffled(IterableDataset):
    """Numbers through a shuffle buffer, with noise; each worker has its part."""

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        buffer = []
        for number in range(first, 40, step):
            buffer.append(number)
            if len(buffer) == 8:
                yield self.noisy(buffer.pop(random.randrange(8)))
        random.shuffle(buffer)
        yield from map(self.noisy, buffer)

    def noisy(self, number):
        drawn = [number, torch.rand(()).item(), np.random.rand(), random.random()]
        return torch.tensor(drawn, dtype=torch.float64)


class Stateful(IterableDataset):
    """One that says where it is."""

    def __init__(self):
        self.at, self.read = 0, 0

    def __iter__(self):
        while self.at < 40:
            self.at += 1
            self.read += 1
            yield torch.tensor([self.at, random.random()], dtype=torch.float64)
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def make(dataset, **settings):
    torch.manual_seed(3)
    return DataLoader(dataset, batch_size=3, **settings)


def epochs(loader):
    return [torch.cat(list(loader)) for _ in range(2)]


def test_a_stream_draws_by_element_and_epochs_differ():
    random.seed(1)
    before = random.getstate()
    first, second = epochs(make(Shuffled()))
    assert random.getstate() == before
    assert not torch.equal(first, second)
    assert sorted(first[:, 0].tolist()) == sorted(second[:, 0].tolist()) == list(range(40))
    for settings in ({"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}):
        for one, other in zip((first, second), epochs(make(Shuffled(), **settings)), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:DT204")
def test_a_shuffle_buffer_goes_on_without_loss(workers):
    loader = make(Shuffled(), num_workers=workers)
    source = advancing(loader)
    origin, whole = source.origin(), list(source.iterator)
    assert sorted(torch.cat(whole)[:, 0].tolist()) == list(range(40))
    for skip in (1, 5, len(whole) - 1):
        again = make(Shuffled(), num_workers=workers)
        torch.rand(7)
        source = advancing(again)
        source.advance(skip, origin)
        rest = list(source.iterator)
        assert all(map(torch.equal, rest, whole[skip:]))
        assert len(rest) == len(whole) - skip


def test_a_stream_that_says_where_it_is_is_not_consumed_again():
    source = advancing(make(Stateful()))
    whole, origins = [], []
    for batch in source.iterator:
        whole.append(batch)
        origins.append(source.origin())
    for skip, later in ((1, 0), (5, 2), (9, 3)):
        dataset = Stateful()
        source = advancing(make(dataset))
        # A checkpoint is published a little after it is taken.
        source.advance(skip, origins[skip - 1 + later])
        assert dataset.read == 0
        rest = list(source.iterator)
        assert dataset.read == 40 - 3 * skip
        assert all(map(torch.equal, rest, whole[skip:]))
    dataset = Stateful()
    source = advancing(make(dataset))
    source.advance(1, origins[12])  # not kept that long: consumed
    assert dataset.read == 3
    assert all(map(torch.equal, list(source.iterator), whole[1:]))


def test_dependence_on_workers_is_said():
    adapter._SAID.clear()
    with pytest.warns(RuntimeWarning, match="DT204: how Shuffled is split depends on num_workers"):
        next(iter(make(Shuffled(), num_workers=2)))


def test_a_shuffle_buffer_is_one_stream_for_any_number_of_workers_if_asked():
    adapter.install(one_stream=True)
    expected = epochs(make(Shuffled()))
    for one, other in zip(epochs(make(Shuffled(), num_workers=2)), expected, strict=True):
        assert torch.equal(one, other)
