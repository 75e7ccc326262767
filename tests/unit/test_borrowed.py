"""Arrays that two states of a checkpoint have in common are written once."""

from __future__ import annotations

import pytest

from detrain.checkpoint.commit import (
    Lent,
    load_newest,
    publish,
    read_checkpoint,
    retire,
    save_state,
)
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.manifest import Manifest, SavedLevel
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.retention import Retention
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint
from detrain.state import StateTree
from detrain.trace.log import EMPTY


def snapshot(**arrays):
    made = (ArrayBytes(name, "uint8", (len(data),), data) for name, data in arrays.items())
    return Snapshot(StateTree((), (), ()), tuple(made), {})


def manifest(step, *states):
    levels = (SavedLevel("site", 0, "", "", "", (), state) for state in states)
    return Manifest(step, 0.0, (), tuple(levels), EMPTY, {})


DATA = bytes(range(256)) * 16


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


@pytest.fixture
def pair(store):
    outer = save_state(store, snapshot(rows=DATA, small=b"12"), "1")
    inner = save_state(
        store, snapshot(x=DATA, y=b"3" * 4096, z=b"12"), "2", Lent(outer.lends(), outer.files())
    )
    publish(store, manifest(1, outer, inner))
    return outer, inner


def test_the_same_bytes_are_written_once(store, pair):
    outer, inner = pair
    assert store.arrays(inner.file, inner.bytes).keys() == {"y", "z"}  # a small one is not worth it
    found = verified_arrays(store, inner)
    assert {name: bytes(data) for name, data in found.items()} == {
        "x": DATA, "y": b"3" * 4096, "z": b"12",
    }  # fmt: skip
    again = read_checkpoint(store, 1)
    assert again.levels[1].state == inner
    assert again.data_files() == {outer.file: outer.bytes, inner.file: inner.bytes}


def test_what_was_borrowed_is_lent_on_from_where_it_lies(pair):
    outer, inner = pair
    places = sorted((each.file, each.name) for each in inner.lends().values())
    assert places == [(outer.file, "rows"), (inner.file, "y"), (inner.file, "z")]


def test_a_file_that_lends_is_kept(store, pair):
    outer, inner = pair
    publish(store, manifest(2, inner))  # names the outer file only as a lender
    retire(store, Retention(last=1), lambda _: None, {})
    assert outer.file in store.names()
    assert load_newest(store, lambda error, _: pytest.fail(str(error))).step == 2
    publish(store, manifest(3, save_state(store, snapshot(y=DATA), "3")))
    retire(store, Retention(last=1), lambda _: None, {})
    assert store.names() == ["0000000003.json", "3.safetensors"]


@pytest.mark.parametrize("how", ["altered", "gone", "another"])
def test_damage_of_a_file_that_lends_is_found(store, pair, how):
    outer, inner = pair
    path = store.folder / outer.file
    if how == "altered":
        raw = bytearray(path.read_bytes())
        raw[-100] ^= 1
        path.write_bytes(raw)
    elif how == "gone":
        path.unlink()
    else:
        other = save_state(store, snapshot(rovs=DATA, small=b"12"), "4")
        (store.folder / other.file).rename(path)
    with pytest.raises(DamagedCheckpoint):
        verified_arrays(store, inner)
    told = []
    with pytest.raises(DamagedCheckpoint):
        load_newest(store, lambda error, step: told.append(step))
    assert told == [1]
