"""Answers of the world that are kept as they are given."""

from __future__ import annotations

from detrain.world.answers import Answers


def test_answers_since_a_checkpoint_come_back_once(tmp_path):
    answers = Answers(tmp_path / "answers")
    answers.add("time.time", ("f", "1.0"))
    mark = answers.length
    answers.add("time.time", ("f", "2.0"))
    answers.add("uuid.uuid4", ("uuid", "x"))
    answers.close()
    again = Answers(tmp_path / "answers")
    assert again.since(mark) == [("time.time", ("f", "2.0")), ("uuid.uuid4", ("uuid", "x"))]
    assert again.length == mark
    assert again.since(mark) == []
    assert again.since(0) == [("time.time", ("f", "1.0"))]


def test_a_torn_line_and_what_follows_it_are_left_out(tmp_path):
    path = tmp_path / "answers"
    answers = Answers(path)
    answers.add("time.time", ("f", "1.0"))
    answers.close()
    with path.open("ab") as file:
        file.write(b'["time.time",["f","2')
    assert Answers(path).since(0) == [("time.time", ("f", "1.0"))]
    path.write_bytes(b'["a",["f","1"]]\nnonsense\n["b",["f","2"]]\n')
    assert Answers(path).since(0) == [("a", ("f", "1"))]


def test_a_file_that_lost_its_end_has_nothing_to_give(tmp_path):
    path = tmp_path / "answers"
    Answers(path).add("time.time", ("f", "1.0"))
    answers = Answers(path)
    assert answers.since(10_000) == []
    assert answers.since(0) == [("time.time", ("f", "1.0"))]
