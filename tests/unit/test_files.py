"""What a program does to files is done once: the journal, what is hidden, what is cut back."""

from __future__ import annotations

import glob
import os
import random
import shutil
from pathlib import Path

import pytest

from detrain.world.files import Files
from detrain.world.journal import Entry, Journal
from detrain.world.observe import Observer


def _is_here(name):
    return name == __file__


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Begins an attempt in a folder: `rebuilding` is one that resumes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".run").mkdir()
    begun, noted = [], []

    def begin(*, rebuilding=False, looks_only=False):
        for earlier in begun:
            earlier.stop()
            earlier.journal.close()
        begun.clear()
        folder, noted[:] = tmp_path / ".run", []
        observer = Observer(folder, _is_here, noted.append)
        files = Files(
            folder, _is_here, folder, observer, rebuilding=rebuilding, looks_only=looks_only
        )
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


def test_files_are_shown_as_they_were_at_a_checkpoint_and_stay_as_they_are(world):
    files = world()
    Path("old").write_text("old")
    log = open("log", "w")
    log.write("head\nrow 1\n")
    os.mkdir("out")
    other = open("out/log", "w")
    other.write("one\n")
    Path("out/data").write_text("made")
    Path("best").write_text("first")
    Path("gone").write_text("gone")
    os.makedirs("made/deep")
    count, lengths = len(files.journal.entries), files.lengths()
    log.write("later\n")
    log.close()
    other.write("two\n")
    other.close()
    Path("best").write_text("second")
    Path("late").write_text("late")
    os.remove("gone")
    os.rename("made", "moved")
    with open("added", "w") as added:
        added.write("late")

    files = world(rebuilding=True, looks_only=True)
    log = open("log", "w")
    log.write("head\n")
    os.mkdir("out")
    other = open("out/log", "w")
    Path("out/data").write_text("made again")
    assert Path("out/data").read_text() == "made again"
    files.show_at(count, lengths)
    other.write("again\n")
    other.close()
    assert Path("out/log").read_text() == "one\nagain\n"
    assert Path("log").read_text() == "head\nrow 1\n"
    log.write("again\n")
    log.flush()
    assert Path("log").read_text() == "head\nrow 1\nagain\n"
    assert Path("best").read_text() == "first"
    assert Path("gone").read_text() == "gone"
    assert Path("old").read_text() == "old"
    assert os.path.isdir("made/deep")
    assert not any(map(os.path.exists, ("late", "moved", "added")))
    assert names() == ["best", "gone", "log", "made", "old", "out"]

    Path("best").write_text("other")
    Path("late").write_text("again")
    os.mkdir("fresh")
    os.symlink("best", "link")
    os.chmod("old", 0o600)
    os.utime("old", (0, 0))
    os.remove("gone")
    with open("new", "x") as new:
        new.write("new")
    assert [Path(name).read_text() for name in ("best", "late", "link", "new")] == [
        "other", "again", "other", "new",
    ]  # fmt: skip
    assert os.path.isdir("fresh")
    with pytest.raises(FileExistsError):
        os.mkdir("fresh")
    os.makedirs("fresh/deep", exist_ok=True)
    Path("fresh/file").write_text("in it")
    assert Path("fresh/file").read_text() == "in it"
    assert sorted(os.listdir("fresh")) == ["deep", "file"]
    assert not os.path.exists("gone")
    log.close()
    files.stop()
    assert names() == ["added", "best", "late", "log", "moved", "old", "out"]
    assert Path("out/log").read_text() == "one\ntwo\n"
    assert Path("log").read_text() == "head\nrow 1\nlater\n"
    assert Path("best").read_text() == "second"
    assert Path("late").read_text() == "late"
    assert os.stat("old").st_mode & 0o777 != 0o600
    assert os.stat("old").st_mtime > 0


def test_files_born_after_the_checkpoint_are_removed(world):
    files = world()
    Path("before").write_text("x")
    count, lengths = len(files.journal.entries), files.lengths()
    os.mkdir("late")
    Path("late/file").write_text("y")
    files = world(rebuilding=True)
    Path("before").write_text("x")
    assert files.go_live(count, lengths) == []
    assert names() == ["before"]


def names():
    return sorted(name for name in os.listdir() if name != ".run")


def _go_back(world, count, lengths):
    assert world(rebuilding=True).go_live(count, lengths) == []


def test_a_file_that_was_written_anew_has_its_former_content_back(world):
    files = world()
    Path("best").write_text("first")
    os.chmod("best", 0o640)
    count, lengths = len(files.journal.entries), files.lengths()
    Path("best").write_text("second")
    Path("best").write_text("third, and longer")
    assert os.stat("best").st_mode & 0o777 == 0o640
    _go_back(world, count, lengths)
    assert Path("best").read_text() == "first"


def test_what_was_removed_is_there_again(world):
    files = world()
    Path("a").write_text("a")
    os.makedirs("tree/deep")
    Path("tree/deep/file").write_text("deep")
    os.mkdir("empty")
    count, lengths = len(files.journal.entries), files.lengths()
    Path("a").unlink()
    shutil.rmtree("tree")
    os.rmdir("empty")
    with pytest.raises(FileNotFoundError):
        os.remove("a")
    assert names() == []
    Path("a").write_text("another")
    _go_back(world, count, lengths)
    assert names() == ["a", "empty", "tree"]
    assert Path("a").read_text() == "a"
    assert Path("tree/deep/file").read_text() == "deep"


