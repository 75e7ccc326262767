"""A real process that compacts is killed at each step: every checkpoint is there, whole."""

from __future__ import annotations

import shutil

import pytest

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.store import LocalStore
from detrain.testing import COMPACT_POINTS
from detrain.trace.digest import digest_array

pytestmark = pytest.mark.slow

PROGRAM = """
import time
import torch
torch.manual_seed(0)
model = torch.nn.Linear(100, 100)
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for step in range({steps}):
    loss = model(torch.randn(4, 100)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
    {more}
"""
OPTIONS = ("--seed", "1", "--save-every", "2", "--keep", "2", "--keep-every", "2")


def written(runner, steps=20, more=""):
    script = runner.folder / "job.py"
    script.write_text(PROGRAM.format(steps=steps, more=more))
    return script


def contents(folder):
    """The digests of all arrays of all checkpoints, as they are read."""
    store, found = LocalStore(folder), {}
    for step in manifest_steps(store):
        states = read_checkpoint(store, step).states()
        found[step] = [
            {name: digest_array(data) for name, data in verified_arrays(store, state).items()}
            for state in states
        ]
    return found


def compacted(folder):
    store = LocalStore(folder)
    steps = manifest_steps(store)
    return [s for s in steps if any(state.packed for state in read_checkpoint(store, s).states())]


@pytest.fixture(scope="module")
def killed(warm, tmp_path_factory):
    """A run with some history that was killed, and what it would have come to."""
    from conftest import Runner

    runner = Runner(warm, tmp_path_factory.mktemp("killed"))
    script = written(runner)
    whole = runner.run(script, "whole", *OPTIONS)
    assert whole.code == 0, whole.stderr
    assert runner.run(script, "it", *OPTIONS, crash="step=15").code == -9
    return runner


@pytest.fixture
def run(killed, runner):
    shutil.copytree(killed.folder, runner.folder, dirs_exist_ok=True)
    return runner


@pytest.mark.parametrize("point", COMPACT_POINTS)
def test_killed_at_a_point_of_a_compaction(run, killed, point):
    folder = run.root / "it" / "checkpoints"
    before = contents(folder)
    count = {"packed-partly-written": 9, "compacted-collected": 1}.get(point, 3)
    dead = run("compact", "it", env={"DETRAIN_CRASH_AT": f"{point}:{count}"})
    assert dead.code == -9, dead.stderr
    assert contents(folder) == before
    done = run("compact", "it")
    assert done.code == 0, done.stdout + done.stderr
    assert contents(folder) == before
    assert compacted(folder) == sorted(before)[:-3]
    left = {path.name for path in folder.iterdir() if path.suffix not in (".json", ".lock")}
    named = {
        name for step in before for name in read_checkpoint(LocalStore(folder), step).data_files()
    }
    assert left == named
    again = run.run(run.folder / "job.py", "it", *OPTIONS)
    assert again.code == 0, again.stderr
    assert run.show("it")["state_digest"] == killed.show("whole")["state_digest"]
    assert run.log("it") == killed.log("whole")


def test_a_run_goes_on_from_a_compacted_checkpoint(run, killed):
    """All newer ones are damaged: the compacted one before is as good as it was."""
    assert run("compact", "it", "--newest", "1").code == 0
    folder = run.root / "it" / "checkpoints"
    at = compacted(folder)[-1]
    for step in manifest_steps(LocalStore(folder)):
        if step > at:
            (folder / f"{step:010d}.json").write_bytes(b"torn")
    shown = run("show", "it")
    assert "compacted" in shown.stdout
    target = run.folder / "weights.safetensors"
    exported = run("export", "it", "--step", str(at), "--to", str(target))
    assert exported.code == 0, exported.stderr
    again = run.run(run.folder / "job.py", "it", *OPTIONS)
    assert again.code == 0, again.stderr
    assert f"going on from step {at}" in again.stderr
    assert run.show("it")["state_digest"] == killed.show("whole")["state_digest"]
    assert run.log("it") == killed.log("whole")


def test_older_checkpoints_are_compacted_while_the_run_goes_on(runner):
    script = written(runner, 60, "time.sleep(0.05)")
    assert runner.run(script, "plain", *OPTIONS).code == 0
    dead = runner.run(script, "it", *OPTIONS, "--compact", kill_after=2.5)
    assert dead.code == -9, dead.stderr
    folder = runner.root / "it" / "checkpoints"
    assert compacted(folder), dead.stderr
    before = contents(folder)
    again = runner.run(script, "it", *OPTIONS, "--compact")
    assert again.code == 0, again.stderr
    assert "compact" not in again.stderr
    assert runner.show("it")["state_digest"] == runner.show("plain")["state_digest"]
    assert runner.log("it") == runner.log("plain")
    assert {step: each for step, each in contents(folder).items() if step in before} == before
    assert contents(folder) == contents(runner.root / "plain" / "checkpoints")
    small, large = (
        sum(path.stat().st_size for path in (runner.root / name / "checkpoints").iterdir())
        for name in ("it", "plain")
    )
    assert small < large


def test_a_run_that_somebody_works_on_is_left_alone(runner):
    script = written(runner, 400, "time.sleep(0.05)")
    runner.run(script, "it", *OPTIONS, kill_after=1.5)
    import fcntl

    with (runner.root / "it" / "lock").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        refused = runner("compact", "it")
    assert refused.code == 2
    assert "is in use by" in refused.stderr
