"""Signals ask for a checkpoint; the program's own handlers are what they were."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from detrain.runtime.signals import EXIT_CODE, Signals

STATUS = Path("/proc/self/status")


@pytest.fixture
def signals():
    left, said = [], []
    made = Signals(0.2, said.append, lambda: said.append("expired"), left.append)
    made.left, made.said = left, said
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)}
    plain = signal.signal
    made.start()
    yield made
    made.ends = False
    made.stop()
    assert signal.signal is plain
    for number, handler in before.items():
        signal.signal(number, handler)


def test_usr1_asks_and_goes_on(signals):
    os.kill(os.getpid(), signal.SIGUSR1)
    assert (signals.asked, signals.ends) == ("SIGUSR1", False)
    signals.done()
    assert signals.asked == ""
    assert not signals.left


def test_term_asks_and_ends_when_its_time_is_over(signals):
    os.kill(os.getpid(), signal.SIGTERM)
    assert (signals.asked, signals.ends) == ("SIGTERM", True)
    assert not signals.left
    time.sleep(0.5)
    assert signals.left == [EXIT_CODE]
    assert signals.said[-1] == "expired"


def test_the_programs_handlers_are_called_and_rule(signals):
    seen = []
    assert signal.signal(signal.SIGTERM, lambda number, _: seen.append(number)) is signal.SIG_DFL
    assert callable(signal.getsignal(signal.SIGTERM))
    os.kill(os.getpid(), signal.SIGTERM)
    assert seen == [signal.SIGTERM]
    assert (signals.asked, signals.ends) == ("SIGTERM", False)
    time.sleep(0.4)
    assert not signals.left
    assert callable(signal.signal(signal.SIGTERM, signal.SIG_DFL))


def test_what_the_program_ignores_is_ignored(signals):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.asked == ""


def test_other_signals_are_left_alone(signals):
    before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
    signal.signal(signal.SIGUSR2, before)


def end_of_a_child():
    """How a forked process ends that gets SIGTERM."""
    pid = os.fork()
    if pid == 0:
        time.sleep(20)
        os._exit(0)
    time.sleep(0.1)
    os.kill(pid, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_process_dies_of_it_as_ever(signals):
    assert end_of_a_child() == -signal.SIGTERM


@pytest.mark.skipif(not STATUS.exists(), reason="asks Linux")
def test_a_forked_process_dies_of_it_without_running_any_python(signals):
    """A handler in Python would not run in a wait that began right after the signal came."""
    pid = os.fork()
    if pid == 0:
        lines = STATUS.read_text().splitlines()
        caught = next(line.split()[1] for line in lines if line.startswith("SigCgt"))
        os._exit(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_forked_process_has_the_handlers_of_the_program(signals):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
    assert end_of_a_child() == 7


def test_what_the_program_set_stays_when_we_go():
    before = signal.getsignal(signal.SIGUSR1)
    made = Signals(1.0, print, print)
    made.start()
    mine = signal.SIG_IGN
    signal.signal(signal.SIGUSR1, mine)
    made.stop()
    assert signal.getsignal(signal.SIGUSR1) is mine
    signal.signal(signal.SIGUSR1, before)
