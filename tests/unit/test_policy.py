from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detrain.checkpoint.policy import (
    BEHIND,
    LEAST,
    Cost,
    SaveEvery,
    interval,
    parse_budget,
    parse_save_every,
    parse_span,
)
from detrain.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100", SaveEvery(steps=100)),
        ("30s", SaveEvery(seconds=30.0)),
        ("1.5m", SaveEvery(seconds=90.0)),
        ("2h", SaveEvery(seconds=7200.0)),
        ("auto", SaveEvery(budget=0.03)),
        ("never", SaveEvery()),
    ],
)
def test_what_can_be_typed(text, expected):
    assert parse_save_every(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-3", "1.5", "10 s", "often", "1d"])
def test_what_can_not(text):
    with pytest.raises(UsageError, match="save-every"):
        parse_save_every(text)


def test_due():
    assert not SaveEvery(steps=3).due(2, 1e9)
    assert SaveEvery(steps=3).due(3, 0)
    assert SaveEvery(seconds=3).due(1, 3)
    assert not SaveEvery(seconds=3).due(0, 1e9)  # nothing new to save
    assert not SaveEvery().due(10**9, 1e9)


def test_a_budget():
    auto = SaveEvery(budget=0.03)
    assert not auto.due(1, LEAST - 0.1)
    assert auto.due(1, LEAST)  # the first one: nothing is known yet
    cheap, dear = Cost(0.001, 0.5), Cost(3.0, 20.0)
    assert auto.due(1, LEAST, [cheap])
    assert not auto.due(1, 5.0 / 0.03 - 1, [cheap, dear, cheap])
    assert auto.due(1, 5.0 / 0.03, [cheap, dear, cheap])
    assert not auto.due(0, 1e9, [cheap])


@pytest.mark.parametrize(("text", "share"), [("3%", 0.03), ("0.5%", 0.005), ("0.1", 0.1)])
def test_budgets_that_can_be_typed(text, share):
    assert parse_budget(text) == pytest.approx(share)


def test_budgets_and_spans_that_can_not():
    for text in ("", "0", "0%", "101%", "-1", "3 %", "much"):
        with pytest.raises(UsageError, match="budget"):
            parse_budget(text)
    assert parse_span("1.5m", "grace") == 90.0
    for text in ("", "30", "30 s", "1d"):
        with pytest.raises(UsageError, match="grace"):
            parse_span(text, "grace")


def train(step_seconds, stall, write, budget, hours=4.0):
    """A run on a fake clock: seconds lost to checkpoints, and when they were taken."""
    every, now, last, lost = SaveEvery(budget=budget), 0.0, 0.0, 0.0
    costs: list[Cost] = []
    written, taken = 0.0, []
    while now < hours * 3600:
        now += step_seconds
        if now >= written and every.due(1, now - last, costs[-3:]):
            cost = Cost(stall(len(taken)), write(len(taken)))
            now += cost.stall
            last, written = now, now + cost.write
            lost += cost.lost
            costs.append(cost)
            taken.append(now)
    return lost / now, taken


@settings(max_examples=40, deadline=None)
@given(
    step=st.floats(0.01, 30.0),
    stall=st.floats(0.0, 20.0),
    write=st.floats(0.0, 200.0),
    budget=st.sampled_from([0.01, 0.03, 0.1]),
)
def test_checkpoints_cost_no_more_than_their_budget_and_are_no_rarer(step, stall, write, budget):
    if step < 0.5:
        step += 0.5  # as fast as the test is to be
    share, taken = train(step, lambda _: stall, lambda _: write, budget)
    first = (stall + BEHIND * write) / (4 * 3600)
    assert share <= budget + first + 1e-9
    gaps = [after - before for before, after in itertools.pairwise(taken)]
    most = interval([Cost(stall, write)], budget) + stall + step
    assert all(gap <= most + 1e-6 for gap in gaps)


def test_a_disk_that_is_slow_now_and_then():
    share, taken = train(0.5, lambda _: 0.01, lambda n: 300.0 if n % 4 == 3 else 2.0, 0.03)
    assert share < 0.04
    assert len(taken) > 20
