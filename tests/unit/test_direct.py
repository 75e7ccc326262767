"""What is written past the page cache is what was given, however it lies in memory."""

from __future__ import annotations

import mmap
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detrain.checkpoint import direct
from detrain.checkpoint.buffers import PAGE, WINDOW, Arena, Once
from detrain.checkpoint.commit import _pieces
from detrain.checkpoint.direct import Sequential
from detrain.checkpoint.durable import is_spare, write_durably
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.snapshot import Snapshot
from detrain.state import StateTree

SOURCE = memoryview(mmap.mmap(-1, 6 << 20))
SOURCE[:] = bytes(range(251)) * ((6 << 20) // 251) + bytes((6 << 20) % 251)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("direct")


def written(folder, chunks):
    path = folder / "file"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    content = Sequential(file)
    for chunk in chunks:
        content.write(chunk)
    size = content.finish()
    os.close(file)
    found = path.read_bytes()
    assert len(found) == size
    return found


sizes = st.one_of(
    st.integers(0, 3 * PAGE),
    st.integers(0, len(SOURCE)),
    st.sampled_from([0, PAGE, 8 * PAGE, direct._WORTH_IT, direct._ROOM, direct._ROOM + PAGE]),
)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(st.one_of(st.just(0), st.integers(0, PAGE)), sizes), max_size=5))
def test_any_pieces(folder, pieces):
    views = [SOURCE[start : start + size] for start, size in pieces]
    assert written(folder, views) == b"".join(map(bytes, views))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 64), st.lists(st.integers(0, 2 << 20), min_size=1, max_size=4))
def test_pieces_that_follow_each_other_behind_a_header(folder, head, sizes):
    header, views, at = b"h" * (head * 64), [], 0
    for size in sizes:
        views.append(SOURCE[at : at + size])
        at = min(at + size, len(SOURCE))
    assert written(folder, [header, *views]) == header + bytes(SOURCE[:at])


def test_memory_that_lies_right_goes_past_the_page_cache(folder, monkeypatch):
    flags = []
    plain = os.pwrite

    def watched(file, data, at):
        import fcntl

        flags.append((len(data), bool(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT)))
        return plain(file, data, at)

    monkeypatch.setattr(os, "pwrite", watched)
    header = bytes(PAGE)
    assert written(folder, [header, SOURCE[: 4 << 20], b"tail"])[-4:] == b"tail"
    if not any(direct for _, direct in flags):
        pytest.skip("this file system has no direct writes")
    assert (4 << 20, True) in flags  # in one piece, as it lies
    assert flags[-1] == (4, False)


def test_a_file_system_that_refuses_gets_plain_writes(folder, monkeypatch):
    plain = os.pwrite

    def refusing(file, data, at):
        import fcntl

        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return plain(file, data, at)

    monkeypatch.setattr(os, "pwrite", refusing)
    assert written(folder, [SOURCE[: 3 << 20]]) == bytes(SOURCE[: 3 << 20])


def test_a_spare_file_is_written_over(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(bytes(20 << 20))
    assert is_spare(old)
    with old.open("rb"):
        assert not is_spare(old)  # somebody reads it
    number = old.stat().st_ino
    assert write_durably(new, [SOURCE[:5000]], "data", spare=old) == 5000
    assert new.read_bytes() == bytes(SOURCE[:5000])
    assert (new.stat().st_ino, old.exists()) == (number, False)
    assert not is_spare(new)  # too small to be worth it


def test_an_error_leaves_nothing_behind(tmp_path):
    def chunks():
        yield b"some"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_durably(tmp_path / "file", chunks(), "data")
    assert list(tmp_path.iterdir()) == []


def test_a_block_is_used_again_when_the_one_before_is_done():
    arena = Arena()
    first = arena.turn(1 << 20)
    second = arena.turn((1 << 20) - 5)
    assert first.memory.obj is second.memory.obj
    assert not first.ended.is_set()
    first.done()
    second.wait()
    memory, give_back = arena.block(1 << 20)
    again, _ = arena.block(1 << 20)
    assert again.obj is not memory.obj
    give_back()
    assert arena.block(1 << 20)[0].obj is memory.obj


def test_there_is_no_more_room_to_write_from_than_the_state_takes():
    arena, found = Arena(), []
    for nbytes in (1000, 3 * WINDOW, 20 * WINDOW, 1000):
        turn = arena.turn(nbytes)
        found.append(len(turn.room) // WINDOW)
        turn.done()
    assert found == [1, 3, 8, 8]


def test_what_happens_once_may_be_said_twice():
    once = Once()
    waits = [threading.Thread(target=once.wait) for _ in range(8)]
    for each in waits:
        each.start()
    assert not once.is_set()
    says = [threading.Thread(target=once.set) for _ in range(8)]
    for each in says:
        each.start()
    for each in (*says, *waits):
        each.join()
    once.set()
    once.wait()
    assert once.is_set()


def test_the_state_at_a_cut_goes_where_that_at_the_beginning_of_the_loop_was():
    arena = Arena()
    memory, give_back = arena.block(1 << 20)
    give_back()
    assert arena.turn((1 << 20) - 5).memory.obj is memory.obj
    assert arena.block(1 << 20)[0].obj is not memory.obj


def test_arrays_that_follow_each_other_are_one_piece():
    block = Arena().turn(1 << 20).memory
    block[:30] = bytes(range(30))
    views = [(0, 10), (10, 20), (21, 30)]
    arrays = [ArrayBytes(str(a), "uint8", (b - a,), block[a:b], a) for a, b in views]
    arrays.append(ArrayBytes("apart", "uint8", (1,), b"x"))
    made = Snapshot(StateTree((), (), ()), tuple(arrays), {})
    _, *pieces = _pieces(made, arrays)
    assert [bytes(piece) for piece in pieces] == [bytes(block[:20]), bytes(block[21:30]), b"x"]


def test_children_can_drop_what_they_have_of_the_memory():
    block = Arena().turn(1 << 20).memory
    child = os.fork()
    if child == 0:
        del block
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    block[:5] = b"still"
