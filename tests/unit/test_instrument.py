"""Which loops are found, and what their headers become."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from detrain.analysis.analyse import analyse
from detrain.analysis.project import read_project
from detrain.instrument.find import find_training
from detrain.instrument.rewrite import rewrite


def rewritten(text):
    tree = ast.parse(textwrap.dedent(text))
    training = find_training({"m": ast.parse(textwrap.dedent(text))})
    return rewrite(tree, "m", training.is_on_the_way)


def sites(text):
    """The sites of the loops that were found, in the order of their lines."""
    return found_sites(rewritten(text))


def found_sites(tree):
    return [
        node.args[0].value
        for node in sorted(
            (
                each
                for each in ast.walk(tree)
                if isinstance(each, ast.Call)
                and isinstance(each.func, ast.Attribute)
                and each.func.attr in ("entering", "tick")
            ),
            key=lambda node: (node.lineno, node.col_offset),
        )
    ]


def test_loops_on_the_way_to_an_update():
    assert sites("""
        def step(batch):
            loss(batch).backward()
        def train(loader):
            for batch in loader:
                step(batch)
        def test(loader):
            for batch in loader:
                model(batch)
        for epoch in range(3):
            train(loader)
            test(loader)
        for name in names:
            print(name)
    """) == ["m:train:0", "m:<module>:0"]


def test_structure_names_a_loop_and_lines_do_not():
    text = """
        for a in x:
            for b in y:
                opt.step()
            while c:
                opt.step()
        for d in z:
            optimizer.step()
    """
    expected = ["m:<module>:0", "m:<module>:0.0", "m:<module>:0.1", "m:<module>:1"]
    assert sites(text) == expected
    assert (
        sites(text.replace("opt.step()", "print('hindsight')\n                opt.step()"))
        == expected
    )


@pytest.mark.parametrize(
    "update",
    [
        "loss.backward()", "optimizer.step(closure)", "scaler.scale(loss).backward()",
        "w -= lr * w.grad", "w.data.add_(w.grad, alpha=-lr)", "self.opt_g.step()",
        "w.data = w.data - lr * w.grad.data",
    ],
)  # fmt: skip
def test_what_an_update_is(update):
    assert sites(f"for x in data:\n    {update}") == ["m:<module>:0"]


@pytest.mark.parametrize(
    "line", ["env.step(action)", "print(x)", "model.eval()", "w.data.zero_()", "scheduler.step()"]
)
def test_what_no_update_is(line):
    assert sites(f"for x in data:\n    {line}") == []


def test_a_loop_over_parameters_is_no_place_to_stop():
    assert sites("""
        for batch in data:
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
    """) == ["m:<module>:0"]


def test_a_variable_named_as_a_function_that_trains_is_not_that_function():
    assert sites("""
        class Schedule:
            def step(self):
                self.optimizer.step()
        def compose(bars):
            for bar in range(bars):
                step = bar + 1
                print(step)
        for batch in data:
            schedule.step()
    """) == ["m:<module>:0"]


def test_what_is_passed_on_may_be_called_by_any_name():
    assert sites("""
        class Trainer:
            def epoch(self):
                for batch in self.data:
                    batch.loss.backward()
            def fit(self, phases):
                for run_epoch in phases:
                    run_epoch()
        trainer.fit([lambda: trainer.epoch()])
    """) == ["m:Trainer.epoch:0", "m:Trainer.fit:0"]


def test_generators_are_held_and_their_loops_left_alone():
    tree = rewritten("""
        def batches():
            for batch in data:
                batch.backward()
                yield batch
        @contextmanager
        def quiet():
            yield
    """)
    first, second = tree.body
    assert [ast.unparse(each) for each in first.decorator_list] == ["__detrain__.held"]
    assert [ast.unparse(each) for each in second.decorator_list] == ["contextmanager"]
    assert "entering" not in ast.unparse(tree)


def test_a_break_with_an_else_is_marked():
    loop = "for x in y:\n    opt.step()\n    if x:\n        break\nelse:\n    print(x)"
    assert sites(loop) == ["m:<module>:0!"]
    assert sites(loop.replace("break", "pass")) == ["m:<module>:0"]


def test_lines_stay():
    text = "\n\nfor x in y:\n    while x:\n        opt.step()\n\n\nraise ValueError\n"
    lines = {
        type(node): node.lineno for node in ast.walk(rewritten(text)) if hasattr(node, "lineno")
    }
    assert (lines[ast.For], lines[ast.While], lines[ast.Raise]) == (3, 4, 8)
    compile(rewritten(text), "m.py", "exec")


def test_the_project_is_what_the_script_imports_from_beside_it(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "train.py").write_text("import os, helpers\nfrom pkg import model, missing\n")
    (tmp_path / "helpers.py").write_text("import torch")
    (tmp_path / "unused.py").write_text("")
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "model.py").write_text("from . import layers\nfrom .layers import x")
    (tmp_path / "pkg" / "layers.py").write_text("def broken(:")
    project = read_project(tmp_path / "train.py", ())
    names = sorted(path.removeprefix(str(tmp_path) + "/") for path in project.trees)
    assert names == ["helpers.py", "pkg/__init__.py", "pkg/model.py", "train.py"]
    assert project.owns(str(tmp_path / "helpers.py"))
    assert not project.owns(str(tmp_path / "unused.py"))
    assert project.imports("torch")
    assert not project.imports("detrain")


def test_the_plan_and_the_new_headers_name_loops_alike():
    examples = sorted((Path(__file__).parents[2] / "examples" / "torch").glob("[01]*.py"))
    for script in examples:
        project = read_project(script, ())
        plan = analyse(project).plan
        chosen = {(loop.line, loop.column) for loop in plan.loops}
        tree = rewrite(
            ast.parse(script.read_text()),
            "__main__",
            lambda loop, chosen=chosen: (loop.lineno, loop.col_offset) in chosen,
        )
        assert sorted(found_sites(tree)) == sorted(loop.site for loop in plan.loops)
        assert plan.loops, script


def test_the_else_of_a_loop_is_outside_of_it(tmp_path):
    script = tmp_path / "train.py"
    update = "        loss = model(x).sum(); loss.backward(); opt.step(); opt.zero_grad()"
    script.write_text(
        "import torch\n"
        "model = torch.nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "x = torch.ones(2)\n"
        "for epoch in range(2):\n"
        "    for _ in range(3):\n" + update + "\n"
        "else:\n"
        "    for _ in range(2):\n" + update + "\n"
    )
    loops = analyse(read_project(script, ())).plan.loops
    sites = {loop.line: loop.site for loop in loops}
    assert sites == {5: "__main__:<module>:0", 6: "__main__:<module>:0.0", 9: "__main__:<module>:1"}
    tree = rewrite(ast.parse(script.read_text()), "__main__", lambda loop: loop.lineno in sites)
    assert sorted(found_sites(tree)) == sorted(sites.values())
