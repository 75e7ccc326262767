"""Answers of the world that are kept as they are given."""

from __future__ import annotations

from contextlib import closing

import pytest

from detrain.world.answers import Answers


@pytest.fixture
def opened(tmp_path):
    return lambda: closing(Answers(tmp_path / "answers"))


def test_answers_since_a_checkpoint_come_back_once(opened):
    with opened() as answers:
        answers.add("time.time", ("f", "1.0"))
        mark = answers.length
        answers.add("time.time", ("f", "2.0"))
        answers.add("uuid.uuid4", ("uuid", "x"))
    with opened() as again:
        assert again.since(mark) == [("time.time", ("f", "2.0")), ("uuid.uuid4", ("uuid", "x"))]
        assert again.length == mark
        assert again.since(mark) == []
        assert again.since(0) == [("time.time", ("f", "1.0"))]


def test_a_torn_line_and_what_follows_it_are_left_out(opened, tmp_path):
    with opened() as answers:
        answers.add("time.time", ("f", "1.0"))
    path = tmp_path / "answers"
    with path.open("ab") as file:
        file.write(b'["time.time",["f","2')
    with opened() as answers:
        assert answers.since(0) == [("time.time", ("f", "1.0"))]
    path.write_bytes(b'["a",["f","1"]]\nnonsense\n["b",["f","2"]]\n')
    with opened() as answers:
        assert answers.since(0) == [("a", ("f", "1"))]


def test_a_file_that_lost_its_end_has_nothing_to_give(opened):
    with opened() as answers:
        answers.add("time.time", ("f", "1.0"))
    with opened() as answers:
        assert answers.since(10_000) == []
        assert answers.since(0) == [("time.time", ("f", "1.0"))]
