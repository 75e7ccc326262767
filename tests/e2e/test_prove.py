"""`detrain prove` and its library form: exact programs pass, hidden state is found and named."""

from __future__ import annotations

import sys
import textwrap

import pytest

from detrain.errors import UsageError
from detrain.testing import resume_everywhere

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset
HIDING
torch.manual_seed(0)
x = torch.randn(24, 4)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(4):
    for (a,) in DataLoader(TensorDataset(x), 4, shuffle=True):
        loss = (model(a) * FACTOR).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    print(epoch, loss.item())
"""

HIDDEN = """
import decimal  # a counter in a library's module: not the program's own state
decimal.steps = 0
def factor():
    decimal.steps += 1
    return 1 + decimal.steps / 100
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(hiding="", factor="1.0"):
        text = textwrap.dedent(PROGRAM).replace("HIDING", hiding).replace("FACTOR", factor)
        (tmp_path / "job.py").write_text(text)
        return "job.py"

    return write


def test_a_program_that_comes_to_its_end_is_compared_to_its_end(program):
    proof = resume_everywhere(program(), steps=40, kills=2)
    assert proof.steps == 24
    assert proof.exact  # the last line is printed after the last step


def test_an_exact_program(program, tmp_path):
    told = []
    proof = resume_everywhere(program(), steps=20, kills=4, tell=told.append)
    assert proof.exact
    assert proof.steps == 20
    assert len(proof.kills) == 4
    assert list(told) == list(proof.kills)
    assert all(0 < kill.resumed_at < kill.step for kill in proof.kills)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py"]  # nothing is left behind


@pytest.mark.parametrize("search", [".", "{here}"])
def test_modules_on_the_search_path_are_those_of_the_copy(tmp_path, monkeypatch, search):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", search.format(here=tmp_path))
    body = textwrap.dedent(PROGRAM).replace("HIDING", "").replace("FACTOR", "1.0")
    (tmp_path / "parts.py").write_text(f"def train():\n{textwrap.indent(body, '    ')}")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "job.py").write_text("import parts\nparts.train()")
    proof = resume_everywhere("scripts/job.py", steps=20, kills=1)
    assert proof.steps == 20
    assert proof.exact


def test_hidden_state_is_found_and_the_place_is_named(program):
    proof = resume_everywhere(program(HIDDEN, "factor()"), steps=16, kills=2)
    assert not proof.exact
    for kill in proof.kills:
        assert kill.first_step == kill.resumed_at + 1
        assert kill.difference is not None
        assert kill.difference.path.startswith("__main__/")


def test_the_command(program, warm, tmp_path):
    program()
    done = warm.run(["prove", "--steps", "9", "--kills", "2", "job.py"], tmp_path)
    assert done.code == 0, done.stderr
    assert done.stdout.count(": equal") == 2
    assert "exact: 2 kills in 9 steps" in done.stdout
    program(HIDDEN, "factor()")
    done = warm.run(["prove", "--steps", "9", "--kills", "1", "job.py"], tmp_path)
    assert done.code == 1
    assert "different" in done.stdout
    assert "first at step" in done.stdout
    assert "not exact: 1 of 1 kills" in done.stdout


def test_programs_that_fail_or_do_not_train(program, tmp_path):
    program()
    (tmp_path / "job.py").write_text("1 / 0")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        resume_everywhere("job.py")
    (tmp_path / "job.py").write_text("print('hello')")
    with pytest.raises(UsageError, match="only 0 training steps"):
        resume_everywhere("job.py")
    assert sys.argv  # the test's own process is untouched
