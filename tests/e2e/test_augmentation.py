"""Pipelines of augmentation libraries draw by sample. Each test runs where its library is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from detrain.frameworks import find
from detrain.frameworks.torch import loader as adapter
from detrain.runtime.advance import advancing

sys.path.insert(0, str(Path(__file__).parents[1] / "programs"))
import augmented

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would look for one in the network

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=augmented.PIPELINES)
def library(request):
    # A build for another torch fails in other ways than by an ImportError.
    pytest.importorskip(request.param, exc_type=Exception)
    find.by_name("numpy").prepare()
    adapter.install()
    yield request.param
    adapter.uninstall()
    find.by_name("numpy").release()


def test_one_digest_for_any_number_of_workers(library):
    expected = augmented.batches(library, 0)
    assert len(set(expected)) == len(expected)
    for workers in (1, 2, 4):
        assert augmented.batches(library, workers) == expected, workers
    assert augmented.batches(library, 2, persistent_workers=True) == expected


def test_from_any_batch_on(library):
    source = advancing(augmented.loader(library, 2))
    whole, origin = [], ""
    for batch in source.iterator:
        whole.append(augmented.digest(batch))
        origin = source.origin()
    for workers, skip in ((0, 2), (2, 5)):
        source = advancing(augmented.loader(library, workers))
        source.advance(skip, origin)
        assert [augmented.digest(batch) for batch in source.iterator] == whole[skip:]


def test_plain_pytorch_fails_the_same(library):
    adapter.uninstall()
    found = {tuple(augmented.batches(library, workers)) for workers in (0, 1, 2)}
    assert len(found) == 3


def test_a_killed_run_goes_on_as_one_without_workers(runner):
    pytest.importorskip("albumentations")
    every = ("--save-every", "3")
    assert runner.run("augmented", "whole", *every, args=("albumentations", "0")).code == 0
    killed = runner.run("augmented", "it", *every, crash="step:8", args=("albumentations", "2"))
    assert killed.code == -9, killed.stderr
    done = runner.run("augmented", "it", *every, args=("albumentations", "2"))
    assert done.code == 0, done.stderr
    assert any(runner.show("it")["resumes"])
    assert runner.log("it") == runner.log("whole")
