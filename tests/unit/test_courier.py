"""What is brought to a store and back: in order, whole, and by one process at a time."""

from __future__ import annotations

import os
import random
import socket
import time

import msgspec
import pytest

from detrain.checkpoint.commit import (
    load_newest,
    manifest_steps,
    publish,
    read_checkpoint,
    retire,
    save_state,
)
from detrain.checkpoint.compaction import compact
from detrain.checkpoint.durable import is_spare
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.manifest import Manifest, SavedLevel, decode_manifest
from detrain.checkpoint.objects import Objects
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.retention import Retention
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.store import LocalStore
from detrain.errors import RunLocked, StoreUnavailable
from detrain.runs import lease as leases
from detrain.runs.courier import Pusher
from detrain.runs.lease import Holder, Lease
from detrain.runs.remote import fetch, fetch_heads, version_here
from detrain.state import StateTree
from detrain.trace.log import EMPTY


class Recording:
    """A file system that remembers what was uploaded and removed, and fails when told to."""

    def __init__(self, plain):
        self._plain, self.done, self.fail_at = plain, [], None

    def __getattr__(self, name):
        found = getattr(self._plain, name)
        if name not in ("put_file", "rm_file"):
            return found

        def recorded(*args, **kwargs):
            if self.fail_at is not None and len(self.done) >= self.fail_at:
                raise OSError("gone")
            self.done.append((name, args[-1].rpartition("/")[2]))
            return found(*args, **kwargs)

        return recorded


@pytest.fixture
def objects():
    import fsspec

    memory = fsspec.filesystem("memory")
    made = Objects("memory://courier", (), time.sleep, Recording(memory))
    yield made
    made._fs.fail_at = None
    made.remove(made.list())


def commit(folder, step, last=2):
    store = LocalStore(folder / "checkpoints")
    data = (ArrayBytes("x", "uint8", (4,), bytes([step % 256] * 4)),)
    saved = save_state(store, Snapshot(StateTree((), (), ()), data, {}), f"{step:08d}")
    levels = (SavedLevel("site", 0, "", "", "", (), saved),)
    publish(store, Manifest(step, 0.0, (), levels, EMPTY, {}))
    retire(store, Retention(last), lambda _: None, {})
    with (folder / "trace.jsonl").open("a") as trace:
        trace.write(f"{step}\n")


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "here" / "it"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    (folder / "lock").touch()
    return folder


def whole_in(objects):
    """The steps in the store; every one of them must have all its data."""
    there = objects.list("it")
    steps = []
    for name in there:
        if "/checkpoints/0" in name and name.endswith(".json"):
            manifest = decode_manifest(objects.read(name), name)
            for file, size in manifest.data_files().items():
                assert there[f"it/checkpoints/{file}"].size == size
            steps.append(manifest.step)
    return steps


def test_data_then_the_runs_files_then_the_manifest(objects, run):
    commit(run, 1)
    assert Pusher(objects, run).push() == 1
    names = [name for _, name in objects._fs.done]
    assert names[0] == "00000001.safetensors"
    assert names[-1] == "0000000001.json"
    assert sorted(names[1:-1]) == ["run.json", "trace.jsonl"]
    objects._fs.done.clear()
    Pusher(objects, run).push()
    assert not objects._fs.done  # nothing is moved twice
    assert not (run / "outbox").exists()


def test_old_ones_go_and_protected_ones_stay(objects, run):
    pusher = Pusher(objects, run)
    commit(run, 1, last=1)
    pusher.push()
    objects.put_bytes("it/checkpoints/protected.json", b'{"best":1}')
    for step in (2, 3, 4):
        commit(run, step, last=1)
        pusher.push()
    assert whole_in(objects) == [1, 4]
    objects.put_bytes("it/checkpoints/protected.json", b"{}")
    commit(run, 5, last=1)
    pusher.push()
    assert whole_in(objects) == [5]
    assert len([name for name in objects.list("it") if name.endswith(".safetensors")]) == 1


