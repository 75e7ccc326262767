"""Arrays that are laid out once, and what is written of those that were copied at the cut."""

from __future__ import annotations

import pytest

from detrain.checkpoint.arranged import Laid
from detrain.checkpoint.commit import save_state
from detrain.checkpoint.copying import Abandoned
from detrain.checkpoint.format import read_arrays
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.store import LocalStore
from detrain.frameworks.base import LiveLeaf
from detrain.state import StateTree

LEAVES = [LiveLeaf(name, None, None, size, "uint8", (size,)) for name, size in (("a", 3), ("b", 5))]


def test_the_same_memory_gives_the_same_arrays():
    laid, memory = Laid(LEAVES), memoryview(bytearray(b"aaabbbbb----"))
    arrays = laid.within(memory[:8])
    assert [(x.name, bytes(x.data), x.at) for x in arrays] == [("a", b"aaa", 0), ("b", b"bbbbb", 3)]
    assert laid.within(memory[:8]) is arrays
    assert laid.nbytes == 8


def test_memory_of_the_same_content_is_not_the_same():
    laid = Laid(LEAVES)
    one, other = bytearray(b"aaabbbbb"), bytearray(b"aaabbbbb")
    laid.within(memoryview(one))
    arrays = laid.within(memoryview(other))
    other[0] = ord("x")
    assert bytes(arrays[0].data) == b"xaa"


def test_neither_is_another_part_of_it():
    laid, memory = Laid(LEAVES), memoryview(bytearray(b"aaabbbbbAAABBBBB"))
    assert [x.at for x in laid.within(memory)] == [0, 3]
    arrays = laid.within(memory[8:], 8)
    assert [(bytes(x.data), x.at) for x in arrays] == [(b"AAA", 8), (b"BBBBB", 11)]


@pytest.fixture
def snapshot():
    memory = memoryview(bytearray(b"aaabbbbb"))
    arrays = Laid(LEAVES).within(memory)
    return Snapshot(StateTree((), (), ()), arrays, {}, at_once=memory)


def test_what_was_copied_at_the_cut_is_written_in_one_piece(snapshot, tmp_path):
    state = save_state(LocalStore(tmp_path), snapshot, "1")
    found = read_arrays(tmp_path / state.file)
    assert {name: bytes(data) for name, data in found.items()} == {"a": b"aaa", "b": b"bbbbb"}
    assert state.digests.keys() == {"a", "b"}


def test_not_if_it_is_given_up(snapshot, tmp_path):
    snapshot.give_up()
    with pytest.raises(Abandoned):
        save_state(LocalStore(tmp_path), snapshot, "1")
    assert not list(tmp_path.iterdir())