def test_errors_of_removing_are_those_of_the_system(world):
    world()
    os.makedirs("full/inside")
    Path("file").touch()
    with pytest.raises(OSError, match="not empty"):
        os.rmdir("full")
    with pytest.raises(OSError, match="file"):
        os.rmdir("file")
    with pytest.raises(OSError, match="full"):
        os.remove("full")
    with pytest.raises(OSError, match="file"):
        shutil.rmtree("file")
    shutil.rmtree("nowhere", ignore_errors=True)
    assert names() == ["file", "full"]


def test_renames_are_undone_with_what_they_replaced(world):
    files = world()
    for name in ("last", "before-last"):
        Path(name).write_text(name)
    count, lengths = len(files.journal.entries), files.lengths()
    for version in ("one", "two"):  # as programs keep their two latest files
        Path("temporary").write_text(version)
        os.replace("last", "before-last")
        os.rename("temporary", "last")
    os.symlink("last", "latest")
    assert Path("before-last").read_text() == "one"
    _go_back(world, count, lengths)
    assert names() == ["before-last", "last"]
    assert [Path(name).read_text() for name in names()] == names()


def test_a_rename_that_failed_is_not_undone(world):
    files = world()
    Path("best").write_text("good")
    count, lengths = len(files.journal.entries), files.lengths()
    with pytest.raises(FileNotFoundError):
        os.replace("never-written", "best")
    _go_back(world, count, lengths)
    assert names() == ["best"]
    assert Path("best").read_text() == "good"


def test_every_cut_can_be_gone_back_to(world):
    """Whatever a program does to files, going back to a cut gives what was there."""
    draw = random.Random(3)
    for _ in range(40):
        files = world()
        files.begin_again()
        cuts = []
        for _ in range(12):
            content = {name: Path(name).read_text() for name in names()}
            cuts.append((content, len(files.journal.entries), files.lengths()))
            for _ in range(draw.randrange(1, 6)):
                _do_something(draw)
        back = draw.randrange(12)
        for content, count, lengths in reversed(cuts[back:]):
            _go_back(world, count, lengths)
            assert {name: Path(name).read_text() for name in names()} == content


def _do_something(draw):
    one, other = draw.choice("abc"), draw.choice("abc")
    what = draw.choice(["write", "write", "append", "remove", "rename", "replace"])
    if what == "write":
        Path(one).write_text(str(draw.random()))
    elif what == "append":
        with open(one, "a") as file:
            file.write(str(draw.random()))
    elif os.path.exists(one):
        if what == "remove":
            os.remove(one)
        elif one != other:
            getattr(os, what)(one, other)


def test_old_versions_are_given_up_when_no_checkpoint_needs_them(world, tmp_path):
    files = world()
    files.first_loop()
    aside = tmp_path / ".run" / "aside"
    for number in range(5):
        Path("best").write_text(str(number))
        files.lengths()
    assert len(list(aside.iterdir())) == 4
    files.journal.discard(len(files.journal.entries) - 1)
    assert [path.read_text() for path in aside.iterdir()] == ["3"]


def test_setup_finds_what_it_removed_itself(world):
    Path("previous.json").write_text("from before the run")
    Path("log").write_text("old log")

    def setup():
        seen = Path("previous.json").read_text(), os.path.exists("log"), names()
        os.remove("previous.json")
        os.rename("log", "log.old")
        Path("log").write_text("new log")
        assert not os.path.exists("previous.json")
        return (*seen, Path("log.old").read_text())

    files = world()
    first = setup()
    files.first_loop()
    count, lengths = len(files.journal.entries), files.lengths()
    files.journal.discard(count)
    files = world(rebuilding=True)
    assert setup() == first
    assert files.go_live(count, lengths) == []
    assert names() == ["log", "log.old"]
    assert Path("log").read_text() == "new log"


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
    assert Journal(files._scratch.parent).entries == []
    files.journal = Journal(files._scratch.parent)


def test_a_torn_journal(tmp_path):
    journal = Journal(tmp_path)
    journal.add(Entry("/a", born=True))
    journal.add(Entry("/b", born=True))
    journal.close()
    file = tmp_path / "files.jsonl"
    file.write_bytes(file.read_bytes()[:-3])
    again = Journal(tmp_path)
    assert [entry.path for entry in again.entries] == ["/a"]
    again.add(Entry("/c"))
    again.close()
    assert [entry.path for entry in Journal(tmp_path).entries] == ["/a", "/c"]


def test_a_file_that_shrank_is_reported(tmp_path):
    path = tmp_path / "log"
    path.write_text("abc")
    journal = Journal(tmp_path)
    journal.add(Entry(str(path), born=True))
    (trouble,) = journal.cut(1, {str(path): 9})
    assert "had 9 bytes at the checkpoint, it has 3" in trouble
