"""Iterable datasets give the same bits for any number of workers, where that can be had."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from detrain.frameworks import find
from detrain.frameworks.torch import loader as adapter
from detrain.runtime.advance import advancing

sys.path.insert(0, str(Path(__file__).parents[1] / "programs"))
import streamed

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

WORKERS = (0, 1, 2, 4)
OPTIONS = ("--save-every", "5", "--digest-every", "3")


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.txt").write_text("".join(f"{n}\n" for n in range(streamed.COUNT)))
    find.by_name("numpy").prepare()
    adapter.install()
    yield tmp_path
    adapter.uninstall()
    find.by_name("numpy").release()


def found(kind, workers, **settings):
    """The digests of the batches of three epochs."""
    find.by_name("numpy").seed(5)
    torch.manual_seed(5)
    batches = streamed.loader(kind, workers, **settings)
    return [[streamed.digest(batch) for batch in batches] for _ in range(3)]


SETTINGS = {"prefetch_factor": 3, "persistent_workers": True, "in_order": False}


@pytest.mark.parametrize("kind", ["ranges", "strides"])
def test_one_digest_for_any_number_of_workers(kind, made):
    expected = found(kind, 0)
    assert len(set(itertools.chain(*expected))) == 36
    for workers in WORKERS[1:]:
        assert found(kind, workers) == expected, workers
    assert found(kind, 3, **SETTINGS) == expected
    assert found(kind, 2, drop_last=True) == [each[:-1] for each in expected]


def test_one_digest_if_that_is_asked_for_though_elements_are_made_in_vain(made):
    adapter.install(one_stream=True)
    expected = found("carried", 0)
    for workers in WORKERS[1:]:
        assert found("carried", workers) == expected, workers


def test_otherwise_that_is_said_and_each_element_comes_as_often_as_it_does_plainly(made):
    with pytest.warns(RuntimeWarning, match="DT204: how Carried is split"):
        assert found("carried", 2) != found("carried", 0)
    with pytest.warns(RuntimeWarning, match="DT204: Whole does not ask which worker it is in"):
        batches = list(DataLoader(Whole(), batch_size=2, num_workers=2))
    assert [batch.tolist() for batch in batches] == [[0, 1], [0, 1], [2, 3], [2, 3]]


class Whole(IterableDataset):
    def __iter__(self):
        return iter(range(4))


@pytest.mark.parametrize("kind", ["ranges", "strides", "carried"])
def test_plain_pytorch_fails_the_same_matrix(kind, made):
    adapter.uninstall()
    expected = found(kind, 0)
    for workers in WORKERS[1:]:
        assert found(kind, workers) != expected, workers


@pytest.mark.parametrize("kind", ["strides", "carried"])
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_from_any_batch_on(kind, workers, made):
    adapter.install(one_stream=True)
    torch.manual_seed(5)
    source = advancing(streamed.loader(kind, workers))
    whole, origin = [], ""
    for batch in source.iterator:
        whole.append(streamed.digest(batch))
        origin = source.origin()
    for skip in (1, 4, 11):
        source = advancing(streamed.loader(kind, workers))
        source.advance(skip, origin)
        assert [streamed.digest(batch) for batch in source.iterator] == whole[skip:]


CASES = (("ranges", (), ("1", "4")), ("strides", (), ("2",)),
         ("carried", ("--one-stream",), ("2",)))  # fmt: skip


@pytest.mark.parametrize(("kind", "asked", "workers"), CASES)
def test_a_killed_run_goes_on_as_one_without_workers(kind, asked, workers, runner):
    whole = runner.run("streamed", "whole", *OPTIONS, *asked, args=("0", kind))
    assert whole.code == 0, whole.stderr
    for count in workers:
        for crash in ("step:8", "step:19"):
            killed = runner.run(
                "streamed", f"w{count}", *OPTIONS, *asked, crash=crash, args=(count, kind)
            )
            assert killed.code == -9, killed.stderr
        done = runner.run("streamed", f"w{count}", *OPTIONS, *asked, args=(count, kind))
        assert done.code == 0, done.stderr
        assert any(runner.show(f"w{count}")["resumes"])
        assert runner.log(f"w{count}") == runner.log("whole")


def test_workers_that_are_spawned_share_a_stream_too(runner):
    assert runner.run("streamed", "whole", args=("0", "ranges", "1")).code == 0
    spawned = runner.run("streamed", "it", args=("2", "ranges", "1", "spawn"))
    assert spawned.code == 0, spawned.stderr
    assert runner.log("it") == runner.log("whole")
