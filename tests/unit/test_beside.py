"""Work of several threads."""

from __future__ import annotations

import threading

import pytest
import torch

from detrain.capture.restore import restore
from detrain.capture.walk import walk
from detrain.checkpoint.snapshot import take
from detrain.errors import ResumeMismatch
from detrain.frameworks.beside import beside
from detrain.frameworks.torch import tensors
from detrain.state import ArrayFacts


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


def test_restore_comes_back_when_all_large_arrays_are_filled():
    """And an error in one of them is said."""
    made = [torch.full((1 << 18,), float(n)) for n in range(60)]
    walked = walk({"many": made})
    data = {array.name: array.data for array in take(walked.tree, walked.leaves).arrays}
    live = [torch.zeros(1 << 18) for _ in made]
    restore(walked.tree, {"many": live}, data.__getitem__)
    assert all(torch.equal(one, other) for one, other in zip(made, live, strict=True))
    short = {**data, "many[7]": data["many[7]"][:-4]}
    with pytest.raises(ResumeMismatch, match=r"many\[7\]"):
        restore(walked.tree, {"many": live}, short.__getitem__)


def test_no_memory_is_taken_for_an_array_whose_bytes_are_not_there():
    facts = ArrayFacts("torch", "float32", (1 << 45,), "x", 0)
    with pytest.raises(ValueError, match="4 bytes where"):
        tensors.create(torch.Tensor, facts, memoryview(bytearray(4)), None)
