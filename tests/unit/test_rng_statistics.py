"""Whether numbers of neighbouring addresses look independent, by standard tests.

Seeds are fixed, so that each test gives the same verdict every time; the limits are p < 1e-4. The
last test shows that the battery refuses numbers that are not independent.
"""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
import torch

from detrain import rng
from detrain.frameworks.following import Following, fast_fill
from detrain.rng import Address, Permutation

ALPHA = 1e-4


def chi2_p(statistic, freedom):
    """Upper tail, by Wilson and Hilferty's cube root."""
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return 0.5 * math.erfc(z / math.sqrt(2))


def two_sided(z):
    return math.erfc(abs(z) / math.sqrt(2))


def uniformity(values):
    counts = np.bincount((values * 256).astype(int), minlength=256)
    p = chi2_p(((counts - len(values) / 256) ** 2).sum() / (len(values) / 256), 255)
    return min(p, 1 - p) * 2


def pairs(values):
    """Neighbours, two at a time, in a 32 by 32 grid."""
    cells = (values[:-1:2] * 32).astype(int) * 32 + (values[1::2] * 32).astype(int)
    expected = len(cells) / 1024
    p = chi2_p(((np.bincount(cells, minlength=1024) - expected) ** 2).sum() / expected, 1023)
    return min(p, 1 - p) * 2


def correlation(values, lag=1):
    one, other = values[:-lag] - 0.5, values[lag:] - 0.5
    return two_sided((one * other).mean() * 12 * math.sqrt(len(one)))


def runs(values):
    """The number of runs above and below the middle."""
    above = values > 0.5
    count, n = 1 + int((above[1:] != above[:-1]).sum()), len(values)
    ups = int(above.sum())
    mean = 2 * ups * (n - ups) / n + 1
    return two_sided((count - mean) / math.sqrt((mean - 1) * (mean - 2) / (n - 1)))


def birthdays(values):
    """Equal spacings between 4096 birthdays in a year of 2^32 days, summed over the groups."""
    days = (values[: len(values) // 4096 * 4096].reshape(-1, 4096) * 2**32).astype(np.int64)
    spacings = np.sort(np.diff(np.sort(days, axis=1), axis=1), axis=1)
    equal = int((np.diff(spacings, axis=1) == 0).sum())
    mean = 4096**3 / 2**34 * len(days)
    return two_sided((equal - mean) / math.sqrt(mean))


def bits(values):
    """Each of the upper 32 bits is set half of the time."""
    words = (values * 2**32).astype(np.uint64)
    share = [(((words >> np.uint64(bit)) & np.uint64(1)).mean() - 0.5) * 2 for bit in range(32)]
    return min(1.0, 32 * min(two_sided(each * math.sqrt(len(words))) for each in share))


BATTERY = (uniformity, pairs, correlation, runs, birthdays, bits)
FIELDS = Address.__struct_fields__


def neighbours(field, count, place):
    """One number of each of `count` addresses that lie side by side in one word."""
    fill, found = fast_fill(), np.empty(count, np.uint64)
    for number in range(count):
        words = dict.fromkeys(FIELDS, 3) | {field: number}
        found[number] = fill(Address(**words), rng.GENERATORS, place + 1)[place]
    return (found >> np.uint64(11)) * 2.0**-53


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("place", [0, 311])
def test_neighbours_are_independent(field, place):
    values = neighbours(field, 16384, place)
    for test in BATTERY:
        assert test(values) > ALPHA, test.__name__


def test_one_address_gives_good_numbers():
    words = fast_fill()(Address(1, 2, 3, 4, 5), rng.GENERATORS, 1 << 17)
    values = (words >> np.uint64(11)) * 2.0**-53
    for test in BATTERY:
        assert test(values) > ALPHA, test.__name__
    for lag in (2, 3, 4, 312):
        assert correlation(values, lag) > ALPHA, lag


def test_the_three_generators_are_independent_of_each_other_and_of_their_neighbours():
    count, found, steps = 8192, [], Following()
    steps.begin()
    for sample in range(count):
        steps.at(Address(1, 2, 3, sample))
        found.append(
            (torch.rand((), dtype=torch.float64).item(), np.random.rand(), random.random())
        )
    steps.end()
    columns = np.array(found).T
    for column in columns:
        for test in (uniformity, pairs, correlation, runs, bits):
            assert test(column) > ALPHA, test.__name__
    for one, other in itertools.combinations(columns - 0.5, 2):
        assert two_sided((one * other).mean() * 12 * math.sqrt(count)) > ALPHA


@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_all_orders_are_equally_likely(length):
    orders = dict.fromkeys(itertools.permutations(range(length)), 0)
    for epoch in range(40 * len(orders)):
        orders[tuple(Permutation(length, Address(1, 2, epoch)))] += 1
    statistic = sum((count - 40) ** 2 / 40 for count in orders.values())
    assert chi2_p(statistic, len(orders) - 1) > ALPHA


def test_places_of_a_permutation_are_uniform_and_independent():
    values = np.array([Permutation(10**9, Address(1, 2, epoch))[5] for epoch in range(8192)]) / 1e9
    order = np.array(list(Permutation(8192, Address(1, 2)))) / 8192
    for test in (pairs, correlation, runs):
        assert test(values) > ALPHA, test.__name__
    for test in (correlation, runs):
        assert test(order) > ALPHA, test.__name__


def test_the_battery_finds_what_is_wrong():
    golden = np.arange(16384) * 0.6180339887498949 % 1.0
    assert all(test(golden) < ALPHA for test in (pairs, correlation, runs, birthdays))
    few = np.floor(neighbours("sample", 16384, 0) * 200) / 200
    assert uniformity(few) < ALPHA
    assert bits(few) < ALPHA
