"""Object stores through fsspec: atomic, tried again, verified. Memory and local here."""

from __future__ import annotations

import threading

import pytest

from detrain.checkpoint.commit import load_newest, publish, retire, save_state
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.manifest import Manifest, SavedLevel
from detrain.checkpoint.objects import Objects, ObjectStore, is_address
from detrain.checkpoint.retention import Retention
from detrain.checkpoint.snapshot import Snapshot
from detrain.errors import DamagedCheckpoint, StoreUnavailable, UsageError
from detrain.state import StateTree
from detrain.trace.log import EMPTY


@pytest.fixture(params=["memory", "file"])
def objects(request, tmp_path):
    address = "memory://bucket/pre" if request.param == "memory" else f"file://{tmp_path}/bucket"
    made = Objects(address)
    yield made
    made.remove(made.list())


def snapshot(fill):
    return Snapshot(StateTree((), (), ()), (ArrayBytes("x", "uint8", (3,), bytes([fill] * 3)),), {})


def test_what_is_an_address():
    assert is_address("s3://bucket/prefix")
    assert not is_address(".detrain")
    assert not is_address("/tmp/x")


def test_objects_come_and_go(objects, tmp_path):
    (tmp_path / "source").write_bytes(b"content")
    found = objects.put("run/a/b", tmp_path / "source")
    assert found.size == 7
    assert objects.list() == {"run/a/b": found}
    assert objects.list("run") == {"run/a/b": found}
    assert objects.list("nothing") == {}
    assert objects.read("run/a/b") == b"content"
    objects.get("run/a/b", tmp_path / "deep" / "target")
    assert (tmp_path / "deep" / "target").read_bytes() == b"content"
    objects.put_bytes("run/c", b"1", new=True)
    with pytest.raises(FileExistsError):
        objects.put_bytes("run/c", b"2", new=True)
    assert objects.read("run/c") == b"1"
    objects.remove(["run/a/b", "run/a/b", "never"])
    assert list(objects.list()) == ["run/c"]
    with pytest.raises(FileNotFoundError):
        objects.read("run/a/b")
    with pytest.raises(DamagedCheckpoint, match="at most"):
        objects.read("run/c", 0)
    for name in ("/etc/passwd", "../x", "a/../../x"):
        with pytest.raises(UsageError):
            objects.put_bytes(name, b"")


def test_a_store_of_objects_holds_checkpoints(objects, tmp_path):
    store = ObjectStore(objects, tmp_path / "cache")
    for step in (1, 2, 3):
        saved = save_state(store, snapshot(step), f"{step:08d}")
        levels = (SavedLevel("site", 0, "", "", "", (), saved),)
        publish(store, Manifest(step, 0.0, (), levels, EMPTY, {}))
        retire(store, Retention(last=2), lambda _: None, {})
    assert store.names() == [
        "0000000002.json", "0000000003.json", "00000002.safetensors", "00000003.safetensors",
    ]  # fmt: skip
    newest = load_newest(store, lambda error, _: pytest.fail(str(error)))
    assert newest.step == 3
    state = newest.levels[0].state
    assert bytes(store.arrays(state.file, state.bytes)["x"]) == b"\3\3\3"
    # Another content under the same name is not taken for the copy that is here.
    saved = save_state(store, snapshot(9), "00000003")
    assert bytes(store.arrays(saved.file, saved.bytes)["x"]) == b"\x09\x09\x09"
    with pytest.raises(DamagedCheckpoint, match="were written"):
        store.arrays(state.file, state.bytes + 1)
    with pytest.raises(DamagedCheckpoint, match="missing"):
        store.arrays("00000007.safetensors", 1)
    with pytest.raises(DamagedCheckpoint, match="missing"):
        store.read("gone.json")


class Flaky:
    """A file system that fails in a chosen way a few times."""

    def __init__(self, plain, failures):
        self._plain, self.failures = plain, list(failures)

    def __getattr__(self, name):
        found = getattr(self._plain, name)
        if name not in ("put_file", "get_file", "cat_file", "find", "rm_file", "pipe_file"):
            return found

        def failing(*args, **kwargs):
            if self.failures:
                raise self.failures.pop(0)
            return found(*args, **kwargs)

        return failing


def flaky(failures, pauses=(1.0, 2.0)):
    import fsspec

    slept = []
    made = Objects(
        "memory://flaky", pauses, slept.append, Flaky(fsspec.filesystem("memory"), failures)
    )
    return made, slept


def test_what_fails_for_a_moment_is_tried_again(tmp_path):
    (tmp_path / "x").write_bytes(b"1")
    objects, slept = flaky([TimeoutError("slow"), ConnectionResetError("gone")])
    objects.put("x", tmp_path / "x")
    assert slept == [1.0, 2.0]
    assert objects.read("x") == b"1"


def test_what_fails_for_good_is_said(tmp_path):
    (tmp_path / "x").write_bytes(b"1")
    objects, slept = flaky([OSError("down")] * 3)
    with pytest.raises(StoreUnavailable, match=r"memory://flaky/x .*after 3 attempts.*down"):
        objects.put("x", tmp_path / "x")
    assert slept == [1.0, 2.0]
    objects, slept = flaky([PermissionError("no")])
    with pytest.raises(StoreUnavailable, match="credentials"):
        objects.put("x", tmp_path / "x")
    assert not slept


def test_an_upload_that_arrives_short_is_tried_again(tmp_path):
    (tmp_path / "x").write_bytes(b"12345")
    objects, slept = flaky([])
    plain, short = objects._fs.put_file, [True]

    def cut(source, target, **kwargs):
        plain(source, target, **kwargs)
        if short.pop() if short else False:
            objects._fs._plain.pipe_file(target, b"123")

    objects._fs.put_file = cut
    assert objects.put("x", tmp_path / "x").size == 5
    assert slept == [1.0]


def test_without_the_package_the_way_is_said():
    with pytest.raises(UsageError, match="pip install"):
        Objects("nosuchprotocol://x")


def test_readers_see_the_old_file_or_the_new_one(tmp_path):
    objects = Objects(f"file://{tmp_path}/bucket")
    sizes, done = (1 << 20, 3 << 20), threading.Event()
    for number, size in enumerate(sizes):
        (tmp_path / str(number)).write_bytes(bytes([number]) * size)
    objects.put("x", tmp_path / "0")

    def write():
        for number in range(30):
            objects.put("x", tmp_path / str(number % 2))
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    path = tmp_path / "bucket" / "x"
    while not done.is_set():
        assert path.stat().st_size in sizes
        raw = path.read_bytes()
        assert (len(raw), set(raw)) in [(sizes[0], {0}), (sizes[1], {1})]
    thread.join()
