"""Checkpoints are written and published behind the program: in order, once, or not at all."""

from __future__ import annotations

import os
import threading

import pytest

from detrain.checkpoint.commit import load_newest, manifest_steps
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.lending import WORTH_A_FILE
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.retention import Retention
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.store import LocalStore
from detrain.runtime.committing import Committing, Learned, LevelParts, Marks, Order
from detrain.state import StateTree
from detrain.trace.log import EMPTY

SIZE = 2 * WORTH_A_FILE


def snapshot(**arrays):
    made = (ArrayBytes(name, "uint8", (len(data),), data) for name, data in arrays.items())
    return Snapshot(StateTree((), (), ()), tuple(made), {})


def order(step, cut, *around):
    states = (*around, cut)
    levels = tuple(LevelParts(f"l{i}", 0, "", "", "", (), s, ()) for i, s in enumerate(states))
    return Order(step, ("path",), cut, (), levels, Marks(EMPTY, {}), ())


def content(step):
    """The arrays of a step: one that changes, one that does not."""
    return {"moving": bytes([step]) * SIZE, "data": b"d" * SIZE}


class Bench:
    def __init__(self, folder, keep=2):
        self.points, self.keep = [], keep
        self.store = LocalStore(folder, self.points.append)
        self.retired = []
        self.committing = Committing(self.store, self.points.append, self.retired.append)

    def commit(self, step, cut, *around):
        made = order(step, cut, *around)
        self.committing.begin(made)
        self.committing.publish(made, lambda: None, Retention(self.keep), Learned())
        self.committing.writer.wait()
        return made

    def newest(self):
        found = load_newest(self.store, lambda error, _: pytest.fail(str(error)))
        state = found.levels[-1].state
        arrays = {name: bytes(data) for name, data in verified_arrays(self.store, state).items()}
        return found.step, arrays


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_data_is_durable_before_the_manifest(bench):
    bench.commit(1, snapshot(**content(1)))
    assert bench.points == [
        "data-begun", "data-partly-written", "data-written", "data-synced", "data-renamed",
        "data-durable", "output-synced", "manifest-begun", "manifest-partly-written",
        "manifest-written", "manifest-synced", "manifest-renamed", "manifest-durable",
        "manifests-retired", "data-collected",
    ]  # fmt: skip
    assert bench.newest() == (1, content(1))


def test_what_does_not_change_is_written_twice_at_the_most(bench):
    sizes = []
    for step in range(1, 7):
        bench.commit(step, snapshot(**content(step)))
        assert bench.newest() == (step, content(step))
        sizes.append(sum(path.stat().st_size for path in bench.store.folder.glob("*.safetensors")))
    lasting = [name for name in bench.store.names() if "lasting" in name]
    assert lasting == ["00000002-lasting.safetensors"]
    assert sizes[-1] < 3.1 * SIZE  # two of what moves, one of what does not
    assert manifest_steps(bench.store) == [5, 6]


def test_what_changes_after_all_is_written(bench):
    for step in range(1, 5):
        bench.commit(step, snapshot(**content(step)))
    other = {**content(5), "data": b"e" * SIZE}
    bench.commit(5, snapshot(**other))
    assert bench.newest() == (5, other)
    bench.commit(6, snapshot(**content(6)))
    bench.commit(7, snapshot(**content(7)))
    assert bench.newest() == (7, content(7))
    kept = {name for step in (6, 7) for name in manifest_files(bench, step)}
    assert {name for name in bench.store.names() if name.endswith(".safetensors")} == kept


def manifest_files(bench, step):
    from detrain.checkpoint.commit import read_checkpoint

    return read_checkpoint(bench.store, step).data_files()


def test_a_state_around_the_cut_is_written_once_and_kept(bench):
    outer = snapshot(outer=b"o" * SIZE)
    given_up = order(1, snapshot(**content(1)), outer)
    bench.committing.begin(given_up)  # and never published
    bench.committing.writer.wait()
    assert outer.saved is not None
    bench.commit(2, snapshot(**content(2)))  # names it not; but it is still in use
    bench.commit(3, snapshot(**content(3)), outer)
    assert bench.newest() == (3, content(3))
    assert outer.saved.file in manifest_files(bench, 3)


def test_a_checkpoint_that_is_given_up_leaves_no_file(bench):
    cut = snapshot(**content(1))
    cut.give_up()
    bench.committing.begin(order(1, cut))
    bench.committing.writer.wait()
    assert bench.store.names() == []
    assert bench.committing.tell() == []


class Failing(LocalStore):
    fails = ""

    def put(self, name, chunks, kind):
        if kind == self.fails:
            chunks = _fails_after(chunks)
        return super().put(name, chunks, kind)


def _fails_after(chunks):
    yield next(iter(chunks))
    raise OSError(28, os.strerror(28))


@pytest.mark.parametrize("kind", ["data", "manifest"])
def test_a_failure_loses_one_checkpoint_and_is_told_once(tmp_path, kind):
    bench = Bench(tmp_path)
    store = Failing(tmp_path, bench.points.append)
    bench.store = store
    bench.committing = Committing(store, bench.points.append, bench.retired.append)
    bench.commit(1, snapshot(**content(1)))
    store.fails = kind
    lost = bench.commit(2, snapshot(**content(2)))
    assert [(step, error.errno) for step, error in bench.committing.tell()] == [(2, 28)]
    assert bench.committing.tell() == []
    assert lost.cut.arrays == ()  # its memory is free again
    assert bench.newest() == (1, content(1))
    store.fails = ""
    bench.commit(3, snapshot(**content(3)))
    assert bench.newest() == (3, content(3))
    assert not list(tmp_path.glob("*.staged"))


def test_an_error_of_ours_is_raised_on_the_other_side(bench):
    bench.committing.writer.submit(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bench.committing.writer.wait()


def test_more_than_a_few_jobs_are_waited_for(bench):
    blocked = threading.Event()
    for _ in range(2):
        bench.committing.writer.submit(blocked.wait)
    done = threading.Event()

    def third():
        bench.committing.begin(order(1, snapshot(**content(1))))
        bench.committing.begin(order(2, snapshot(**content(2))))
        done.set()

    threading.Thread(target=third).start()
    assert not done.wait(0.2)
    blocked.set()
    assert done.wait(20)
    bench.committing.writer.wait()
