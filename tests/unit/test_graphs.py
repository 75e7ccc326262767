"""Graphs that a backward pass went through need not be watched; others are seen to be used."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from detrain.frameworks.torch.graphs import watch

WEIGHT = torch.nn.Linear(3, 3)


def made() -> torch.Tensor:
    return WEIGHT(torch.ones(2, 3)).pow(2).mean()


def test_a_graph_that_was_gone_through_is_not_watched():
    loss = made()
    total = 1.0 + loss  # itself it has saved nothing
    loss.backward()
    assert watch(loss, pytest.fail) is None
    assert watch(total, pytest.fail) is None
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()


def test_one_that_can_be_used_again_is():
    loss, seen = made(), []
    loss.backward(retain_graph=True)
    end = watch(loss, lambda: seen.append(1))
    loss.backward()
    assert seen == [1]
    assert end()


def test_nothing_is_computed_again_to_find_out():
    calls = []

    def part(x):
        calls.append(1)
        return WEIGHT(x).pow(2)

    x = torch.ones(2, 3, requires_grad=True)
    loss = checkpoint(part, x, use_reentrant=False).mean()
    assert watch(loss, lambda: None) is not None
    assert len(calls) == 1
    loss.backward()
    assert watch(loss, pytest.fail) is None


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * gradient + 0 * x


def test_functions_of_the_program_are_asked_too():
    loss = Doubled.apply(torch.ones(1, requires_grad=True))
    assert watch(loss, lambda: None) is not None
    loss.backward()
    assert watch(loss, pytest.fail) is None


@pytest.mark.parametrize("kept", [False, True])
def test_whether_it_is_still_there_is_told(kept):
    loss = made()
    total = loss + 1.0 if kept else None
    end = watch(loss, pytest.fail)
    del loss
    assert end() == kept
    del total


def test_what_has_no_graph_is_not_watched():
    assert watch(torch.ones(1), pytest.fail) is None
