"""Addresses, the numbers behind them, and permutations."""

from __future__ import annotations

import random
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from detrain import rng
from detrain.frameworks import find, mersenne, stdlib
from detrain.frameworks.following import Following, fast_fill, following
from detrain.frameworks.keyer import Keyer
from detrain.frameworks.numpy import keyed
from detrain.rng import Address, Permutation, address_of

word = st.integers(0, 2**64 - 1)
addresses = st.builds(Address, word, word, word, word, word)


def first_numbers(address):
    with following(address):
        return (
            torch.rand(3).tolist(), np.random.random(3).tolist(), [random.random() for _ in "123"],
            torch.initial_seed(), np.random.default_rng().random(), random.Random().random(),
        )  # fmt: skip


@given(addresses, st.integers(0, 2**16 - 1), st.integers(0, 40))
def test_the_plain_numbers_are_those_of_numpy(address, lane, count):
    assert bytes(fast_fill()(address, lane, count)) == rng.fill(address, lane, count)
    assert bytes(keyed._slow_fill(address, lane, count)) == rng.fill(address, lane, count)


@given(addresses, st.sampled_from(Address.__struct_fields__), st.integers(0, 63))
def test_every_bit_of_every_word_counts(address, field, bit):
    words = {name: getattr(address, name) for name in Address.__struct_fields__}
    other = Address(**{**words, field: words[field] ^ 1 << bit})
    mine, theirs = (np.frombuffer(rng.fill(each, 0, 64), np.uint8) for each in (address, other))
    flipped = int(np.unpackbits(mine ^ theirs).sum())
    # About half of 4096 bits differ; 8 standard deviations away is 256.
    assert 2048 - 256 < flipped < 2048 + 256


@settings(max_examples=25)
@given(addresses, st.sampled_from(Address.__struct_fields__), st.sampled_from((31, 32, 33, 63)))
def test_every_bit_reaches_all_three_generators(address, field, bit):
    words = {name: getattr(address, name) for name in Address.__struct_fields__}
    other = Address(**{**words, field: words[field] ^ 1 << bit})
    for mine, theirs in zip(first_numbers(address), first_numbers(other), strict=True):
        assert mine != theirs
    assert first_numbers(address) == first_numbers(address)


def test_a_seed_of_torch_alone_has_32_bits_that_count():
    """Why no generator is seeded here."""
    first = torch.Generator().manual_seed(1)
    second = torch.Generator().manual_seed(1 + 2**32)
    assert torch.equal(torch.rand(4, generator=first), torch.rand(4, generator=second))


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_a_word_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match="2\\^64"):
        rng.fill(Address(wrong, 0), 0, 4)
    with pytest.raises(Exception, match=r"argument|range|format"):
        fast_fill()(Address(0, 0, sample=wrong), 0, 4)


@given(st.lists(st.one_of(st.integers(), st.text(), st.binary()), max_size=6),
       st.lists(st.one_of(st.integers(), st.text(), st.binary()), max_size=6))  # fmt: skip
def test_different_words_have_different_addresses(mine, theirs):
    same = [(type(a), a) for a in mine] == [(type(b), b) for b in theirs]
    assert (address_of(*mine) == address_of(*theirs)) == same


def test_a_key_is_made_of_whole_numbers_and_texts():
    with pytest.raises(TypeError, match="float"):
        address_of(0.5)


def test_following_leaves_the_generators_where_they_stood():
    for seeded in (np.random.seed, random.seed, torch.manual_seed):
        seeded(3)
    np.random.standard_normal()  # leaves a spare number behind
    random.gauss(0, 1)
    torch.randn(1, dtype=torch.float64)
    before = find.positions_now()
    entropy = find.by_name("numpy").followed
    with following(Address(1, 2)):
        np.random.standard_normal(), random.gauss(0, 1), torch.randn(1)
        np.random.seed(5), random.seed(5), torch.manual_seed(5)
        with following(Address(3, 4)):
            inside = random.random()
        with pytest.raises(ZeroDivisionError), following(Address(5, 6)):
            raise ZeroDivisionError
    assert find.positions_now() == before
    assert find.by_name("numpy").followed is entropy
    with following(Address(3, 4)):
        assert random.random() == inside
    find.by_name("numpy").release()


