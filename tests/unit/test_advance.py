"""Loaders are skipped by index: the same batches as without DETrain, and no sample loaded twice."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler
from tqdm import tqdm

from detrain.errors import ResumeMismatch
from detrain.frameworks.torch import loader as adapter
from detrain.runtime.advance import advancing


class Counted(Dataset):
    def __init__(self):
        self.loaded = []

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.loaded.append(index)
        return index


@pytest.fixture
def installed():
    adapter.install()
    yield
    adapter.uninstall()


def make(**options):
    return DataLoader(Counted(), batch_size=3, **options)


def generator():
    return torch.Generator().manual_seed(8)


LOADERS = {
    "in order": lambda: make(),
    "shuffled": lambda: make(shuffle=True),
    "own generator": lambda: make(shuffle=True, generator=generator()),
    "with replacement": lambda: make(sampler=RandomSampler(Counted(), replacement=True)),
    "no batches": lambda: DataLoader(Counted(), batch_size=None, shuffle=True),
    "workers": lambda: make(shuffle=True, num_workers=2),
    "persistent": lambda: make(shuffle=True, num_workers=1, persistent_workers=True),
}
WRAPS = {
    "bare": lambda it: it,
    "enumerate": lambda it: enumerate(it, 1),
    "zip": lambda it: zip(it, itertools.count(), strict=False),
    "tqdm": lambda it: tqdm(it, disable=True),
    "enumerate tqdm": lambda it: enumerate(tqdm(it, disable=True)),
    "tqdm enumerate": lambda it: tqdm(enumerate(it), disable=True),
}


def text(items):
    return [repr(item) for item in items]


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("skip", [1, 4, 7])
def test_the_rest_of_an_epoch_is_the_plain_loaders(kind, skip, installed):
    adapter.uninstall()
    torch.manual_seed(1)
    plain = LOADERS[kind]()
    epochs = [text(plain), text(plain)]
    adapter.install()
    torch.manual_seed(1)
    loader = LOADERS[kind]()
    source = advancing(loader)
    source.advance(skip, source.origin())
    assert text(source.iterator) == epochs[0][skip:]
    if loader.num_workers == 0:
        assert len(loader.dataset.loaded) == 20 - min(20, skip * (loader.batch_size or 1))
    del source


@pytest.mark.parametrize("wrap", WRAPS)
def test_wrapped_loaders_are_seen_through(wrap, installed):
    def begin():
        torch.manual_seed(3)
        loader = make(shuffle=True)
        return loader, advancing(WRAPS[wrap](loader))

    whole = text(begin()[1].iterator)
    loader, source = begin()
    source.advance(5, source.origin())
    assert text(source.iterator) == whole[5:]
    assert len(loader.dataset.loaded) == 5


def test_a_bar_shows_where_the_loop_is(installed):
    bar = tqdm(make(), disable=True)
    source = advancing(bar)
    source.advance(4, source.origin())
    next(source.iterator)
    assert bar.initial == 4


def test_generators_of_the_loader_are_set_back_to_where_the_epoch_began(installed):
    own = generator()
    loader = make(shuffle=True, generator=own)
    list(loader)
    second = advancing(loader)
    origin, order = second.origin(), text(second.iterator)
    fresh = make(shuffle=True, generator=generator())
    source = advancing(fresh)  # as in a new process: the first epoch of this loader
    source.advance(2, origin)
    assert text(source.iterator) == order[2:]


def test_the_order_of_samples_is_digested(installed):
    torch.manual_seed(1)
    one = advancing(make(shuffle=True))
    torch.manual_seed(2)
    two = advancing(make(shuffle=True))
    for source in (one, two):
        next(source.iterator)
    assert one.order() != two.order()


def test_a_sampler_that_became_shorter_is_an_error(installed):
    source = advancing(make())
    with pytest.raises(ResumeMismatch, match="at least 9 batches"):
        source.advance(9, source.origin())


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(10))


def test_streams_are_consumed(installed):
    source = advancing(DataLoader(Stream(), batch_size=2))
    assert not source.parts[0].by_index
    source.advance(3, source.origin())
    assert text(source.iterator) == ["tensor([6, 7])", "tensor([8, 9])"]


def test_plain_iterables():
    for iterable in (range(9), list(range(9)), tuple(range(9)), iter(range(9))):
        source = advancing(iterable)
        source.advance(4, "")
        assert list(source.iterator) == [4, 5, 6, 7, 8]


def test_uninstalling_gives_the_plain_loader_back():
    adapter.install()
    adapter.uninstall()
    assert not isinstance(iter(make()), adapter.LoaderIterator)


def test_a_generator_that_draws_between_its_items_is_consumed_exactly():
    import random

    def walk():
        at = 0.0
        while True:
            yield at
            at += random.random()

    random.seed(1)
    source = advancing(walk())
    items = []
    for _ in range(6):
        items.append(next(source.iterator))
        random.random()  # the loop's body draws too
    origin, order = source.origin(), source.order()
    rest = [next(source.iterator) for _ in range(3)]
    random.seed(1)
    again = advancing(walk())
    again.advance(6, origin)
    assert again.order() == order
    again.iterator  # noqa: B018
    random.seed(1)
    [random.random() for _ in range(6 + 5)]
    assert [next(again.iterator) for _ in range(3)] == rest


def test_a_generator_that_depends_on_other_state_is_found_out():
    state = [1]

    def items():
        while True:
            yield state[0]

    source = advancing(items())
    for n in range(4):
        next(source.iterator)
        state[0] = n
    origin, order = source.origin(), source.order()
    again = advancing(items())
    again.advance(4, origin)
    assert again.order() != order


class Countdown:
    def __init__(self):
        self.left = 5

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


def test_an_iterator_of_the_programs_own_is_state():
    source = advancing(Countdown())
    assert isinstance(source.held()[0], Countdown)
    source.advance(3, "")
    assert list(source.iterator) == [4, 3, 2, 1, 0]
