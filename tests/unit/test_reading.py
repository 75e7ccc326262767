"""Arrays of a saved state: which are checked at once, which later, and what is found then."""

from __future__ import annotations

import contextlib

import pytest
import torch

import detrain
from detrain.checkpoint.commit import load_newest
from detrain.checkpoint.format import read_arrays
from detrain.checkpoint.reading import Arrays
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint, DamageFoundLate

SIDE = 160
"""So that a square of numbers is worth waiting for."""


class Stopped(Exception):
    """A run is left as a killed one would be."""


@pytest.fixture
def saved(tmp_path):
    """A store, and the state of a checkpoint with parameters and what an optimizer keeps."""
    model = torch.nn.Linear(SIDE, SIDE)
    optimizer = torch.optim.Adam(model.parameters())
    table = {"rows": torch.ones(SIDE, SIDE)}
    options = {"name": "it", "seed": 1, "runs": tmp_path, "save_every": 1}
    with contextlib.suppress(Stopped), detrain.run(**options) as run:
        for step in run.loop(range(9), model=model, optimizer=optimizer, table=table):
            if step == 4:
                raise Stopped
            model(torch.randn(3, SIDE)).sum().backward()
            optimizer.step()
    store = LocalStore(tmp_path / "it" / "checkpoints")
    manifest = load_newest(store, lambda error, _: pytest.fail(str(error)))
    return store, manifest.levels[-1].state


def moments_of(store, state):
    """The large arrays that the optimizer keeps."""
    found = read_arrays(store.folder / state.file)
    return sorted(n for n, data in found.items() if "exp_avg" in n and len(data) == 4 * SIDE**2)


def alter(store, state, name):
    """Alter one bit of an array in its file."""
    path = store.folder / state.file
    data = bytes(read_arrays(path)[name])
    raw = bytearray(path.read_bytes())
    raw[raw.index(data) + 40] ^= 1
    path.write_bytes(bytes(raw))


def test_what_an_optimizer_keeps_waits_if_somebody_is_to_be_told(saved):
    store, state = saved
    moment, told = moments_of(store, state)[0], []
    alter(store, state, moment)
    with pytest.raises(DamagedCheckpoint, match=r"exp_avg.* was altered") as at_once:
        Arrays(store, state)
    assert not isinstance(at_once.value, DamageFoundLate)
    arrays = Arrays(store, state, told.append)
    assert not told
    with pytest.raises(DamageFoundLate, match=r"exp_avg.* was altered"):
        arrays[moment]
    assert [each.file for each in told] == [state.file]


@pytest.mark.parametrize("part", ["weight", "rows"])
def test_all_else_does_not(saved, part):
    store, state = saved
    name = next(n for n in state.digests if part in n and "exp_avg" not in n)
    alter(store, state, name)
    with pytest.raises(DamagedCheckpoint, match="was altered") as error:
        Arrays(store, state, lambda _: None)
    assert not isinstance(error.value, DamageFoundLate)


def test_asking_for_one_has_all_checked(saved):
    store, state = saved
    first, second = moments_of(store, state)
    alter(store, state, second)
    with pytest.raises(DamageFoundLate, match="was altered"):
        Arrays(store, state, lambda _: None)[first]


def test_a_copy_is_checked(saved):
    store, state = saved
    moment = moments_of(store, state)[0]
    mapped = Arrays(store, state, lambda _: None).mapped(moment)
    into = memoryview(bytearray(len(mapped.data)))
    mapped.copy(into)
    assert into == mapped.data
    alter(store, state, moment)
    told = []
    with pytest.raises(DamageFoundLate, match="was altered"):
        Arrays(store, state, told.append).mapped(moment).copy(into)
    assert told


def test_what_was_written_to_the_pages_is_not_in_the_file(saved):
    """A program may have changed a tensor that lies there before anybody has checked it."""
    store, state = saved
    moment = moments_of(store, state)[0]
    mapped = Arrays(store, state, lambda error: pytest.fail(str(error))).mapped(moment)
    mapped.data[100:200] = bytes(range(100))
    into = memoryview(bytearray(len(mapped.data)))
    mapped.copy(into)
    assert into[100:200] == bytes(range(100))


def test_a_file_that_is_gone_by_then_is_damage(saved):
    store, state = saved
    moment, told = moments_of(store, state)[0], []
    mapped = Arrays(store, state, told.append).mapped(moment)
    mapped.data[100] ^= 1
    (store.folder / state.file).unlink()
    with pytest.raises(DamageFoundLate, match="is missing"):
        mapped.copy(memoryview(bytearray(len(mapped.data))))
    assert told


def test_what_was_checked_at_once_is_only_copied(saved):
    store, state = saved
    moment = moments_of(store, state)[0]
    arrays = Arrays(store, state)
    mapped = arrays.mapped(moment)
    mapped.data[0] ^= 1
    into = memoryview(bytearray(len(mapped.data)))
    mapped.copy(into)
    assert into == mapped.data
