"""Damage in what a program needs only at its next update: it is found before that."""

from __future__ import annotations

import json
import struct
import textwrap

import pytest

from detrain.checkpoint.commit import manifest_steps
from detrain.checkpoint.store import LocalStore

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "1", "--keep", "3", "--digest-every", "3", "--seed", "3")

PROGRAM = """
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 200))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    for step in range(12):
        x = torch.randn(32, 200)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        {update}
        print(step, loss.item())
"""

SWALLOWED = """
        try:
            optimizer.step()
        except Exception as error:
            print("went on after", type(error).__name__)
"""
LEFT = """
        try:
            optimizer.step()
        except Exception as error:
            break
"""
CHANGED = """
        for kept in optimizer.state.values():
            kept["exp_avg"].mul_(0.5)  # perhaps before anybody has looked whether it is whole
        optimizer.step()
"""


def written(folder, update="optimizer.step()"):
    update = textwrap.indent(textwrap.dedent(update).strip(), "    ").lstrip()
    script = folder / "train.py"
    script.write_text(textwrap.dedent(PROGRAM).format(update=update))
    return script


def killed(runner, script):
    """A run that was killed, with some checkpoints."""
    assert runner.run(script, "whole", "--save-every", "never", *OPTIONS[4:]).code == 0
    assert runner.run(script, "it", *OPTIONS, crash="step=7").code == -9
    return runner.root / "it" / "checkpoints"


def data_of(folder, step):
    manifest = json.loads((folder / f"{step:010d}.json").read_text())
    return folder / manifest["body"]["levels"][-1]["state"]["file"]


def flip(path, kept):
    """Alter a bit of a large array that the optimizer keeps, or of a parameter."""
    raw = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    places = [x["data_offsets"] for name, x in header.items() if ("exp_avg" in name) == kept]
    start, _ = max(places, key=lambda place: place[1] - place[0])
    raw[8 + length + start + 1000] ^= 4
    path.write_bytes(bytes(raw))


def same(runner, one="whole", other="it"):
    a, b = runner.show(one), runner.show(other)
    assert b["diverged_at"] is None
    assert (a["state_digest"], a["trace_digest"]) == (b["state_digest"], b["trace_digest"])
    assert runner.log(one) == runner.log(other)


def test_the_same_command_goes_on_from_the_checkpoint_before(runner, tmp_path):
    script = written(tmp_path)
    folder = killed(runner, script)
    newest = manifest_steps(LocalStore(folder))[-1]
    before = sorted(each.name for each in folder.iterdir())
    damaged = data_of(folder, newest)
    flip(damaged, kept=True)
    late = runner.run(script, "it", *OPTIONS)
    assert late.code == 75, late.stderr
    assert "Traceback" not in late.stderr
    assert "exp_avg" in late.stderr
    assert damaged.name in late.stderr
    assert "the same command goes on from the checkpoint before it" in late.stderr
    assert f"the checkpoint of step {newest} can't be used" in late.stderr
    assert runner.show("it")["status"] == "interrupted"
    assert (folder / f"{newest:010d}.json.damaged").exists()
    assert {each.name for each in folder.iterdir()} >= set(before) - {f"{newest:010d}.json"}
    again = runner.run(script, "it", *OPTIONS)
    assert again.code == 0, again.stderr
    assert runner.show("it")["resumes"] == [newest, newest - 1]
    same(runner)


def test_damage_in_what_is_needed_at_once_is_found_at_once(runner, tmp_path):
    script = written(tmp_path)
    folder = killed(runner, script)
    newest = manifest_steps(LocalStore(folder))[-1]
    flip(data_of(folder, newest), kept=False)
    again = runner.run(script, "it", *OPTIONS)
    assert again.code == 0, again.stderr
    assert "Trying the one before" in again.stderr
    assert runner.show("it")["resumes"] == [newest - 1]
    same(runner)


def test_if_no_other_is_whole_nothing_is_changed(runner, tmp_path):
    script = written(tmp_path)
    folder = killed(runner, script)
    for path in folder.glob("*.safetensors"):
        flip(path, kept=True)
    before = sorted(path.name for path in folder.iterdir())
    for _ in range(2):
        late = runner.run(script, "it", *OPTIONS)
        assert late.code == 1, late.stderr
        assert "No checkpoint of the run is whole" in late.stderr
        assert "--fresh" in late.stderr
        assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("update", [SWALLOWED, LEFT], ids=["swallowed", "left"])
def test_a_program_that_catches_everything_does_not_get_past_it(runner, tmp_path, update):
    script = written(tmp_path, update)
    folder = killed(runner, script)
    newest = manifest_steps(LocalStore(folder))[-1]
    flip(data_of(folder, newest), kept=True)
    late = runner.run(script, "it", *OPTIONS)
    assert late.code == 75, late.stderr
    assert runner.show("it")["status"] == "interrupted"
    again = runner.run(script, "it", *OPTIONS)
    assert again.code == 0, again.stderr
    same(runner)


def test_what_the_program_has_changed_itself_is_no_damage(runner, tmp_path):
    script = written(tmp_path, CHANGED)
    folder = killed(runner, script)
    newest = manifest_steps(LocalStore(folder))[-1]
    again = runner.run(script, "it", *OPTIONS)
    assert again.code == 0, again.stderr
    assert runner.show("it")["resumes"] == [newest]
    same(runner)


def test_a_replay_takes_the_checkpoint_before(runner, tmp_path):
    script = written(tmp_path)
    assert runner.run(script, "it", *OPTIONS, "--keep", "20").code == 0
    folder = runner.root / "it" / "checkpoints"
    flip(data_of(folder, 6), kept=True)
    found = runner("replay", "it", "--steps", "7:8")
    assert found.code == 0, found.stderr
    assert "Trying the one before" in found.stderr
    assert (folder / f"{6:010d}.json").exists()