def test_what_is_compacted_here_is_compacted_there(objects, run, tmp_path):
    store, pusher = LocalStore(run / "checkpoints"), Pusher(objects, run)
    content = random.Random(0).randbytes(9000)
    for step in range(1, 6):
        data = (ArrayBytes("x", "uint8", (9001,), content + bytes([step])),)
        saved = save_state(store, Snapshot(StateTree((), (), ()), data, {}), f"{step:08d}")
        levels = (SavedLevel("site", 0, "", "", "", (), saved),)
        publish(store, Manifest(step, 0.0, (), levels, EMPTY, {}))
        if step in (2, 4):  # a courier that is slower than the run
            pusher.push()
    pusher.push()
    assert whole_in(objects) == [2, 4, 5]
    assert compact(store, 2, alone=True).steps == [1, 2, 3]
    objects._fs.done.clear()
    pusher.push()
    names = [name for _, name in objects._fs.done]
    uploaded = [name for name in names if "packed" in name or name.endswith(".json")]
    assert uploaded[-1] == "0000000002.json"
    assert whole_in(objects) == [2, 4, 5]
    files = {name.rpartition("/")[2] for name in objects.list("it") if "safetensors" in name}
    assert files == {
        "00000001-packed.safetensors",
        "00000002-packed.safetensors",
        "00000004.safetensors",
        "00000005.safetensors",
    }
    objects._fs.done.clear()
    pusher.push()
    assert not objects._fs.done
    fetch(objects, tmp_path / "there" / "it")
    there = LocalStore(tmp_path / "there" / "it" / "checkpoints")
    state = read_checkpoint(there, 2).levels[-1].state
    assert bytes(verified_arrays(there, state)["x"]) == content + bytes([2])


def test_a_store_that_goes_away_at_any_moment_has_whole_checkpoints(objects, run):
    commit(run, 1)
    Pusher(objects, run).push()
    for fail_at in range(12):
        step = 10 + fail_at
        commit(run, step, last=1)
        objects._fs.done, objects._fs.fail_at = [], fail_at
        try:
            Pusher(objects, run).push()
        except StoreUnavailable as error:
            assert "gone" in str(error)  # noqa: PT017
        objects._fs.fail_at = None
        assert whole_in(objects)
    Pusher(objects, run).push()
    assert whole_in(objects)[-1] == step


def test_another_machine_gets_all_of_it(objects, run, tmp_path):
    commit(run, 1)
    commit(run, 2)
    Pusher(objects, run).push()
    there = tmp_path / "there"
    fetch_heads(objects, there)
    assert sorted(path.name for path in (there / "it").iterdir()) == ["run.json"]
    fetch(objects, there / "it", keep_newer=True)
    store = LocalStore(there / "it" / "checkpoints")
    assert load_newest(store, lambda error, _: pytest.fail(str(error))).step == 2
    assert (there / "it" / "trace.jsonl").read_text() == "1\n2\n"
    assert not (there / "it" / "lock").exists()


def test_the_further_one_wins(objects, run, tmp_path):
    commit(run, 1)
    Pusher(objects, run).push()
    other = tmp_path / "there" / "it"
    fetch(objects, other, keep_newer=True)
    commit(other, 7)
    (other / "trace.jsonl").write_text("1\nother\n")
    Pusher(objects, other).push()
    commit(run, 2)  # not brought away, and not as far
    fetch(objects, run, keep_newer=True)
    assert version_here(run) == (False, 7)
    assert (run / "trace.jsonl").read_text() == "1\nother\n"
    assert manifest_steps(LocalStore(run / "checkpoints")) == [1, 7]
    commit(run, 9)
    fetch(objects, run, keep_newer=True)  # now this one is further
    assert version_here(run) == (False, 9)


