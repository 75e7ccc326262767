"""torch.distributed.checkpoint saves to and loads from a store."""

from __future__ import annotations

import datetime
import os

import pytest
import torch
import torch.distributed.checkpoint as dcp

from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint, UsageError
from detrain.frameworks.torch import dcp as torch_dcp
from detrain.frameworks.torch.dcp import StoreReader, StoreWriter

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def state():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(6, 5)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "odd": {
            "half": torch.randn(3).bfloat16(),
            "scalar": torch.tensor(2),
            "none": torch.ones(0),
        },
        "step": 7,
        "note": ["a", 1.5, None],
    }


def blank(value):
    if isinstance(value, torch.Tensor):
        return torch.zeros_like(value)
    if isinstance(value, dict):
        return {key: blank(each) for key, each in value.items()}
    if isinstance(value, list):
        return [blank(each) for each in value]
    return None


def same(left, right):
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def test_what_is_saved_is_loaded(store):
    saved = state()
    dcp.save(saved, storage_writer=StoreWriter(store, "0000000007"), no_dist=True)
    assert store.names() == ["0000000007-0.safetensors", "0000000007.dcp.json"]
    found = blank(saved)
    assert not same(found, saved)
    dcp.load(found, storage_reader=StoreReader(store, "0000000007"), no_dist=True)
    assert same(found, saved)


def test_a_part_is_loaded(store):
    saved = state()
    dcp.save(saved, storage_writer=StoreWriter(store, "it"), no_dist=True)
    found = {"model": blank(saved["model"])}
    dcp.load(found, storage_reader=StoreReader(store, "it"), no_dist=True)
    assert same(found["model"], saved["model"])


def test_damage_is_found(store):
    dcp.save(state(), storage_writer=StoreWriter(store, "it"), no_dist=True)
    path = store.folder / "it-0.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(dcp.CheckpointException, match="was altered"):
        dcp.load(blank(state()), storage_reader=StoreReader(store, "it"), no_dist=True)
    (store.folder / "it.dcp.json").write_bytes(b"{}")
    with pytest.raises(DamagedCheckpoint, match=r"it\.dcp\.json: expected a description"):
        StoreReader(store, "it").read_metadata()


class Touches:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_no_pickle_is_run(store, tmp_path, monkeypatch):
    marker = tmp_path / "marker"
    saved = {"evil": Touches(str(marker))}
    # As somebody else would write it.
    monkeypatch.setattr(torch_dcp, "_as_json", lambda _, pickled: pickled.getvalue())
    dcp.save(saved, storage_writer=StoreWriter(store, "it"), no_dist=True)
    with pytest.raises(dcp.CheckpointException, match="is no plain data"):
        dcp.load({"evil": None}, storage_reader=StoreReader(store, "it"), no_dist=True)
    assert not marker.exists()
    # It is torch's own reader that this guards against.
    dcp.save(saved, checkpoint_id=tmp_path / "plain", no_dist=True)
    dcp.load({"evil": None}, checkpoint_id=tmp_path / "plain", no_dist=True)
    assert marker.exists()


@pytest.mark.parametrize("value", [datetime.date(2020, 1, 1), {1: {2, 3}}, [Touches("/nowhere")]])
def test_what_is_not_plain_is_said_when_it_is_saved(store, value):
    with pytest.raises(dcp.CheckpointException) as caught:
        dcp.save({"it": {"deep": value}}, storage_writer=StoreWriter(store, "it"), no_dist=True)
    assert any(isinstance(error[0], UsageError) for error in caught.value.failures.values())
    assert store.names() == []


def test_plain_data_stays_what_it_is(store):
    saved = {
        "it": {"a": (1, 2.5, float("inf"), 1 << 90), "b": b"\0", "c": ({1: None, "1": [True]},)}
    }
    dcp.save(saved, storage_writer=StoreWriter(store, "it"), no_dist=True)
    found = {"it": {"a": None, "b": None, "c": None}}
    dcp.load(found, storage_reader=StoreReader(store, "it"), no_dist=True)
    assert repr(found) == repr(saved)
