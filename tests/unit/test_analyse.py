"""The analysis as a whole: how large a program may be, and what it leaves as it was."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from detrain.analysis import frontend
from detrain.analysis.analyse import analyse, analyse_script
from detrain.analysis.project import read_project
from detrain.cli.run import plan_of
from detrain.errors import ProgramTooLarge

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "torch").glob("[01]*.py"))


def test_a_program_that_is_too_large_is_said_to_be(monkeypatch, capsys):
    project = read_project(EXAMPLES[0], ())
    assert plan_of(project) is not None
    monkeypatch.setattr(frontend, "_MOST_OPS", 50)
    with pytest.raises(ProgramTooLarge) as caught:
        analyse(project)
    assert (caught.value.files, caught.value.most) == (1, 50)
    assert plan_of(project) is None
    assert "01_mnist_cnn.py is too large to be analysed" in capsys.readouterr().err


@pytest.mark.parametrize("most", [50, 50_000])
def test_the_interpreter_is_left_as_it_was(monkeypatch, most):
    monkeypatch.setattr(frontend, "_MOST_OPS", most)
    before = sys.getrecursionlimit()
    try:
        analyse(read_project(EXAMPLES[0], ()))
    except ProgramTooLarge:
        assert most == 50
    assert sys.getrecursionlimit() == before
    assert gc.isenabled()


@pytest.mark.parametrize("script", EXAMPLES[:4], ids=lambda path: path.stem)
def test_causes_of_many_cells_are_those_of_each(script):
    _, cells, causes, _ = analyse_script(script, ()).parts()
    for name in cells.functions:
        several = cells.variables(name) | cells.summary(name).writes
        one_by_one = {cause for cell in several for cause in causes.of.get(cell, ())}
        assert set(causes.among(several)) == one_by_one
    assert set(causes.everywhere) == {each for found in causes.of.values() for each in found}


OPEN = """
import sys, torch
model = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
rate = 1.0
{before}
for step in range(9):
    {inside}
    batch = torch.randn(3, 2)
    loss = model(batch).sum()
    opt.zero_grad(); loss.backward(); opt.step()
"""
SETTINGS = "for key in sys.argv[1:]:\n    globals()[key] = 2.0"


@pytest.mark.parametrize(
    ("before", "inside", "dropped"),
    [
        ("", "pass", True),
        (SETTINGS, "pass", True),
        ("def look():\n    return globals()", "look()", False),
        ("", "globals()['rate'] = 2.0", False),
        ("", "for key in sys.argv: globals()[key] = 2.0", False),
    ],
)
def test_names_are_dropped_unless_training_may_look_at_all_of_them(
    tmp_path, before, inside, dropped
):
    script = tmp_path / "train.py"
    script.write_text(OPEN.format(before=before, inside=inside))
    (cut,) = analyse(read_project(script, ())).plan.cuts
    items = {item.place for item in cut.levels[-1].items if item.action == "drop"}
    assert ("__main__/batch" in items) is dropped
