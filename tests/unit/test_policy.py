from __future__ import annotations

import pytest

from detrain.checkpoint.policy import SaveEvery, parse_save_every
from detrain.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100", SaveEvery(steps=100)),
        ("30s", SaveEvery(seconds=30.0)),
        ("1.5m", SaveEvery(seconds=90.0)),
        ("2h", SaveEvery(seconds=7200.0)),
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