def test_the_same_name_with_another_content_is_not_mixed_up(objects, run, tmp_path):
    """Two machines that number their files alike."""
    commit(run, 1)
    Pusher(objects, run).push()
    other = tmp_path / "there" / "it"
    fetch(objects, other, keep_newer=True)
    store = LocalStore(other / "checkpoints")
    data = (ArrayBytes("x", "uint8", (4,), b"\xaa" * 4),)
    saved = save_state(store, Snapshot(StateTree((), (), ()), data, {}), "00000002")
    levels = (SavedLevel("site", 0, "", "", "", (), saved),)
    publish(store, Manifest(5, 0.0, (), levels, EMPTY, {}))
    Pusher(objects, other).push()
    commit(run, 2)  # writes a 00000002.safetensors of its own, of the same size
    fetch(objects, run, keep_newer=True)
    mine = LocalStore(run / "checkpoints")
    newest = load_newest(mine, lambda error, _: pytest.fail(str(error)))
    assert newest.step == 5
    state = newest.levels[0].state
    assert bytes(mine.arrays(state.file, state.bytes)["x"]) == b"\xaa" * 4


# ---------------------------------------------------------------- one at a time


def elsewhere(**changes):
    holder = Holder("elsewhere", "another boot", 1, 2, time.time(), "token")
    return msgspec.structs.replace(holder, **changes)


def put(objects, holder):
    objects.put_bytes("it/lease.json", msgspec.json.encode(holder))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(leases, "BEAT", 0.01)


def test_a_lease_is_taken_given_and_taken_again(objects):
    first = Lease(objects, "it", os.getpid())
    first.take()
    assert first.is_held()
    with pytest.raises(RunLocked, match=f"process {os.getpid()} on {socket.gethostname()}"):
        Lease(objects, "it", os.getpid()).take()
    first.release()
    second = Lease(objects, "it", os.getpid())
    second.take()
    assert second.is_held()
    assert not first.is_held()
    first.release()  # not its own any more
    assert second.is_held()


def test_one_that_gives_signs_of_life_elsewhere(objects):
    put(objects, elsewhere())
    beats = iter(range(1, 100))

    def sleep(_):
        put(objects, elsewhere(beat=next(beats)))

    with pytest.raises(RunLocked, match="process 1 on elsewhere"):
        Lease(objects, "it", os.getpid(), sleep=sleep).take()


def test_one_that_is_silent_is_taken_over(objects):
    put(objects, elsewhere())
    said = []
    lease = Lease(objects, "it", os.getpid(), said.append)
    lease.take()
    assert lease.is_held()
    assert "still works on it" in said[0]


def test_one_of_this_machine_that_is_dead_is_taken_over_at_once(objects):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    mine = Lease(objects, "other", os.getpid())._holder
    put(objects, msgspec.structs.replace(mine, pid=child, courier=child))
    said = []
    Lease(objects, "it", os.getpid(), said.append).take()
    assert not said


def test_who_lost_a_run_publishes_nothing(objects, run):
    lease = Lease(objects, "it", os.getpid())
    lease.take()
    commit(run, 1)
    Pusher(objects, run, lease).push()
    put(objects, elsewhere())
    commit(run, 2)
    with pytest.raises(RunLocked, match="took it over"):
        Pusher(objects, run, lease).push()
    assert whole_in(objects) == [1]


def test_names_that_lead_elsewhere_are_not_fetched(objects, run, tmp_path):
    commit(run, 1)
    (run / "aside").mkdir()
    (run / "aside" / "my notes (1).txt").write_text("mine")
    (run / "aside" / "link").symlink_to("/etc/passwd")
    Pusher(objects, run).push()
    assert not [name for name in objects.list("it") if "link" in name]
    plain = objects._fs._plain
    for name in ("it/aside/../../../evil", "it//evil", "../evil/run.json", ".evil/run.json"):
        plain.pipe_file(f"/courier/{name}", b"evil")
    there = tmp_path / "there"
    fetch_heads(objects, there)
    fetch(objects, there / "it")
    assert (there / "it" / "aside" / "my notes (1).txt").read_text() == "mine"
    assert not list(tmp_path.rglob("*evil*"))
    for name in plain.find("/"):
        if "evil" in name:
            plain.rm_file(name)


def test_a_file_that_is_being_uploaded_is_not_written_over(tmp_path):
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.truncate(32 << 20)
    assert is_spare(path)
    (tmp_path / "link").hardlink_to(path)
    assert not is_spare(path)