def test_following_leaves_another_generator_behind_numpy_where_it_stood():
    plain, other = np.random.get_bit_generator(), np.random.PCG64(3)
    expected = np.random.RandomState(np.random.PCG64(3)).uniform(size=2)
    with following(Address(1, 2)):
        followed = np.random.uniform()
    np.random.set_bit_generator(other)
    try:
        assert np.random.uniform() == expected[0]
        steps = Following()
        for _ in range(2):
            steps.begin()
            steps.at(Address(1, 2))
            assert np.random.uniform() == followed
            np.random.seed(3)
            steps.end()
            assert np.random.get_bit_generator() is other
        assert np.random.uniform() == expected[1]
    finally:
        np.random.set_bit_generator(plain)
        find.by_name("numpy").release()


@pytest.mark.parametrize("draws", [0, 1, 2, 700])
def test_positions_are_the_same_by_memory_and_by_asking(monkeypatch, draws):
    np.random.seed(3), random.seed(3)
    for _ in range(draws):
        np.random.standard_normal(), random.gauss(0, 1)
    found = find.positions_now()
    monkeypatch.setattr(mersenne, "_offset", lambda: None)
    monkeypatch.setattr(keyed, "_is_twister", lambda: False)
    assert find.positions_now() == found
    np.random.random(), random.random()
    assert find.positions_now() != found


def test_spare_normal_numbers_do_not_go_from_one_address_to_the_next():
    steps = Following()
    steps.begin()
    try:
        seen = []
        for _ in range(2):
            steps.at(Address(1, 2, sample=3))
            seen.append((np.random.standard_normal(), random.gauss(0, 1), torch.randn(1).item()))
        assert seen[0] == seen[1]
    finally:
        steps.end()
        find.by_name("numpy").release()


def test_slower_ways_give_the_same_numbers(monkeypatch):
    expected = first_numbers(Address(7, 8, 9, 10, 11))
    monkeypatch.setattr(mersenne, "_offset", lambda: None)
    monkeypatch.setattr(keyed, "_is_twister", lambda: False)
    monkeypatch.setattr(keyed, "_spare_offset", lambda: None)
    monkeypatch.setattr("detrain.frameworks.following.fast_fill", lambda: rng.fill)
    assert first_numbers(Address(7, 8, 9, 10, 11)) == expected
    find.by_name("numpy").release()


@pytest.mark.parametrize("make", [
    lambda: random.Random(1), lambda: np.random.default_rng(1), lambda: np.random.RandomState(1),
    lambda: np.random.Generator(np.random.Philox(1)),
    lambda: np.random.Generator(np.random.SFC64(1)),
    lambda: np.random.Generator(np.random.MT19937(1)), lambda: torch.Generator().manual_seed(1),
    lambda: np.random.RandomState(np.random.PCG64(1)), lambda: np.random.PCG64DXSM(1),
])  # fmt: skip
def test_generator_objects_can_be_keyed(make):
    one, other, third = make(), make(), make()

    def draw(generator):
        if isinstance(generator, torch.Generator):
            return torch.randn(5, generator=generator).tolist()
        if isinstance(generator, np.random.BitGenerator):
            return generator.random_raw(5).tolist()
        if isinstance(generator, random.Random):
            return [generator.gauss(0, 1) for _ in range(5)]
        return [float(generator.standard_normal()) for _ in range(5)]

    draw(other)
    for generator, sample in ((one, 1), (other, 1), (third, 2)):
        framework = next(f for f in find.loaded() if f.is_generator(generator))
        framework.rekey(generator, Address(5, 6, sample=sample), fast_fill())
    expected = draw(one)
    assert draw(other) == expected
    assert draw(third) != expected


