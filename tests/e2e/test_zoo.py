"""The programs of `examples/torch`: killed in many ways, resumed, equal to the uninterrupted run.

In CI each is killed in one way, at a step or amid an evaluation by turns; `make zoo`
(DETRAIN_ZOO_KILLS) takes all of them.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from conftest import Runner
from detrain.trace.log import read_trace

pytestmark = pytest.mark.slow

ZOO = sorted((Path(__file__).parents[2] / "examples" / "torch").glob("[01]*.py"))
KILLS = int(os.environ.get("DETRAIN_ZOO_KILLS", "1"))

# What these draw for samples is keyed under DETrain, and not without: their bits differ.
KEYED = {"02", "07", "14"}
UNSEEDED = {"05", "11"}
# A replay memory of thousands of objects, and thousands of steps.
EVERY = {"15": ("150", "400"), "08": ("30", "25"), "16": ("40", "50")}


def options(script):
    save, digest = EVERY.get(script.name[:2], ("9", "5"))
    return ("--save-every", save, "--digest-every", digest, "--seed", "4")


def lines(log):
    """What was printed, without measured times."""
    return [line for line in log.decode().splitlines() if "time" not in line.lower()]


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".detrain" not in path.parts and not path.name.startswith(".child")
    }


def weights(runner):
    """The bytes of all that a program saved."""
    files = [path for path in sorted(runner.folder.rglob("*.pt*")) if ".detrain" not in path.parts]
    loaded = {path.name: torch.load(path, weights_only=True) for path in files}
    return {
        f"{file} {name}": tensor.numpy().tobytes()
        for file, saved in loaded.items()
        for name, tensor in saved.get("net", saved).items()
    }


@pytest.fixture(scope="module")
def whole(warm, tmp_path_factory):
    done = {}

    def get(script):
        if script not in done:
            runner = Runner(warm, tmp_path_factory.mktemp(script.stem))
            ended = runner.run(script, "it", *options(script))
            assert ended.code == 0, ended.stderr
            done[script] = runner
        return done[script]

    return get


@pytest.mark.parametrize("script", ZOO, ids=lambda script: script.stem)
def test_its_last_steps_are_looked_at_again(whole, script):
    runner = whole(script)
    found, before = runner.show("it"), files_of(runner.folder)
    newest = [each["step"] for each in found["checkpoints"] if each["step"] < found["steps"] - 1]
    ended = runner("replay", "it", "--steps", f"{newest[-1] + 2}:")
    assert ended.code == 0, ended.stderr
    assert f"from its checkpoint of step {newest[-1]}" in ended.stderr
    assert "as recorded (" in ended.stderr
    shown, recorded = lines(ended.stdout.encode()), lines(runner.log("it"))
    starts = range(len(recorded) - len(shown) + 1)
    assert any(recorded[start : start + len(shown)] == shown for start in starts)
    assert files_of(runner.folder) == before


# A line that runs while a program evaluates (or, where it never does, in the midst of a step),
# and how often it has run when the second evaluation is under way.
EVALUATING = {
    "01": ("test_loss += F.nll_loss", 4),
    "02": ("scheduler.step()", 2),
    "03": ("acc1, acc5 = accuracy(", 3),
    "04": ("return 100.0 * correct", 2),
    "05": ("test_loss += loss_function", 3),
    "06": ("samples = netG(fixed_noise)", 2),
    "07": ("scheduler.step()", 3),
    "08": ("total_loss += len(data)", 8),
    "09": ("values[k] = loss.item()", 30),
    "10": ("start_logits, end_logits = model(", 4),
    "11": ("logits[:, START]", 40),
    "12": ("recommended = item[indices]", 70),
    "13": ("clean += (model(x)", 3),
    "14": ("return self.score", 5),
    "15": ("next_values = target_net", 700),
    "16": ("x, y = self.valid_data", 12),
}


def evaluating(script):
    text, count = EVALUATING[script.name[:2]]
    numbered = enumerate(script.read_text().splitlines(), 1)
    return f"{script.name}@{[number for number, line in numbered if text in line][-1]}:{count}"


def boundaries(runner):
    """Steps after which another loop goes on: ends of epochs, and of phases."""
    events = [event for event, _ in read_trace(runner.root / "it" / "trace.jsonl").events]
    loops = [(event.step, event.at[:-1], event.at[-1][0]) for event in events]
    return [
        (one[0], one[2] != other[2])
        for one, other in itertools.pairwise(loops)
        if one[1:] != other[1:] and one[0] > 10
    ]


def ways(script, reference, steps):
    """Ways to be killed: at any step, amid an evaluation, a commit, at any time, in a row."""
    draw = random.Random(script.name)

    def step():
        return f"step={draw.randrange(steps // 5, steps - 1)}"

    ends = [step for step, _ in boundaries(reference)] or [steps // 3]
    phases = [step + 3 for step, is_phase in boundaries(reference) if is_phase]
    end, last = draw.choice(ends), ends[-1]
    commits = max(3, steps // (int(options(script)[1]) + 3))
    found = [
        [step()],
        [evaluating(script)],
        [f"step={end}", f"step={end + 1}"],
        [f"manifest-written:{draw.randrange(2, commits)}"],
        [f"step={steps // 2}", f"step={steps // 2 + 2}", evaluating(script)],
        [f"step={phases[-1] if phases else last}"],
        [f"data-partly-written:{draw.randrange(2, commits)}", step()],
        [step(), step(), step()],
        [f"step={int(options(script)[1]) + 3}"],
        [draw.uniform(1.0, 4.0), step()],
        [f"step={steps - 2}"],
    ]
    return found[:KILLS] if KILLS > 1 else [found[int(script.name[:2]) % 2]]


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("script", ZOO, ids=lambda path: path.stem)
def test_killed_and_resumed(whole, warm, tmp_path, script):
    reference = whole(script)
    expected = reference.show("it")
    for number, kills in enumerate(ways(script, reference, expected["steps"])):
        runner = Runner(warm, tmp_path / str(number))
        for kill in kills:
            how = {"kill_after": kill} if isinstance(kill, float) else {"crash": kill}
            ended = runner.run(script, "it", *options(script), **how)
            assert ended.code in (0, -9), ended.stderr
            if ended.code == 0:
                break
        else:
            last = runner.run(script, "it", *options(script))
            assert last.code == 0, last.stderr
        found = runner.show("it")
        assert any(found["resumes"]) or isinstance(kills[0], float), kills
        assert found["diverged_at"] is None, kills
        assert found["state_digest"] == expected["state_digest"], kills
        assert found["trace_digest"] == expected["trace_digest"], kills
        assert lines(runner.log("it")) == lines(reference.log("it")), kills


@pytest.mark.parametrize(
    "script", [s for s in ZOO if s.name[:2] not in UNSEEDED | KEYED], ids=lambda path: path.stem
)
def test_the_bits_are_those_without_detrain(warm, tmp_path_factory, tmp_path, script):
    # Without --seed, which would change the seeds of the program.
    runner = Runner(warm, tmp_path_factory.mktemp(script.stem))
    ended = runner.run(script, "it", *options(script)[:-2])
    assert ended.code == 0, ended.stderr
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    plain = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path, env=env, capture_output=True,
    )  # fmt: skip
    assert plain.returncode == 0, plain.stderr
    assert lines(plain.stdout) == lines(runner.log("it"))
    mine, theirs = files_of(runner.folder), files_of(tmp_path)
    assert mine.keys() == theirs.keys()
    for name, content in theirs.items():
        if not re.search(r"\.(pt|pth|tar)$", name):
            assert mine[name] == content, name


@pytest.mark.parametrize(
    "script", [s for s in ZOO if "--num-workers" in s.read_text()], ids=lambda path: path.stem
)
def test_the_bits_are_the_same_for_any_number_of_workers(whole, warm, tmp_path, script):
    reference = whole(script)
    for number in ("0", "3"):
        runner = Runner(warm, tmp_path / number)
        ended = runner.run(script, "it", *options(script), args=["--num-workers", number])
        assert ended.code == 0, ended.stderr
        # The number is a part of the state, so that is not compared; all that came of it is.
        assert lines(runner.log("it")) == lines(reference.log("it"))
        assert weights(runner) == weights(reference) != {}


def test_there_are_sixteen():
    assert len(ZOO) == 16
