"""Work of several threads."""

from __future__ import annotations

import threading

import pytest

from detrain.frameworks.beside import beside


def test_all_is_done_once_and_an_error_ends_it():
    done: list[int] = []
    beside([lambda n=n: done.append(n) for n in range(1000)])
    assert sorted(done) == list(range(1000))
    before = threading.active_count()

    def fail():
        raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        beside([fail, *[lambda: done.append(-1)] * 100_000])
    assert threading.active_count() == before
    assert len(done) < 100_000
    beside([])
