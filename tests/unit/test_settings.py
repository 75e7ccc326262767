"""The settings of optimizers and schedulers, apart from what they train."""

from __future__ import annotations

from copy import deepcopy

import pytest

torch = pytest.importorskip("torch")

from detrain.runtime.settings import put_settings, settings_of  # noqa: E402


def trained(lr=0.1):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_settings_come_back_and_what_is_trained_stays():
    model, optimizer = trained()
    scheduler = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2),
            torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5),
        ],
        milestones=[2],
    )
    before = deepcopy((settings_of(optimizer), settings_of(scheduler)))
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    changed = {name: value.clone() for name, value in model.state_dict().items()}
    assert settings_of(optimizer) != before[0]
    assert settings_of(scheduler) != before[1]
    put_settings(optimizer, before[0])
    put_settings(scheduler, before[1])
    assert (settings_of(optimizer), settings_of(scheduler)) == before
    for name, value in model.state_dict().items():
        assert torch.equal(value, changed[name])
        assert not torch.equal(value, weights[name])


def test_settings_hold_no_array_and_nothing_else_does():
    _, optimizer = trained()
    found = settings_of(optimizer)
    assert found["param_groups/#0/lr"] == 0.1
    assert not any("params" in path or path.startswith("state") for path in found)
    _, optimizer = trained(torch.tensor(0.1))
    with pytest.raises(LookupError):
        settings_of(optimizer)
