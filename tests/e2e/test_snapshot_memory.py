"""Training with hardly any memory for checkpoints: the same bits, killed or not, in less memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.store import LocalStore

pytestmark = pytest.mark.slow

NESTED = """
import torch
torch.manual_seed(0)
parts = torch.nn.Linear(40, 90), torch.nn.BatchNorm1d(90), torch.nn.Linear(90, 1)
model = torch.nn.Sequential(*parts)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
turned = torch.randn(64, 40).t()
for epoch in range(3):
    best = [p.detach().clone() for p in model.parameters()]
    for step in range(6):
        x = torch.randn(8, 40) + turned[:, step]
        far = sum((a - b).abs().sum() for a, b in zip(best, model.parameters()))
        loss = model(x).pow(2).mean() + far
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        turned.mul_(1.001)
        print(epoch, step, loss.item())
"""
OPTIONS = ("--seed", "1", "--save-every", "2", "--digest-every", "1")


def script(runner, text=NESTED):
    path = runner.folder / "job.py"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def whole(warm, tmp_path_factory):
    from conftest import Runner

    runner = Runner(warm, tmp_path_factory.mktemp("whole"))
    done = runner.run(script(runner), "it", *OPTIONS)
    assert done.code == 0, done.stderr
    found = runner.show("it")
    return found["state_digest"], found["trace_digest"], runner.log("it")


def came_out(runner):
    found = runner.show("it")
    return found["state_digest"], found["trace_digest"], runner.log("it")


@pytest.mark.parametrize("more", [(), ("--no-plan",)])
@pytest.mark.parametrize("crash", ["step=9", "data-partly-written:6", "manifest-synced:3"])
def test_killed_and_resumed_without_a_copy(runner, whole, crash, more):
    options = (*OPTIONS, "--snapshot-memory", "0", *more)
    dead = runner.run(script(runner), "it", *options, crash=crash)
    assert dead.code == -9, dead.stderr
    again = runner.run(runner.folder / "job.py", "it", *options)
    assert again.code == 0, again.stderr
    if not more:
        assert came_out(runner) == whole
    else:
        assert (came_out(runner)[0], came_out(runner)[2]) == (whole[0], whole[2])
    folder = runner.root / "it" / "checkpoints"
    store = LocalStore(folder)
    named = {
        name for step in manifest_steps(store) for name in read_checkpoint(store, step).data_files()
    }
    left = {path.name for path in folder.glob("*.safetensors")} - named
    assert len(left) <= 2, left  # states around a loop that no checkpoint came to name


BIG = """
import torch
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(16 << 20))
optimizer = torch.optim.SGD([weight], lr=0.01, momentum=0.9)
for step in range(6):
    loss = (weight[: 1 << 10] * step).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def peak(runner, name, *options):
    """The most memory that a real process ever had, in bytes."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "detrain", "run", "--name", name, "--seed", "1"]
    process = subprocess.Popen(
        [*command, "--save-every", "1", "--digest-every", "0", *options, "job.py"],
        cwd=runner.folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    error = process.stderr.read()
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, error
    return usage.ru_maxrss << 10


def test_the_copy_is_not_made(runner):
    """Parameters and momentum are 128 MiB: one copy of that, or none."""
    script(runner, BIG)
    copied = peak(runner, "copied", "--snapshot-memory", "200MB")
    live = peak(runner, "live", "--snapshot-memory", "64MB")
    assert copied - live > 100 << 20, (copied, live)
    assert runner.show("live")["state_digest"] == runner.show("copied")["state_digest"]


def test_a_full_disk_costs_checkpoints_and_nothing_else(runner, whole):
    text = NESTED.replace("import torch\n", "import torch, resource\n", 1).replace(
        "for epoch in range(3):\n",
        "for epoch in range(3):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000 if epoch == 1 else -1, -1))\n",
        1,
    )
    done = runner.run(script(runner, text), "it", *OPTIONS, "--snapshot-memory", "0")
    assert done.code == 0, done.stderr
    assert "could not be written" in done.stderr
    assert came_out(runner)[2] == whole[2]
    assert runner.show("it")["checkpoints"]
