"""Checkpoints that are copied and written while the program goes on, in real programs."""

from __future__ import annotations

import textwrap

import pytest

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.store import LocalStore

pytestmark = pytest.mark.slow

EVERY = ("--save-every", "1", "--digest-every", "3", "--seed", "3")

# Large enough (more than 64 KB) that parameters and moments are copied late.
PROGRAM = """
    import resource, sys
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(200, 200), nn.BatchNorm1d(200), nn.Tanh(), nn.Linear(200, 200))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    {setup}

    for step in range({steps}):
        x = torch.randn(32, 200)
        loss = (model(x) - x).pow(2).mean()
        {update}
        print(step, loss.item())
"""

ADAM = "optimizer.zero_grad(); loss.backward(); optimizer.step()"
BY_HAND = """
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
"""
BY_DATA = """
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-0.05)
"""
ALIASES = "flat = [p.data for p in model.parameters()]"
BY_ALIAS = """
        model.zero_grad()
        loss.backward()
        for alias, p in zip(flat, model.parameters()):
            alias.sub_(p.grad, alpha=0.05)
"""
FUSED = "optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)"
AVERAGE = """
average = torch.optim.swa_utils.AveragedModel(model)
"""
UPDATE_AVERAGE = f"{ADAM}; average.update_parameters(model)"

PROGRAMS = {
    "adam": ("", ADAM, ""),
    "fused": (FUSED, ADAM, ""),
    "by hand": ("", BY_HAND, "before an optimizer steps"),
    "by data": ("", BY_DATA, ""),
    "by alias": (ALIASES, BY_ALIAS, ""),
    "average": (AVERAGE, UPDATE_AVERAGE, ""),
}


def written(folder, setup="", update=ADAM, steps=14):
    body = textwrap.dedent(PROGRAM).format(setup="{setup}", update="{update}", steps=steps)
    update = textwrap.indent(textwrap.dedent(update).strip(), "    ").lstrip()
    script = folder / "train.py"
    script.write_text(body.format(setup=textwrap.dedent(setup), update=update))
    return script


def store_of(runner, name="it"):
    return LocalStore(runner.root / name / "checkpoints")


def same(runner, one="whole", other="it"):
    a, b = runner.show(one), runner.show(other)
    assert b["diverged_at"] is None
    assert (a["state_digest"], a["trace_digest"]) == (b["state_digest"], b["trace_digest"])
    assert runner.log(one) == runner.log(other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_copied_meanwhile_is_the_state_of_the_cut(runner, tmp_path, name):
    setup, update, notice = PROGRAMS[name]
    script = written(tmp_path, setup, update)
    assert runner.run(script, "whole", "--save-every", "never", *EVERY[2:]).code == 0
    killed = runner.run(script, "it", *EVERY, crash="step=5")
    assert killed.code == -9, killed.stderr
    assert notice in killed.stderr
    assert ("is not kept" in killed.stderr) == bool(notice), killed.stderr
    killed = runner.run(script, "it", *EVERY, crash="step=9")
    assert killed.code == -9, killed.stderr
    assert runner.show("it")["resumes"] in ([3], [4])
    assert "is not kept" not in killed.stderr, killed.stderr  # it is known from then on
    done = runner.run(script, "it", *EVERY)
    assert done.code == 0, done.stderr
    assert runner.show("it")["resumes"][-1] in (7, 8)
    same(runner)


def test_killed_at_any_moment(runner, tmp_path):
    """The kill comes while something is being copied or written, not at a point of ours."""
    script = written(tmp_path, "torch.set_num_threads(1)", steps=1200)
    assert runner.run(script, "whole", "--save-every", "never", *EVERY[2:]).code == 0
    seconds = [0.7, 1.1, 0.9, 1.3]
    for after in seconds:
        runner.run(script, "it", *EVERY, kill_after=after)
    done = runner.run(script, "it", *EVERY)
    assert done.code == 0, done.stderr
    same(runner)


LIMITED = """
        if step in (4, 9):
            wanted = 100_000 if step == 4 else resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (wanted, resource.RLIM_INFINITY))
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def test_a_disk_that_takes_no_more_costs_checkpoints_and_nothing_else(runner, tmp_path):
    """A limit of the system stands for a full disk: writing a larger file gives a real error."""
    script = written(tmp_path, update=LIMITED)
    assert runner.run(script, "whole", "--save-every", "never", *EVERY[2:]).code == 0
    killed = runner.run(script, "it", *EVERY, crash="step=8")
    assert killed.code == -9
    assert "could not be written: [Errno 27]" in killed.stderr, killed.stderr
    assert "the newest is that of step" in killed.stderr
    store = store_of(runner)
    assert max(manifest_steps(store)) in (3, 4)
    read_checkpoint(store, max(manifest_steps(store)))
    again = runner.run(script, "it", *EVERY)
    assert again.code == 0, again.stderr
    assert "checkpoints that could not be written" in again.stderr
    assert max(manifest_steps(store)) >= 12  # the limit was lifted
    assert not list(store.folder.glob("*.staged"))
    same(runner)


LOADER = """
        for batch in torch.utils.data.DataLoader(torch.arange(8.0), num_workers=2):
            loss = loss + 0 * batch.sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def test_processes_are_started_while_a_checkpoint_is_written(runner, tmp_path):
    script = written(tmp_path, update=LOADER, steps=5)
    done = runner.run(script, "it", *EVERY)
    assert done.code == 0, done.stderr
    assert max(manifest_steps(store_of(runner))) >= 3


DATA = """
data = torch.randn(4000, 200)
seen = torch.zeros(200)
"""
USES_DATA = f"loss = loss + 0 * data[step].sum(); {ADAM}"


def test_data_in_memory_is_written_once_or_twice(runner, tmp_path):
    script = written(tmp_path, DATA, USES_DATA)
    assert runner.run(script, "it", *EVERY, "--no-plan", "--keep", "9").code == 0
    store = store_of(runner)
    steps = manifest_steps(store)
    assert len(steps) == 9
    large = [name for name in store.names() if (store.folder / name).stat().st_size > 3_200_000]
    assert len(large) <= 2, large
    for step in steps:
        assert read_checkpoint(store, step).data_files().keys() <= set(store.names())


LEFT = """
    import torch
    model = torch.nn.Linear(200, 200)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(100):
        loss = model(torch.randn(32, 200)).pow(2).mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        if step == 5:
            break
    for step in range(6):
        loss = model(torch.randn(32, 200)).pow(2).mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        print(step, loss.item())
"""


def test_the_last_checkpoint_of_a_loop_that_is_left_is_published(runner, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(LEFT))
    done = runner.run(script, "whole", *EVERY, "--keep", "20")
    assert done.code == 0, done.stderr
    assert "not be written" not in done.stderr
    assert 5 in manifest_steps(store_of(runner, "whole"))
    assert runner.run(script, "it", *EVERY, crash="step=8").code == -9
    assert runner.run(script, "it", *EVERY).code == 0
    same(runner)


SLOW = """
import os, time
plain = os.pwrite


def slow(file, data, at):
    time.sleep(len(data) / 2_000_000)
    return plain(file, data, at)


os.pwrite = slow
"""


def test_a_disk_that_is_too_slow_is_waited_for_and_said_once(runner, tmp_path):
    """The program itself makes the disk slow: two megabytes a second, a checkpoint has one."""
    script = written(tmp_path, SLOW, steps=10)
    done = runner.run(script, "it", *EVERY)
    assert done.code == 0, done.stderr
    assert done.stderr.count("training waits for checkpoints") == 1, done.stderr
    assert max(manifest_steps(store_of(runner))) == 9
