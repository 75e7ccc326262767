"""Whatever the disk does, what was committed stays, and the error says what happened."""

from __future__ import annotations

import contextlib
import errno
import os
import resource

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
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.manifest import Manifest, SavedLevel
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.retention import Retention
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint, Unwritable
from detrain.state import StateTree
from detrain.testing import Fault, faulty
from detrain.testing.faults import CALLS
from detrain.trace.append import append
from detrain.trace.log import EMPTY, TraceWriter, read_trace

BIG = 5 << 18
CODES = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def snapshot(fill):
    data = bytes([fill]) * BIG
    return Snapshot(StateTree((), (), ()), (ArrayBytes("x", "uint8", (BIG,), data),), {})


def commit(store, step):
    saved = save_state(store, snapshot(step), f"{step:08d}")
    levels = (SavedLevel("site", 0, "", "", "", (), saved),)
    publish(store, Manifest(step, 0.0, (), levels, EMPTY, {}))
    retire(store, Retention(last=1), lambda _: None, {})


def newest(folder):
    store = LocalStore(folder)
    store.sweep()
    return load_newest(store, lambda error, _: pytest.fail(str(error))).step


def test_every_call_of_a_commit_may_fail(tmp_path):
    """Each call, one after the other, with some error: the old checkpoint or the new one."""
    commit(LocalStore(tmp_path / "0"), 1)
    with faulty(tmp_path) as counts:
        commit(LocalStore(tmp_path / "0"), 2)
    assert counts["fsync"] >= 4
    assert counts["pwrite"] >= 2
    number, outcomes = 0, set()
    for call in CALLS:
        for at in range(1, counts[call] + 1):
            number += 1
            store = LocalStore(tmp_path / str(number))
            commit(store, 1)
            fault = Fault(call, at, at, CODES[number % len(CODES)])
            with faulty(store.folder, fault), contextlib.suppress(OSError):
                commit(store, 2)
            outcomes.add(newest(store.folder))
            commit(LocalStore(store.folder), 3)  # the disk is well again
            assert newest(store.folder) == 3
            assert not list(store.folder.glob("*.staged"))
    assert outcomes == {1, 2}


def history(folder):
    store = LocalStore(folder)
    for step in (1, 2, 3):
        saved = save_state(store, snapshot(step), f"{step:08d}")
        levels = (SavedLevel("site", 0, "", "", "", (), saved),)
        publish(store, Manifest(step, 0.0, (), levels, EMPTY, {}))
    return store


def contents(store):
    states = [read_checkpoint(store, step).levels[-1].state for step in (1, 2, 3)]
    return [bytes(verified_arrays(store, state)["x"][:9]) for state in states]


@pytest.mark.slow
def test_every_call_of_a_compaction_may_fail(tmp_path):
    """All checkpoints are there, compacted or not, and what failed is said."""
    before = contents(history(tmp_path / "0"))
    with faulty(tmp_path) as counts:
        done = compact(LocalStore(tmp_path / "0"), 1, alone=True)
    assert done.steps == [1, 2]
    number = 0
    for call in CALLS:
        for at in range(1, counts[call] + 1):
            number += 1
            store = history(tmp_path / str(number))
            fault = Fault(call, at, at, CODES[number % len(CODES)])
            # What fails once is tried again; what can't be looked into at all is an error.
            ignored = contextlib.suppress(OSError, DamagedCheckpoint)
            with faulty(store.folder, fault), ignored:
                assert not compact(store, 1, alone=True).troubles
            assert contents(store) == before
            again = compact(LocalStore(store.folder), 1, alone=True)
            assert not again.troubles
            assert contents(store) == before
            assert len(list(store.folder.glob("*-packed.safetensors"))) == 2
            assert len(list(store.folder.glob("*.safetensors"))) == 3
            assert not list(store.folder.glob("*.packing"))
    store = history(tmp_path / "for good")
    with faulty(store.folder, Fault("fsync", errno=errno.EIO)):
        told = compact(store, 1, alone=True).troubles
    assert [each.partition(" stays")[0] for each in told] == [
        "the checkpoint of step 1",
        "the checkpoint of step 2",
    ]
    assert contents(store) == before


def test_a_compaction_on_a_disk_that_takes_no_more(tmp_path):
    store = history(tmp_path)
    before = contents(store)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, limits[1]))
    try:
        done = compact(store, 1, alone=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "stays as it is: [Errno 27] File too large" in done.troubles[0]
    assert contents(store) == before
    assert compact(store, 1, alone=True).steps == [1, 2]


def test_the_order_of_checkpoints_is_that_of_steps_whatever_the_clock_said(tmp_path):
    store = LocalStore(tmp_path)
    for step, created in ((1, 5e9), (2, -5e9), (3, 0.0), (4, -1.0)):
        saved = save_state(store, snapshot(step), f"{step:08d}")
        levels = (SavedLevel("site", 0, "", "", "", (), saved),)
        publish(store, Manifest(step, created, (), levels, EMPTY, {}))
    assert newest(tmp_path) == 4
    retire(store, Retention(last=2), lambda _: None, {})
    assert manifest_steps(store) == [3, 4]


def test_a_disk_that_takes_no_more(tmp_path):
    store = LocalStore(tmp_path)
    commit(store, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (BIG // 2, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            commit(store, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert newest(tmp_path) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0000000001.json", "00000001.safetensors",
    ]  # fmt: skip


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a file system of its own")
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_real_file_system(tmp_path, how):
    place = tmp_path / "disk"
    place.mkdir()
    if os.system(f"mount -t tmpfs -o size=2m tmpfs {place}") != 0:
        pytest.skip("mounting is not allowed here")
    try:
        store = LocalStore(place / "store")
        commit(store, 1)
        if how == "read-only":
            os.system(f"mount -o remount,ro {place}")
        with pytest.raises(OSError, match=r"No space left|Read-only"):
            commit(store, 2)
        if how == "read-only":
            os.system(f"mount -o remount,rw {place}")
        assert newest(store.folder) == 1
    finally:
        os.system(f"umount {place}")


def test_a_line_is_added_whole_or_not_at_all(tmp_path):
    path = tmp_path / "lines"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    append(file, b"first\n", "it")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9, before[1]))
    try:
        with pytest.raises(Unwritable, match="it can't be written: File too large"):
            append(file, b"second\n", "it")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"first\n"
    append(file, b"third\n", "it")
    os.close(file)
    assert path.read_bytes() == b"first\nthird\n"


def test_a_trace_is_whole_after_a_full_disk(tmp_path):
    path = tmp_path / "trace.jsonl"
    writer = TraceWriter(path, EMPTY)
    writer.add(1, (), "site", 0, {}, "")
    writer.flush()
    writer.add(2, (), "site", 1, {}, "")
    with faulty(tmp_path, Fault("write", errno=errno.ENOSPC)), pytest.raises(Unwritable):
        writer.flush()
    writer.add(3, (), "site", 2, {}, "")
    writer.close()
    assert [event.step for event, _ in read_trace(path).events] == [1, 2, 3]
