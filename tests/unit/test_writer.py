"""The thread that writes: it stays for a while, and is gone before the program forks."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path

import pytest

from detrain.checkpoint import writer as writer_module
from detrain.checkpoint.writer import Writer

TASKS = Path("/proc/self/task")
on_linux = pytest.mark.skipif(not TASKS.is_dir(), reason="threads are counted by Linux's list")


def tasks() -> int:
    """How many threads this process has."""
    return len(list(TASKS.iterdir()))


def test_jobs_are_done_in_order_by_one_thread():
    writer, done = Writer(), []
    for number in range(50):
        writer.submit(lambda n=number: done.append((n, threading.get_ident())))
    writer.wait()
    assert [number for number, _ in done] == list(range(50))
    time.sleep(0.05)
    writer.submit(lambda: done.append((50, threading.get_ident())))
    writer.wait()
    assert len({ident for _, ident in done}) == 1
    assert not writer.busy
    writer.send_away()


@on_linux
def test_a_thread_with_nothing_to_do_is_gone_before_a_fork(monkeypatch):
    monkeypatch.setattr(writer_module, "_STAY", 60.0)
    gc.collect()
    writer = Writer()
    before = tasks()
    writer.submit(lambda: None)
    writer.wait()
    assert tasks() == before + 1
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert gone_down_to(before)
    done = []
    writer.submit(lambda: done.append(1))  # and comes back
    writer.wait()
    assert done == [1]
    writer.send_away()


@on_linux
def test_a_thread_that_waits_in_vain_goes(monkeypatch):
    monkeypatch.setattr(writer_module, "_STAY", 0.01)
    gc.collect()
    writer, before = Writer(), tasks()
    for _ in range(3):
        writer.submit(lambda: None)
        writer.wait()
        assert gone_down_to(before)


def gone_down_to(count: int) -> bool:
    """A thread that has ended is taken off the list a moment later."""
    for _ in range(200):
        if tasks() <= count:
            return True
        time.sleep(0.01)
    return False


def test_one_that_is_at_work_is_not_sent_away():
    writer, go, done = Writer(), threading.Event(), []
    writer.submit(lambda: done.append(go.wait(10)))
    writer.send_away()
    assert writer.busy
    go.set()
    writer.wait()
    assert done == [True]
    writer.send_away()


def test_what_a_job_does_not_catch_is_raised_at_the_next_question():
    writer, done = Writer(), []
    writer.submit(lambda: 1 / 0)
    writer.submit(lambda: done.append(1))
    with pytest.raises(ZeroDivisionError):
        writer.wait()
    writer.wait()
    assert done == [1]
    writer.send_away()
