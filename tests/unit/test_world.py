from __future__ import annotations

import io
import os
import sys

import pytest

from detrain.state import Node, StateTree
from detrain.world.output import OutputLog
from detrain.world.screen import settled
from detrain.world.surroundings import Surroundings, without_floats_of_libraries


@pytest.fixture
def plain(monkeypatch):
    """Replaces `sys.stdout` when called: before, pytest has it."""

    def replace():
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stdout", stream)
        return stream

    return replace


def kept(folder):
    return (folder / "stdout.log").read_text()


def test_output_reaches_terminal_and_file(tmp_path, plain):
    terminal = plain()
    log = OutputLog(tmp_path, rebuilding=False)
    log.start()
    print("one")
    sys.stdout.writelines(["two\n"])
    log.stop()
    print("after")
    log.close()
    assert terminal.getvalue() == "one\ntwo\nafter\n"
    assert kept(tmp_path) == "one\ntwo\n"


def test_what_is_printed_while_rebuilding_is_kept_once(tmp_path, plain):
    terminal = plain()
    first = OutputLog(tmp_path, rebuilding=False)
    first.start()
    print("setup")
    mark = first.lengths()
    print("lost with the crash")
    first.stop()
    first.close()
    again = OutputLog(tmp_path, rebuilding=True)
    again.start()
    print("setup")
    again.go_live(mark)
    print("done anew")
    again.stop()
    again.close()
    assert kept(tmp_path) == "setup\ndone anew\n"
    assert terminal.getvalue() == "setup\nlost with the crash\ndone anew\n"


def test_what_is_durable_is_not_synced_again(tmp_path, plain, monkeypatch):
    plain()
    log = OutputLog(tmp_path, rebuilding=False)
    synced, names = [], {log._files[name]: name for name in log._files}
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(names[file]))
    log.start()
    for text in ("one", "", "two"):
        sys.stdout.write(text)
        log.sync()
    assert synced == ["stdout", "stderr", "stdout"]
    log.go_live({"stdout": 3, "stderr": 0})
    print("22", end="")
    print("2", end="")
    log.sync()
    log.stop()
    log.close()
    assert synced == ["stdout", "stderr", "stdout", "stdout", "stderr"]


def test_a_terminal_shows_rebuilding_dimmed(tmp_path, plain, monkeypatch):
    terminal = plain()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    log = OutputLog(tmp_path, rebuilding=True)
    log.start()
    print("setup")
    log.stop()
    log.close()
    assert terminal.getvalue() == "\x1b[2msetup\x1b[22m\n"


def test_a_forked_worker_does_not_write_to_the_log(tmp_path, plain):
    plain()
    log = OutputLog(tmp_path, rebuilding=False)
    log.start()
    pid = os.fork()
    if pid == 0:
        sys.stdout.write("from a worker")
        os._exit(0)
    os.waitpid(pid, 0)
    log.stop()
    log.close()
    assert kept(tmp_path) == ""


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\ntext \n", "plain\ntext \n"),
        ("lines of\r\nanother system\r\n", "lines of\r\nanother system\r\n"),
        ("\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
        ("0%\r50%\r100%\nnext\n", "100%\nnext\n"),
        ("a long one\rshort\n", "shortg one\n"),
        ("a long one\r\x1b[Kshort\n", "short\n"),
        ("bar 1\r     \rafter", "after"),
        ("outer 0\n\rinner 0\x1b[A\router 1\n\rinner 9\n", "outer 1\ninner 9\n"),
        ("12\b3\n", "13\n"),
        ("", ""),
    ],
)
def test_what_is_written_over_is_not_shown(written, shown):
    assert settled(written) == shown
    assert settled(settled(written)) == settled(written)


def test_values_that_speak_of_the_surroundings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = Surroundings()
    assert not known.decide(("s", "job__1794794856"))
    known.learn(("time.time", ("f", "1794794856.25")))
    known.learn(("uuid.uuid4", ("uuid", "0f8fad5b-d9cb-469f-a165-70867728950e")))
    for scalar in (
        ("f", "0.5"),
        ("s", "job__1794794856"),
        ("i", "1794794856250"),
        ("s", "run-0f8fad5bd9cb469fa16570867728950e"),
        ("s", f"{tmp_path}/out"),
        ("array", "__main__/info['episode']['t']"),
    ):
        assert known.decide(scalar), scalar
    for scalar in (
        ("i", "3"), ("s", "epoch 12"), ("s", "job"), ("b", "1"), ("i", "1794794999"),
        ("array", "model.weight"), ("array", "episode_start_times_of_mine"),
    ):  # fmt: skip
        assert not known.decide(scalar), scalar


def test_floats_that_objects_of_libraries_keep_are_not_compared():
    def tree(times, mine):
        nodes = (
            Node("object", "project:Trainer", fields=(("env", 1), ("rate", ("f", mine)))),
            Node("object", "library:Timer", (4,), fields=(("began", ("f", times)), ("laps", 2))),
            Node("list", items=(("f", times), ("i", "7"), 3)),
            Node("object", "project:Meter", fields=(("mean", ("f", mine)),)),
            Node("list", text=f"[1, {times}]"),
        )
        paths = ("a", "a.env", "a.env.laps", "a.env.laps[2]", "a.env[0]")
        made = StateTree((("a", 0),), nodes, paths)
        return without_floats_of_libraries(made, lambda module: module == "project")

    assert tree("1.0", "0.5") == tree("2.0", "0.5")
    assert tree("1.0", "0.5") != tree("1.0", "0.6")
    assert tree("1.0", "0.5").nodes[2].items[1] == ("i", "7")
    assert tree("1.0", "0.5").nodes[3].fields == (("mean", ("f", "0.5")),)
