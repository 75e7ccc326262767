"""Killed anywhere and resumed, a run ends in the bits and the log of one that was never killed."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from detrain.testing import CRASH_POINTS

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "3", "--digest-every", "5")
STEPS = {"two_level": 36, "mixed": 85, "lbfgs": 36}


def essence(found):
    return {key: found[key] for key in ("status", "steps", "state_digest", "trace_digest")}


@pytest.fixture(scope="module")
def whole(warm, tmp_path_factory):
    """Each program run once without interruption, when it is first asked for."""
    from conftest import Runner

    done = {}

    def get(program):
        if program not in done:
            runner = Runner(warm, tmp_path_factory.mktemp(program))
            ended = runner.run(program, "whole", *OPTIONS)
            assert ended.code == 0, ended.stderr
            done[program] = essence(runner.show("whole")), runner.log("whole")
            assert done[program][0]["status"] == "complete"
            assert done[program][0]["steps"] == STEPS[program]
        return done[program]

    return get


def kills():
    """50 ways to be killed: random steps, all commit points, twice and three times, epoch ends."""
    draw = random.Random(20)
    found = []
    for program, steps in STEPS.items():
        commits = steps // 3
        found += [(program, [f"step:{n}"]) for n in draw.sample(range(5, steps), 5)]
        found += [
            (program, [f"{point}:{draw.randrange(3, commits)}"])
            for point in draw.sample(CRASH_POINTS[1:], 5)
        ]
        found += [
            (program, [f"step:{draw.randrange(5, steps)}", f"{draw.choice(CRASH_POINTS)}:2"])
            for _ in range(2)
        ]
        found.append((program, ["step:2", "step:5", "cut:4", "manifest-renamed:1"]))
        found += [(program, [draw.uniform(0.2, 1.5), "step:8"]) for _ in range(2)]
    found += [("two_level", ["step:12"]), ("two_level", ["step:24", "step:1"])]
    found += [("mixed", ["step:12"]), ("mixed", ["step:17", "step:2"]), ("lbfgs", ["step:18"])]
    return found


STRIDE = 1 if os.environ.get("DETRAIN_ALL_KILLS") else 2


@pytest.mark.parametrize(("program", "points"), kills()[::STRIDE], ids=str)
def test_killed_and_resumed_is_the_same_run(runner, whole, program, points):
    killed = 0
    for point in points:
        if isinstance(point, float):
            ended = runner.run(program, "again", *OPTIONS, kill_after=point)
            while ended.code == 0:  # it was faster than the kill: that would prove nothing
                shutil.rmtree(runner.root / "again")
                point *= 0.7
                ended = runner.run(program, "again", *OPTIONS, kill_after=point)
        else:
            ended = runner.run(program, "again", *OPTIONS, crash=point)
        assert ended.code in (0, -9), ended.stderr
        killed += ended.code == -9
        if ended.code == 0:
            break
    else:
        last = runner.run(program, "again", *OPTIONS)
        assert last.code == 0, last.stderr
    found = runner.show("again")
    expected, log = whole(program)
    assert essence(found) == expected
    assert runner.log("again") == log
    assert found["diverged_at"] is None
    # Nothing passes because nothing was killed, or because it was only started over.
    assert killed >= 1
    assert any(step > 0 for step in found["resumes"])


def test_the_number_of_kills_is_as_promised():
    assert len(kills()) >= 50
