"""What could not be made anew on resume is found when it is saved, and nothing else is."""

from __future__ import annotations

import collections
import enum
import logging
import math
import os
import shutil
import tempfile
import threading
import types
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from detrain.capture.restore import restore
from detrain.capture.returning import Returning
from detrain.capture.walk import walk
from detrain.checkpoint.snapshot import take
from detrain.errors import ResumeMismatch


class Job:
    def __init__(self, **fields):
        vars(self).update(fields)


class Kind(enum.Enum):
    ONE = 1


def helper():
    return 1


def make_local():
    class Local:
        pass

    return Local


def owns(file):
    return file == __file__


BORN = {
    "a function of the system": lambda: Job(call=os.path.join),
    "one that removes": lambda: [shutil.rmtree],
    "a class of a library": lambda: {"kind": tempfile.TemporaryDirectory},
    "an object that acts": lambda: Job(thread=threading.local),
    "a built-in that opens": lambda: Job(call=open),
    "a function of its own": lambda: Job(call=helper),
    "one that is hard to find": lambda: Job(call=torch.relu),
    "a weak reference": lambda: Job(to=weakref.ref(helper)),
    "a lock": lambda: [threading.Lock()],
    "a lambda": lambda: Job(call=lambda: 1),
    "a local class": lambda: [make_local()()],
    "what computes": lambda: Job(calls=[math.sqrt, len, torch.nn.functional.relu]),
    "a module": lambda: torch.nn.Linear(2, 2),
    "plain containers": lambda: [{"a": (1, {2}), "b": collections.deque([3])}, Kind.ONE],
    "a namespace": lambda: types.SimpleNamespace(x=1),
    "an error": lambda: Job(error=ValueError("x")),
    "a logger": lambda: Job(log=logging.getLogger("detrain.test")),
    "a path": lambda: Job(path=Path("x")),
    "tensors": lambda: Job(x=torch.ones(3), y=np.ones(2)),
}


def came_back(what, present):
    """Whether restore makes what was born, in a program that has what was there before."""
    made = {"job": Job(held=[*present])}
    made["job"].born = BORN[what]()
    walked = walk(made, owns)
    snapshot = take(walked.tree, walked.leaves)
    data = {array.name: memoryview(array.data) for array in snapshot.arrays}
    again = {"job": Job(held=[*present])}
    try:
        restore(walked.tree, again, data.__getitem__, owns=owns)
    except ResumeMismatch as error:
        return error
    return None


@pytest.mark.parametrize("what", BORN)
@pytest.mark.parametrize("present", [(), (os.path.join, shutil.rmtree)])
def test_it_is_what_restore_refuses(what, present):
    returning = Returning(owns)
    before = returning.present(walk({"job": Job(held=[*present])}, owns).tree)
    made = {"job": Job(held=[*present])}
    made["job"].born = BORN[what]()
    lost = list(returning.lost(walk(made, owns), before))
    refused = came_back(what, present)
    assert bool(lost) == (refused is not None), (lost, refused)
    if lost:
        assert lost[0].path == refused.where


def test_both_kinds_are_among_these():
    outcomes = {what: came_back(what, ()) is None for what in BORN}
    assert not outcomes["a function of the system"]
    assert not outcomes["one that removes"]
    assert outcomes["what computes"]
    assert sum(outcomes.values()) > 5


def test_what_was_there_is_not_lost():
    returning = Returning(owns)
    made = {"job": Job(call=os.path.join, folder=[tempfile.TemporaryDirectory])}
    walked = walk(made, owns)
    present = returning.present(walked.tree, walked)
    assert list(returning.lost(walk(made, owns), present)) == []
    made["job"].more = shutil.copy
    (lost,) = returning.lost(walk(made, owns), present)
    assert (lost.path, lost.name) == ("job.more", "shutil:copy")


def test_it_is_there_by_whatever_way():
    returning = Returning(owns)
    made = {"trainer": Job(lock=threading.Lock(), inner=Job(lock=threading.Lock()))}
    walked = walk(made, owns)
    present = returning.present(walked.tree, walked)
    again = {"best": Job(of=made["trainer"].inner), **made, "a": made["trainer"]}
    assert list(returning.lost(walk(again, owns), present)) == []
    from_a_file = returning.present(walked.tree)
    assert list(returning.lost(walk(again, owns), from_a_file)) == []
    again["trainer"].more = [threading.Lock(), os.path.join]
    lost = [each.name for each in returning.lost(walk(again, owns), present)]
    assert lost == ["_thread:lock", "posixpath:join"]
    assert [each.name for each in returning.lost(walk(again, owns), from_a_file)] == [
        "posixpath:join"
    ]


def test_a_variable_is_left_to_the_program():
    returning = Returning(owns)
    present = returning.present(walk({"main/x": [1]}, owns).tree)
    walked = walk({"main/x": [1], "main/join": os.path.join}, owns)
    assert list(returning.lost(walked, present)) == []
