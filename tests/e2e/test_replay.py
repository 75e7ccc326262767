"""Steps of a run, done again to be looked at: what they print, and that nothing is touched."""

from __future__ import annotations

import json
import os

import pytest

from detrain.runs.lock import RunLock

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "5", "--digest-every", "4", "--keep", "99")

TRAIN = """
import os, random, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

os.makedirs("out", exist_ok=True)
log = open("out/log.csv", "w")
log.write("step,loss\\n")
data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
print("begun at", time.time())
step, best = 0, None
for epoch in range(4):
    for x, y in loader:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        print("step", step, loss.item(), random.random())
        log.write(f"{step},{loss.item()}\\n")
        log.flush()
    os.makedirs(f"out/epoch{epoch}")
    torch.save({"of": epoch, **model.state_dict()}, "out/last.pt")
    lines = len(open("out/log.csv").readlines())
    print("epoch", epoch, lines, torch.load("out/last.pt")["of"], sorted(os.listdir("out")))
"""


def everything(folder):
    """All files below a folder, with content and times."""
    paths = [path for path in folder.rglob("*") if not path.name.startswith(".child-")]
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else None
        for path in paths
    }


def printed(recorded, first, last):
    """Of the lines of a run, those of some of its steps."""
    ends = {int(line.split()[1]): n for n, line in enumerate(recorded) if line.startswith("step ")}
    return recorded[ends[first - 1] + 1 if first > 1 else 0 : ends[last] + 1]


@pytest.fixture(scope="module")
def whole(warm, tmp_path_factory):
    """A complete run."""
    from conftest import Runner

    runner = Runner(warm, tmp_path_factory.mktemp("replayed"))
    (runner.folder / "train.py").write_text(TRAIN)
    ended = runner.run(runner.folder / "train.py", "it", *OPTIONS)
    assert ended.code == 0, ended.stderr
    return runner


@pytest.fixture
def edited(whole):
    """A function that changes the text of the script, until the end of a test."""
    path = whole.folder / "train.py"
    yield lambda old, new: path.write_text(TRAIN.replace(old, new))
    path.write_text(TRAIN)


@pytest.mark.parametrize(
    ("steps", "first", "last", "start"),
    [
        ("12:14", 12, 14, "its checkpoint of step 10"),
        ("11:11", 11, 11, "its checkpoint of step 10"),
        ("20", 20, 20, "its checkpoint of step 15"),
        ("8:9", 8, 9, "its checkpoint of step 5"),
        ("15:26", 15, 26, "its checkpoint of step 10"),
        ("31:", 31, 32, "its checkpoint of step 30"),
        ("3:4", 3, 4, "its top"),
        (":6", 1, 6, "its top"),
    ],
)
def test_steps_print_what_they_printed_and_nothing_is_touched(whole, steps, first, last, start):
    recorded, before = whole.log("it").decode().splitlines(), everything(whole.folder)
    ended = whole("replay", "it", "--steps", steps)
    assert ended.code == 0, ended.stderr
    assert ended.stdout.splitlines() == printed(recorded, first, last)
    assert f"replaying run it from {start}" in ended.stderr
    assert "as recorded" in ended.stderr
    assert everything(whole.folder) == before


def test_what_is_printed_since_is_seen_and_does_not_disturb(whole, edited):
    recorded = whole.log("it").decode().splitlines()
    more = "        print('sum', step, model[0].weight.sum().item())\n"
    more += "        os.makedirs('new/folder', exist_ok=True); open('new.txt', 'w').write('x')\n"
    edited("        log.flush()\n", "        log.flush()\n" + more)
    before = everything(whole.folder)
    ended = whole("replay", "it", "--steps", "17:19")
    assert ended.code == 0, ended.stderr
    assert "is not what it was when the run was made" in ended.stderr
    assert "as recorded (1 state compared)" in ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("sum")] == ["17", "18", "19"]
    assert [x for x in lines if not x.startswith("sum")] == printed(recorded, 17, 19)
    assert everything(whole.folder) == before


