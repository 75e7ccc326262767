"""Loaders give the same bits for all settings, in all epochs, and from any batch on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from detrain.frameworks import find
from detrain.frameworks.find import positions_now, reposition
from detrain.frameworks.torch import loader as adapter
from detrain.runtime.advance import advancing

sys.path.insert(0, str(Path(__file__).parents[1] / "programs"))
import loaded

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SAMPLERS = ("shuffled", "own generator", "replacement", "wandering", "no batches")
SETTINGS = {
    "0": {},
    "1": {"num_workers": 1},
    "2": {"num_workers": 2},
    "4, prefetching": {"num_workers": 4, "prefetch_factor": 5},
    "8, prefetching one": {"num_workers": 8, "prefetch_factor": 1},
    "persistent": {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 3},
    "in any order": {"num_workers": 3, "in_order": False},
    "pinned": {"num_workers": 1, "pin_memory": True},
    "not initialised": {"num_workers": 2, "worker_init_fn": None},
}
STARTED = {
    "spawn": {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True},
    "forkserver": {"num_workers": 1, "multiprocessing_context": "forkserver",
                   "persistent_workers": True},
}  # fmt: skip


@pytest.fixture
def installed():
    find.by_name("numpy").prepare()
    adapter.install()
    yield
    adapter.uninstall()
    find.by_name("numpy").release()


def found(sampler, settings, **options):
    find.by_name("numpy").seed(5)
    return loaded.batches(sampler, **settings, **options)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_digest_for_all_settings(sampler, installed):
    expected = found(sampler, {})
    assert len(set(expected)) == len(expected)  # epochs differ
    for name, settings in SETTINGS.items():
        assert found(sampler, settings) == expected, name


def test_one_digest_for_all_ways_to_start_a_worker(installed):
    expected = found("shuffled", {})
    for name, settings in STARTED.items():
        assert found("shuffled", settings) == expected, name


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_an_epoch_that_is_left_early_is_the_same_for_all_settings(sampler, installed):
    expected = found(sampler, {}, stop=2)
    for name in ("1", "4, prefetching", "persistent"):
        assert found(sampler, SETTINGS[name], stop=2) == expected, name


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_plain_pytorch_fails_the_same_matrix(sampler):
    expected = loaded.batches(sampler)
    for name, settings in SETTINGS.items():
        if settings:
            assert loaded.batches(sampler, **settings) != expected, name


def test_seeds_of_the_program_rule(installed, monkeypatch):
    expected = found("shuffled", {})
    plain = torch.manual_seed
    monkeypatch.setattr(torch, "manual_seed", lambda seed: plain(seed + 1))
    assert not set(found("shuffled", {})) & set(expected)


def test_generators_of_the_dataset_stand_still(installed):
    made = loaded.loader()
    noise = made.dataset.transforms[1]
    before = str((noise.python.getstate(), noise.legacy.get_state()))
    state, module = made.dataset.generator.bit_generator.state, loaded.MODULE_RNG.random(0)
    del module
    for _ in made:
        pass
    assert str((noise.python.getstate(), noise.legacy.get_state())) == before
    assert made.dataset.generator.bit_generator.state == state


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", ["0", "2", "persistent"])
def test_from_any_batch_of_any_epoch_on_twice_in_a_row(sampler, name, installed):
    """Resume as a run does, in a loader that is made anew: at a batch, and again two further on."""
    find.by_name("numpy").seed(5)
    made, whole, origins, entries = loaded.loader(sampler, **SETTINGS[name]), [], [], []
    for _ in range(3):
        entries.append((positions_now(), _held(made)))
        source, batches, begun = advancing(made), [], []
        for batch in source.iterator:
            batches.append(batch.numpy().tobytes())
            begun.append(source.origin())
        whole.append(batches)
        origins.append(begun)
    for epoch, at in ((0, 1), (1, 5), (2, 3), (2, 6)):
        made = loaded.loader(sampler, **SETTINGS[name])
        for skip in (at, min(at + 2, len(whole[epoch]) - 1)):
            reposition(entries[epoch][0])
            for generator, state in zip(_generators(made), entries[epoch][1], strict=True):
                generator.set(state)
            source = advancing(made)
            np.random.rand(), torch.rand(1)  # the program stands elsewhere by now
            source.advance(skip, origins[epoch][skip - 1])
            rest = [batch.numpy().tobytes() for batch in source.iterator]
            assert rest == whole[epoch][skip:], (epoch, skip)


OPTIONS = ("--save-every", "3", "--digest-every", "2")


@pytest.mark.parametrize("args", [("2",), ("1", "spawn")], ids=" ".join)
def test_a_killed_run_with_workers_goes_on_as_one_without(runner, args):
    assert runner.run("noisy", "whole", *OPTIONS, "--seed", "1", args=("0",)).code == 0
    for crash in ("step:5", "step:9"):
        killed = runner.run("noisy", "it", *OPTIONS, "--seed", "1", crash=crash, args=args)
        assert killed.code == -9, killed.stderr
    done = runner.run("noisy", "it", *OPTIONS, "--seed", "1", args=args)
    assert done.code == 0, done.stderr
    assert any(runner.show("it")["resumes"])
    assert runner.log("it") == runner.log("whole")
    assert runner.run("noisy", "other", *OPTIONS, "--seed", "2", args=args).code == 0
    assert runner.log("other") != runner.log("whole")


class _Generator:
    def __init__(self, held):
        self.held = held

    def set(self, state):
        self.held.framework.set_generator_state(self.held.generator, state)


def _generators(made):
    return [_Generator(each) for each in adapter._held_by(made)]


def _held(made):
    return [each.framework.generator_state(each.generator) for each in adapter._held_by(made)]
