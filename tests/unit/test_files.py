"""What a program does to files is done once: the journal, what is hidden, what is cut back."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest

from detrain.world.files import Files
from detrain.world.journal import Entry, Journal, cut_back


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Begins an attempt in a folder: `rebuilding` is one that resumes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".run").mkdir()
    begun = []

    def begin(*, rebuilding=False):
        for earlier in begun:
            earlier.stop()
            earlier.journal.close()
        begun.clear()
        files = Files(
            tmp_path / ".run", lambda name: name == __file__, tmp_path / ".run",
            rebuilding=rebuilding,
        )  # fmt: skip
        begun.append(files)
        files.start()
        return files

    yield begin
    for files in begun:
        files.stop()
        files.journal.close()


def test_what_the_run_made_is_invisible_until_it_is_made_again(world):
    world()
    Path("old.txt").touch()
    os.makedirs("out/deep")
    Path("out/log").write_text("first")
    world(rebuilding=True)
    assert not os.path.exists("out")
    assert not Path("out/log").exists()
    assert "out" not in os.listdir()
    assert glob.glob("out*") == []
    assert "out" not in [entry.name for entry in os.scandir()]
    with pytest.raises(FileNotFoundError):
        open("out/log")
    os.makedirs("out/deep")  # without exist_ok: as the first time
    assert os.path.isdir("out")
    assert not os.path.exists("out/log")


def test_what_is_written_while_rebuilding_reaches_no_real_file(world):
    files = world()
    with open("log", "w") as log:
        log.write("head\nrow 1\nrow 2\n")
    count, lengths = len(files.journal.entries), files.lengths()
    with open("log", "a") as log:
        log.write("after the checkpoint\n")
    files = world(rebuilding=True)
    kept = open("log", "w")
    kept.write("head\n")
    with open("log") as again:
        again.read()
    with files._real_open("log") as real:
        assert real.read().endswith("after the checkpoint\n")
    assert files.go_live(count, lengths) == []
    kept.write("row 3\n")
    kept.close()
    assert Path("log").read_text() == "head\nrow 1\nrow 2\nrow 3\n"


def test_files_born_after_the_checkpoint_are_removed(world):
    files = world()
    Path("before").write_text("x")
    count, lengths = len(files.journal.entries), files.lengths()
    os.mkdir("late")
    Path("late/file").write_text("y")
    Path("before").write_text("rewritten as a whole")
    files = world(rebuilding=True)
    Path("before").write_text("x")
    assert files.go_live(count, lengths) == []
    assert sorted(name for name in os.listdir() if name != ".run") == ["before"]
    assert Path("before").read_text() == "rewritten as a whole"


def test_starting_over_undoes_everything(world):
    Path("mine").write_text("the user's")
    world()
    with open("mine", "a") as mine:
        mine.write(" and the run's")
    Path("new").write_text("x")
    files = world()
    assert files.begin_again() == []
    assert Path("mine").read_text() == "the user's"
    assert not Path("new").exists()


def test_what_others_open_is_not_looked_at(world, tmp_path):
    files = world()
    files._owns = lambda name: False
    Path("library-cache").write_text("x")
    assert files.journal.entries == []


def test_a_forked_worker_is_not_looked_at(world):
    files = world()
    pid = os.fork()
    if pid == 0:
        Path("from-a-worker").write_text("x")
        os._exit(0)
    os.waitpid(pid, 0)
    assert Path("from-a-worker").exists()
    files.journal.close()
    assert Journal(files._scratch.parent / "files.jsonl").entries == []
    files.journal = Journal(files._scratch.parent / "files.jsonl")


def test_a_torn_journal(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.add(Entry("/a", born=True))
    journal.add(Entry("/b", born=True))
    journal.close()
    raw = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(raw[:-3])
    again = Journal(tmp_path / "j")
    assert [entry.path for entry in again.entries] == ["/a"]
    again.add(Entry("/c"))
    again.close()
    assert [entry.path for entry in Journal(tmp_path / "j").entries] == ["/a", "/c"]


def test_a_file_that_shrank_is_reported(tmp_path):
    path = tmp_path / "log"
    path.write_text("abc")
    (trouble,) = cut_back([Entry(str(path), born=True)], 1, {str(path): 9})
    assert "had 9 bytes at the checkpoint, it has 3" in trouble