def test_nothing_needs_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import random\n"
        "from detrain.rng import Address, Permutation, address_of\n"
        "from detrain.frameworks.following import following\n"
        "with following(Address(1, 2, 3)): print(random.random(), random.Random().random())\n"
        "print(list(Permutation(5, address_of('a'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with following(Address(1, 2, 3)):
        expected = f"{random.random()} {random.Random().random()}\n"
    assert done.stdout == expected + f"{list(Permutation(5, address_of('a')))}\n"


def test_an_unseeded_generator_asks_the_address_only_in_the_thread_that_follows():
    def drawn():
        return random.Random().random()

    with ThreadPoolExecutor(1) as other, following(Address(1, 2, 3)):
        elsewhere = other.submit(drawn).result()
        asked = drawn(), drawn()
    with following(Address(1, 2, 3)):
        assert drawn() == asked[0]
        with following(Address(1, 2, 4)):
            assert drawn() not in (*asked, elsewhere)
        assert drawn() == asked[1]
    with following(Address(1, 2, 3)):
        pass
    assert len({drawn(), drawn(), *asked, elsewhere}) == 5


def test_unseeded_generators_ask_the_system_again_after_release():
    plain = stdlib._PLAIN_SEED
    try:
        stdlib.ADAPTER.prepare()
        assert random.Random.seed is not plain
    finally:
        stdlib.ADAPTER.release()
    assert random.Random.seed is plain
    first_numbers(Address(1, 2, 3))
    assert random.Random(5).random() == 0.6229016948897019


@pytest.mark.parametrize("count", [1, 16, 17, 40])
def test_many_are_done_as_one_alone(count):
    class Held:
        def __init__(self):
            self.own = random.Random(1)

        def draws(self, item):
            return item, random.random(), torch.rand(1).item(), np.random.rand(), self.own.random()

    def done(which, place=slice(None)):
        held = Held()
        keyer = Keyer({"held": held})
        keyer.begin()
        try:
            asked = [Address(7, 1, 0, each) for each in which]
            return keyer.do_each(asked, held.draws, which)[place]
        finally:
            keyer.end()

    together = done(range(count))
    assert together == [done([each], 0) for each in range(count)]
    assert len({number for row in together for number in row[1:]}) == 4 * count


@given(st.integers(0, 300), addresses)
def test_a_permutation_is_a_bijection(length, address):
    order = Permutation(length, address)
    items = list(order)
    assert sorted(items) == list(range(length))
    assert len(order) == length
    assert [order.place_of(item) for item in items] == list(range(length))


@given(st.integers(1, 2**126 - 1), addresses, st.data())
def test_a_long_permutation_goes_both_ways(length, address, data):
    order = Permutation(length, address)
    place = data.draw(st.integers(0, length - 1))
    assert 0 <= order[place] < length
    assert order.place_of(order[place]) == place


def test_outside_of_a_permutation():
    with pytest.raises(IndexError):
        Permutation(3, Address(0, 0))[3]
    with pytest.raises(ValueError, match="length"):
        Permutation(-1, Address(0, 0))


def test_positions_are_those_of_when_they_were_noted():
    """Their text is asked for later, by the thread that writes."""
    for framework in find.loaded():
        framework.seed(3)
    note = find.note_positions()

    def draw():
        return random.random(), np.random.rand(), torch.rand(1).item()

    drawn = draw()
    find.reposition(note())
    assert draw() == drawn
    draw()
    assert find.positions_now() != note()
    assert note().keys() >= set(find.NAMES)


def test_a_framework_that_is_being_imported_is_not_asked(monkeypatch):
    module = types.ModuleType("torch")
    module.__spec__ = types.SimpleNamespace(_initializing=True)
    monkeypatch.setattr(find, "_complete", set())
    monkeypatch.setitem(sys.modules, "torch", module)
    assert "torch" not in [framework.name for framework in find.loaded()]
    module.__spec__._initializing = False
    assert "torch" in [framework.name for framework in find.loaded()]
    monkeypatch.delitem(sys.modules, "torch")
    assert "torch" not in [framework.name for framework in find.loaded()]
