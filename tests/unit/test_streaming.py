"""A state that may not be copied is written as it is, whatever its arrays look like."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import numpy as np
import pytest
import torch

from detrain.capture.walk import walk
from detrain.checkpoint.commit import Lent, save_state
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.snapshot import take
from detrain.checkpoint.store import LocalStore
from detrain.checkpoint.streaming import parse_memory, take_live
from detrain.errors import UsageError
from detrain.frameworks.find import by_name


def owns(_):
    return False


def world():
    generator = torch.Generator().manual_seed(1)
    return {
        "plain": torch.randn(300, 70, generator=generator),
        "turned": torch.randn(90, 200, generator=generator).t(),
        "last": torch.randn(2, 3, 40, 50, generator=generator).to(
            memory_format=torch.channels_last
        ),
        "part": torch.arange(9000.0)[::3],
        "numbers": np.arange(5000.0).reshape(50, 100),
        "slice": np.arange(5000.0).reshape(50, 100)[:, ::2],
        "none": torch.ones(0),
        "one": torch.tensor(2.5),
    }


def test_the_bytes_are_those_of_a_copy(tmp_path):
    made = world()
    walked = walk(made, owns)
    store = LocalStore(tmp_path)
    copied = save_state(store, take(walked.tree, walked.leaves), "copied")
    live = save_state(store, take_live(walked.tree, walked.leaves), "live")
    assert live.digests == copied.digests
    found, expected = (
        {name: bytes(data) for name, data in verified_arrays(store, state).items()}
        for state in (live, copied)
    )
    assert found == expected
    again = save_state(store, take_live(walked.tree, walked.leaves), "again", Lent(live.lends()))
    assert again.digests == live.digests
    assert again.borrowed
    assert {n: bytes(d) for n, d in verified_arrays(store, again).items()} == expected


def test_one_array_is_copied_at_a_time(tmp_path, monkeypatch):
    """Of a device without addresses: as on one, all must be copied out."""
    framework = by_name("torch")
    monkeypatch.setattr(type(framework), "address", lambda self, obj: None)
    made = {f"a{n}": torch.full((1 << 20,), float(n)) for n in range(24)}
    walked = walk(made, owns)
    store = LocalStore(tmp_path)
    resident = [_resident()]
    plain = type(framework).copy_out

    def copy_out(self, obj, into):
        plain(self, obj, into)
        resident.append(_resident())

    monkeypatch.setattr(type(framework), "copy_out", copy_out)
    state = save_state(store, take_live(walked.tree, walked.leaves), "live")
    assert len(resident) > 24
    assert max(resident) - resident[0] < 24 << 20  # of 96 MB
    for name, data in verified_arrays(store, state).items():
        assert torch.frombuffer(data, dtype=torch.float32).unique().numel() == 1, name


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("full", None), ("0", 0), ("64MB", 64_000_000), ("1.5GB", 1_500_000_000), ("9KB", 9000)],
)
def test_what_can_be_typed(text, expected):
    assert parse_memory(text) == expected


def test_a_share_of_the_machine():
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert parse_memory("10%") == whole // 10


@pytest.mark.parametrize("text", ["", "much", "-1MB", "200%", "64 MB", "64mb"])
def test_what_can_not(text):
    with pytest.raises(UsageError, match="snapshot-memory: expected a size"):
        parse_memory(text)
