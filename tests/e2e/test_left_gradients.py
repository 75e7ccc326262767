"""Gradients that are left from a model which is not trained any more are no part of the outcome."""

from __future__ import annotations

import textwrap

import pytest

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "3", "--digest-every", "2", "--seed", "3")

PROGRAM = """
    import torch
    from torch import nn


    class Member:
        def __init__(self):
            self.model = nn.Linear(8, 8)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def train(self):
            for _ in range(8):
                x = torch.randn(4, 8)
                self.optimizer.zero_grad()
                (self.model(x) - x).pow(2).mean().backward()
                self.optimizer.step()


    def main():
        members = [Member(), Member()]
        for turn in range(2):
            for member in members:
                member.train()
        print(sum(member.model.weight.sum().item() for member in members))


    main()
"""


@pytest.mark.parametrize("step", [12, 30])
def test_the_outcome_is_that_of_the_whole_run(runner, tmp_path, step):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    assert runner.run(script, "whole", *OPTIONS).code == 0
    # While the second one is trained: a checkpoint has no gradients of the first.
    assert runner.run(script, "it", *OPTIONS, crash=f"step={step}").code == -9
    assert runner.run(script, "it", *OPTIONS).code == 0
    whole, it = runner.show("whole"), runner.show("it")
    assert any(it["resumes"])
    assert (it["state_digest"], it["trace_digest"]) == (
        whole["state_digest"],
        whole["trace_digest"],
    )
    assert runner.log("it") == runner.log("whole")
