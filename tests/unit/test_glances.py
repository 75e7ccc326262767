"""One look at many tensors: whatever a `view` of one would show, and nothing of their content."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from detrain.capture.again import Again
from detrain.capture.own import not_a_library
from detrain.capture.walk import walk
from detrain.frameworks import find
from detrain.frameworks.torch import glances

ADAPTER = find.by_name("torch")


def some() -> list[torch.Tensor]:
    """Tensors of several kinds; the last is no leaf."""
    weight = torch.nn.Parameter(torch.ones(3, 4))
    return [torch.zeros(3, 4), weight, torch.zeros(3, 4, dtype=torch.complex64), weight * 2]


def become_no_leaf(tensors: list[torch.Tensor]) -> None:
    tensors[1].requires_grad_(False)
    tensors[1].mul_(torch.ones(1, requires_grad=True))


def lose_the_graph(tensors: list[torch.Tensor]) -> None:
    tensors[3].detach_().requires_grad_()


CHANGES: dict[str, Any] = {
    "content": (lambda t: t[0].add_(1), True),
    "content of a parameter": (lambda t: t[1].detach().add_(1), True),
    "memory": (lambda t: setattr(t[0], "data", torch.zeros(3, 4)), False),
    "shape": (lambda t: t[0].resize_(4, 3), False),
    "strides": (lambda t: t[0].t_().resize_(3, 4), None),
    "transposed": (lambda t: t[0].t_(), False),
    "part": (lambda t: t[0].set_(t[0][:2]), False),
    "dtype": (lambda t: setattr(t[0], "data", t[0].view(torch.int32)), False),
    "requires a gradient": (lambda t: t[0].requires_grad_(), False),
    "requires none": (lambda t: t[1].requires_grad_(False), False),
    "no leaf": (become_no_leaf, False),
    "leaf": (lose_the_graph, False),
    "gradient": (lambda t: setattr(t[1], "grad", torch.ones(3, 4)), False),
    "gradient of one that requires none": (
        lambda t: setattr(t[0], "grad", torch.ones(3, 4)), False
    ),
    "attribute": (lambda t: setattr(t[0], "note", 1), False),
    "lazy": (lambda t: t.__setitem__(2, t[2].conj()), False),
    "another class": (lambda t: t.__setitem__(0, torch.nn.Buffer(t[0])), False),
}  # fmt: skip


@pytest.mark.parametrize("graded", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_view_shows_is_seen(name: str, graded: bool) -> None:
    tensors, (change, same) = some(), CHANGES[name]
    with torch.set_grad_enabled(graded):
        seen = ADAPTER.glance(tensors)
        assert seen is not None
        assert seen.is_same(tensors)
    before = [described(tensor) for tensor in tensors]
    change(tensors)
    with torch.set_grad_enabled(graded):
        found = seen.is_same(tensors)
    if same is not None:
        assert found is same
    alike = [described(tensor) for tensor in tensors] == before
    assert alike or not found


def described(tensor: torch.Tensor) -> Any:
    try:
        view = ADAPTER.view(tensor)
    except ValueError as error:
        return str(error)
    assert view is not None
    facts = {name: getattr(view, name) for name in view.__struct_fields__}
    return {**facts, "fields": sorted(view.fields)}


def test_a_torch_without_that_way_gives_the_same_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glances, "_Forms", None)
    model, again = torch.nn.Linear(3, 2), Again(not_a_library)
    for value in (1.0, 2.0, 3.0):
        torch.nn.init.constant_(model.weight, value)
        model.weight.data = torch.full((2, 3), value)
        assert again.walk({"m/model": model}).tree == walk({"m/model": model}).tree
