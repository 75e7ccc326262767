"""Training on a disk that fails: it goes on, says so, and loses nothing that was committed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(300, 300)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(24):
    loss = model(torch.randn(4, 300)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step)
"""

FAULTY = """
import sys
from pathlib import Path
from detrain.cli import main
from detrain.testing import Fault, faulty
faults = eval(sys.argv[1])
root = Path(sys.argv[2])
clock = sys.argv[3]
if clock:
    import time
    now, plain = [0], time.time
    def jumping():
        now[0] += 1
        return plain() + (-1) ** now[0] * 1e8
    time.time = jumping
sys.argv = ["detrain", *sys.argv[4:]]
with faulty(root, *faults):
    main()
"""


def run(runner, *options, faults=(), clock="", crash="", program=PROGRAM):
    (runner.folder / "job.py").write_text(program)
    env = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "DETRAIN_CRASH_AT": crash}
    return subprocess.run(
        [sys.executable, "-c", FAULTY, repr(list(faults)), str(runner.root / "it" / "checkpoints"),
         clock, "run", "--name", "it", "--seed", "1", "--save-every", "4", *options, "job.py"],
        cwd=runner.folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(warm, tmp_path_factory):
    from conftest import Runner

    runner = Runner(warm, tmp_path_factory.mktemp("whole"))
    (runner.folder / "job.py").write_text(PROGRAM)
    assert runner("run", "--name", "it", "--seed", "1", "job.py").code == 0
    return runner.show("it")["state_digest"], runner.log("it")


def fault(call, code, first=1, last=1 << 62):
    from detrain.testing import Fault

    return Fault(call, first, last, code)


@pytest.mark.parametrize(
    ("call", "code"),
    [("fsync", errno.EIO), ("pwrite", errno.ENOSPC), ("pwrite", errno.EDQUOT)],
)
def test_training_goes_on_without_the_checkpoints_that_fail(runner, whole, call, code):
    ended = run(runner, faults=[fault(call, code, 9, 30)])
    assert ended.returncode == 0, ended.stderr
    assert "could not be written" in ended.stderr
    assert os.strerror(code) in ended.stderr
    found = runner.show("it")
    assert (found["state_digest"], runner.log("it")) == whole
    assert not any("damaged" in each for each in found["checkpoints"])


def test_a_kill_on_a_failing_disk_goes_on_from_the_last_good_one(runner, whole):
    ended = run(runner, faults=[fault("fsync", errno.EIO, 9)], crash="step=18")
    assert ended.returncode == -9, ended.stderr
    assert "could not be written" in ended.stderr
    before = [each["step"] for each in runner.show("it")["checkpoints"]]
    assert before
    assert before[-1] < 16
    ended = run(runner)
    assert ended.returncode == 0, ended.stderr
    assert f"going on from step {before[-1]}" in ended.stderr
    assert (runner.show("it")["state_digest"], runner.log("it")) == whole


def test_clocks_that_jump_change_nothing(runner, whole):
    """By years, back and forth, each time that somebody looks."""
    dead = run(runner, "--keep", "20", clock="jumps", crash="step=18")
    assert dead.returncode == -9, dead.stderr
    before = runner.show("it")["checkpoints"]
    assert [each["step"] for each in before] == [4, 8, 12, 16]
    created = [each["created"] for each in before]
    assert created != sorted(created)
    ended = run(runner, "--save-every", "0.001s", clock="jumps")
    assert ended.returncode == 0, ended.stderr
    assert "going on from step 16" in ended.stderr
    found = runner.show("it")
    assert (found["state_digest"], runner.log("it")) == whole
    # Time passes for who counts it by a clock that is never set.
    assert found["checkpoints"][-1]["step"] > 16


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a file system of its own")
def test_a_disk_that_becomes_read_only_in_the_midst_of_it(runner, whole):
    """The program itself has it so, from its 8th to its 16th step."""
    place = runner.root / "it" / "checkpoints"
    place.mkdir(parents=True)
    if os.system(f"mount -t tmpfs -o size=64m tmpfs {place}") != 0:
        pytest.skip("mounting is not allowed here")
    try:
        turn = f"'mount -o remount,' + {{8: 'ro', 16: 'rw'}}[step] + ' {place} 2>/dev/null'"
        program = "import os\n" + PROGRAM.replace(
            "    print(step)\n",
            f"    print(step)\n    while step in (8, 16) and os.system({turn}): pass\n",
        )
        ended = run(runner, program=program)
        assert ended.returncode == 0, ended.stderr
        assert "Read-only file system" in ended.stderr
        found = runner.show("it")
        assert (found["state_digest"], runner.log("it")) == whole
        assert not any("damaged" in each for each in found["checkpoints"])
        assert found["checkpoints"][-1]["step"] >= 20
    finally:
        os.system(f"umount -l {place}")


def test_two_who_begin_at_once(runner, whole):
    """One has the run, the other one is told so; whoever comes later goes on."""
    program = PROGRAM.replace("print(step)", "print(step); time.sleep(0.1)")
    (runner.folder / "job.py").write_text("import time\n" + program)
    env = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "detrain", "run", "--seed", "1", "--save-every", "4"]
    dead = runner.run(
        runner.folder / "job.py", "it", "--seed", "1", "--save-every", "4", crash="step=6"
    )
    assert dead.code == -9, dead.stderr
    both = [
        subprocess.Popen(
            [*command, "--resume", "it", "job.py"], cwd=runner.folder, env=env, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [each.communicate()[1] for each in both]
    assert sorted(each.returncode for each in both) == [0, 2], said
    assert any("is in use by process" in each for each in said)
    assert (runner.show("it")["state_digest"], runner.log("it")) == whole


def test_a_place_that_can_not_be_written_is_said(runner):
    runner.folder.mkdir(exist_ok=True)
    (runner.folder / "job.py").write_text(PROGRAM)
    (runner.folder / "file").write_text("not a folder")
    ended = runner("run", "--runs", "file/runs", "job.py")
    assert ended.code == 2
    assert "can't be written: Not a directory" in ended.stderr
