"""Real signals to real processes: saved, ended, gone on with, to the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import os, signal, sys, time, torch
mode = sys.argv[1]
caught = []
if mode == "own":
    signal.signal(signal.SIGTERM, lambda *_: caught.append(1))
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
live = os.environ.get("LIVE")
for epoch in range(4):
    for step in range(10):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if live and (epoch, step) == (1, 4):
            open(live, "w").close()
            while not os.path.exists(live + ".go"):
                time.sleep(0.02)
        if caught:
            break
    if caught:
        break
    with torch.no_grad():
        total = 0.0
        for _ in range(5):
            total += model(torch.ones(2, 4)).sum().item()
        if live and mode == "eval" and epoch == 1:
            open(live + "-eval", "w").close()
            time.sleep(1.5 if len(sys.argv) < 3 else 60)
    print(epoch, total)
print("caught" if caught else "done")
"""


@pytest.fixture
def place(runner, tmp_path):
    (runner.folder / "job.py").write_text(PROGRAM)
    return runner


def whole(runner, mode):
    live = runner.folder / "live"
    live.with_name("live.go").touch()
    ended = runner("run", "--name", "whole", "--seed", "1", "--save-every", "never", "job.py", mode,
                   env={"LIVE": str(live)})  # fmt: skip
    assert ended.code == 0, ended.stderr
    for path in runner.folder.glob("live*"):
        path.unlink()
    return runner.show("whole")["state_digest"], runner.log("whole")


def begin(runner, *args, options=()):
    """Start a run in a process of its own, without saving by itself."""
    live = runner.folder / "live"
    command = ["run", "--name", "it", "--seed", "1", "--save-every", "1h", *options, "job.py"]
    env = {**os.environ, "LIVE": str(live), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "detrain", *command, *args], cwd=runner.folder, env=env,
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    return process, live


def until(path, process, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def go_on(runner, *args):
    return runner("run", "--name", "it", "--seed", "1", "--save-every", "1h", "job.py", *args)


def steps(runner):
    return [each["step"] for each in runner.show("it")["checkpoints"]]


def test_term_saves_and_ends_and_the_run_goes_on(place):
    expected = whole(place, "plain")
    process, live = begin(place, "plain")
    until(live, process)
    process.send_signal(signal.SIGTERM)
    live.with_name("live.go").touch()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 75, said
    assert "the same command goes on" in said
    assert steps(place) == [15]
    assert place.show("it")["status"] == "interrupted"
    again = go_on(place, "plain")
    assert again.code == 0, again.stderr
    assert "going on from step 15" in again.stderr
    found = place.show("it")
    assert (found["state_digest"], place.log("it")) == expected
    assert found["diverged_at"] is None


def test_usr1_saves_and_goes_on_and_a_kill_loses_nothing(place):
    expected = whole(place, "eval")
    process, live = begin(place, "eval")
    until(live, process)
    process.send_signal(signal.SIGUSR1)
    live.with_name("live.go").touch()
    until(live.with_name("live-eval"), process)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert "the checkpoint of step 15 is there" in said
    assert steps(place) == [15]
    assert go_on(place, "eval").code == 0
    assert (place.show("it")["state_digest"], place.log("it")) == expected


def test_during_evaluation_the_next_head_saves(place):
    expected = whole(place, "eval")
    process, live = begin(place, "eval")
    live.with_name("live.go").touch()
    until(live.with_name("live-eval"), process)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 75, said
    assert steps(place)[-1] >= 20
    assert go_on(place, "eval").code == 0
    assert (place.show("it")["state_digest"], place.log("it")) == expected


def test_after_the_grace_period_it_ends_with_what_there_is(place):
    process, live = begin(place, "eval", "long", options=["--grace", "1s", "--save-every", "7"])
    live.with_name("live.go").touch()
    until(live.with_name("live-eval"), process)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 75
    assert time.monotonic() - began < 20
    assert "no checkpoint could be taken within 1 s; the newest is that of step 14" in said
    assert steps(place) == [7, 14]


def test_a_program_that_handles_it_decides_itself(place):
    process, live = begin(place, "own")
    until(live, process)
    process.send_signal(signal.SIGTERM)
    live.with_name("live.go").touch()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert place.log("it").endswith(b"caught\n")


NAMES = """
import torch
from signal import SIGUSR2, getsignal, signal
before = signal(SIGUSR2, lambda *_: None)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(12):
    now = getsignal(SIGUSR2)
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def test_a_program_may_hold_these_functions_by_name(runner):
    (runner.folder / "job.py").write_text(NAMES)
    options = ("--seed", "1", "--save-every", "3")
    assert runner("run", "--name", "whole", *options, "job.py").code == 0
    crash = {"DETRAIN_CRASH_AT": "step=8"}
    assert runner("run", "--name", "it", *options, "job.py", env=crash).code == -9
    again = runner("run", "--name", "it", *options, "job.py", env={"DETRAIN_CRASH_AT": ""})
    assert again.code == 0, again.stderr
    assert "going on from step 6" in again.stderr
    assert runner.show("it")["state_digest"] == runner.show("whole")["state_digest"]
    assert runner.log("it") == runner.log("whole")