def test_what_disturbs_is_said(whole, edited):
    edited("        log.flush()\n", "        log.flush(); random.random(); torch.rand(1)\n")
    ended = whole("replay", "it", "--steps", "17:19")
    assert ended.code == 1
    assert "step 16 did not come out as recorded" in ended.stderr
    assert "as recorded (" not in ended.stderr


def test_a_program_that_goes_another_way_is_an_error(whole, edited):
    edited("for epoch in range(4):", "for epoch in range(2):")
    ended = whole("replay", "it", "--steps", "27:28")
    assert ended.code != 0
    assert "detrain:" in ended.stderr


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("it", "--steps", "3:99"), "the run has done 32 steps"),
        (("it", "--steps", "0:3"), "from 1 on"),
        (("it", "--steps", "9:3"), "from 1 on"),
        (("it", "--steps", "x"), "expected 12, 10:20"),
        (("it", "--steps", ":"), "expected 12, 10:20"),
        (("other", "--steps", "3"), "other"),
    ],
)
def test_what_there_is_not_is_said(whole, argv, message):
    ended = whole("replay", *argv)
    assert ended.code == 2
    assert message in ended.stderr
    assert not list(whole.root.glob(".replay*"))


def test_a_script_that_is_gone_is_said(whole):
    script = whole.folder / "train.py"
    script.rename(whole.folder / "elsewhere.py")
    try:
        ended = whole("replay", "it", "--steps", "3")
    finally:
        (whole.folder / "elsewhere.py").rename(script)
    assert ended.code == 2
    assert str(script) in ended.stderr


def test_a_run_that_was_killed_or_is_at_work(runner):
    (runner.folder / "train.py").write_text(TRAIN)
    assert runner.run(runner.folder / "train.py", "it", *OPTIONS, crash="step=18").code == -9
    recorded = runner.log("it").decode().splitlines()
    for status in ("killed", "at work"):
        lock = RunLock(runner.root / "it", "it") if status == "at work" else None
        ended = runner("replay", "it", "--steps", "13:17")
        if lock is not None:
            lock.release()
        assert ended.code == 0, ended.stderr
        assert ended.stdout.splitlines() == printed(recorded, 13, 17)
    left = runner.root / f".replay-{os.uname().nodename}-999999999"
    left.mkdir()  # as a killed one leaves it
    assert runner.run(runner.folder / "train.py", "it", *OPTIONS).code == 0
    assert runner("replay", "it", "--steps", "13:17").stdout.splitlines() == printed(
        recorded, 13, 17
    )
    assert not left.exists()


def test_from_a_checkpoint_before_if_one_is_damaged(runner):
    (runner.folder / "train.py").write_text(TRAIN)
    assert runner.run(runner.folder / "train.py", "it", *OPTIONS).code == 0
    folder, recorded = runner.root / "it" / "checkpoints", runner.log("it").decode().splitlines()
    (folder / "0000000020.json").write_bytes(b"torn")
    file = json.loads((folder / "0000000015.json").read_bytes())["body"]["levels"][-1]["state"]
    (folder / file["file"]).unlink()
    before = everything(runner.folder)
    ended = runner("replay", "it", "--steps", "22:23")
    assert ended.code == 0, ended.stderr
    assert "replaying run it from its checkpoint of step 10" in ended.stderr
    assert "the checkpoint of step 20 can't be used" in ended.stderr
    assert ended.stdout.splitlines() == printed(recorded, 22, 23)
    assert everything(runner.folder) == before


def test_a_program_that_uses_the_api(runner):
    script = runner.folder / "job.py"
    script.write_text(
        "import random\nimport detrain\ndone = []\n"
        "with detrain.run(seed=5, save_every=4, keep=99, digest_every=3) as run:\n"
        "    for i in run.loop(range(20), done=done):\n"
        "        done.append(random.random())\n"
        "        print(i + 1, sum(done))\n"
    )
    assert runner.run(script, "it").code == 0
    recorded = runner.log("it").decode().splitlines()
    ended = runner("replay", "it", "--steps", "10:13")
    assert ended.code == 0, ended.stderr
    assert ended.stdout.splitlines() == recorded[9:13]
    assert "as recorded (2 states compared)" in ended.stderr  # those of steps 9 and 12
