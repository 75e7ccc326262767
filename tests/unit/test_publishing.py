"""When a checkpoint is published, and at which loops one may be taken."""

from __future__ import annotations

import threading
import time

import pytest
import torch

import detrain
from detrain.runtime.committing import Committing

WIDTH = 1500
"""Of a layer that takes a while to be copied: what is changed at once is changed under the copy."""


def appears(folder, step: int, seconds: float) -> bool:
    """Whether the checkpoint of a step is published within some seconds."""
    path = folder / "run" / "checkpoints" / f"{step:010d}.json"
    until = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.01)
    return path.exists()


def trained(folder, body) -> None:
    model = torch.nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    options = {"save_every": 1, "digest_every": 0, "keep": 9}
    with detrain.run(name="run", seed=1, runs=folder, **options) as run:
        for step in run.loop(range(5), model=model, optimizer=optimizer, carried=(carried := [])):
            body(step, model, optimizer, carried)


def update(model, optimizer) -> None:
    model(torch.ones(1, WIDTH)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_it_is_published_before_the_iteration_ends(tmp_path):
    seen = []

    def body(step, model, optimizer, _):
        if step > 1:  # the first is compared when the iteration is over
            seen.append(appears(tmp_path, step, 10))
        update(model, optimizer)

    trained(tmp_path, body)
    assert seen == [True, True, True]


@pytest.mark.parametrize("how", ["a graph crosses the head", "a parameter is changed by hand"])
def test_it_waits_where_the_iteration_may_speak_against_it(tmp_path, how):
    seen = []

    def body(step, model, optimizer, carried):
        if step > 1:
            with torch.no_grad():
                if how.startswith("a parameter"):
                    model.weight.add_(1.0)  # at once: the copy is under way
            seen.append(appears(tmp_path, step, 0.3))
        update(model, optimizer)
        carried[:] = [model(torch.ones(1, WIDTH)).sum()] if how.startswith("a graph") else []

    trained(tmp_path, body)
    # What is changed by hand is copied at once after the first time, and published then.
    assert seen == ([False] * 3 if how.startswith("a graph") else [False, True, True])


def test_a_writer_that_can_not_begin_leaves_nobody_waiting(tmp_path, monkeypatch):
    plain, steps = Committing.begin, []

    def begin(self, order):
        steps.append(order.step)
        if len(steps) == 3:
            raise RuntimeError("no thread is to be had")
        plain(self, order)

    monkeypatch.setattr(Committing, "begin", begin)
    model = torch.nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with detrain.run(name="run", seed=1, runs=tmp_path, save_every=1, digest_every=0) as run:
        try:
            for _ in run.loop(range(5), model=model, optimizer=optimizer):
                update(model, optimizer)
        except RuntimeError:
            update(model, optimizer)  # nobody copies, and nothing is to be waited for
            steps.append("went on")
    assert steps[-1] == "went on"


def test_what_can_not_be_made_anew_is_refused_each_time(tmp_path):
    def body(step, model, optimizer, carried):
        if step == 0:
            carried.append(threading.Lock())
        update(model, optimizer)

    trained(tmp_path, body)
    assert not list((tmp_path / "run" / "checkpoints").glob("*[1-9].json"))


@pytest.mark.parametrize("declared", [False, True])
def test_around_a_loader_its_generator_has_to_be_declared(tmp_path, declared):
    order = torch.Generator().manual_seed(1)
    loader = torch.utils.data.DataLoader(torch.arange(6.0), shuffle=True, generator=order)
    weight, carried = torch.ones(1, requires_grad=True), []
    named = {"weight": weight, "carried": carried} | ({"order": order} if declared else {})
    options = {"save_every": 1, "digest_every": 0, "keep": 99}
    with detrain.run(name="run", seed=1, runs=tmp_path, **options) as run:
        for _ in run.loop(range(3), **named):
            carried[:] = [weight * 1.0]
            for x in run.loop(loader, **named):
                # A graph that crosses each head leaves checkpoints to the loop around.
                carried[:] = [carried[0] * x]
            carried[0].sum().backward()
    found = [path.name for path in (tmp_path / "run" / "checkpoints").glob("*.json")]
    assert bool(found) == declared, found
