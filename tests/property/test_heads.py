"""What was found at one checkpoint is used at the next, and the bytes are those of the head.

Between checkpoints, and while they are copied, a program does to its tensors whatever it likes.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_still import (
    CHANGES,
    HELD,
    SIDE,
    Program,
    begun,
    bytes_of,
    check,
    late_copies,
    leaves_of,
)

import detrain
import detrain.frameworks.torch as torch_adapter
from detrain.checkpoint.buffers import Arena
from detrain.checkpoint.snapshot import take_overlapped
from detrain.frameworks.torch import still
from detrain.frameworks.torch.guards import GUARDS
from detrain.frameworks.torch.still import StillTensors
from detrain.runtime.heads import Head
from detrain.runtime.level import Habits

NONE: frozenset[str] = frozenset()

__all__ = ["late_copies"]  # copies begin when they are waited for, here as well


class Checkpoints:
    """Snapshots of a program at the head of one loop."""

    def __init__(self, program):
        self.program, self.head, self.arena, self.habits = program, Head((), own), Arena(), Habits()

    def take(self, changing=NONE):
        """A snapshot, and what it must hold."""
        walked = self.head.walk(self.program.roots, None)
        before = {name: bytes_of(leaf) for name, leaf in leaves_of(self.program)[1].items()}
        arranged, kept = self.head.arrange(walked, self.habits, changing)
        made = take_overlapped(
            walked.tree, arranged, {}, gradients=True, left_out=0, arena=self.arena, still=kept,
            thorough=False,
        )  # fmt: skip
        assert {array.name for array in made.arrays} == before.keys()
        return made, before


def own(_: str) -> bool:
    return False


@pytest.fixture(autouse=True)
def aside():
    yield
    GUARDS.step_aside()


def finished(made, before):
    if made.overlap is not None:
        begun(made)
    changed = check(made, before)
    made.release()
    return changed


def found_anew(monkeypatch):
    """How often it is asked which tensors are still."""
    plain, asked = StillTensors.__init__, []

    def init(self, *args):
        asked.append(1)
        plain(self, *args)

    monkeypatch.setattr(StillTensors, "__init__", init)
    return asked


def test_what_stays_is_not_asked_for_again(monkeypatch):
    asked, program = found_anew(monkeypatch), Program()
    checkpoints = Checkpoints(program)
    for _ in range(5):
        program.optimizer.zero_grad()
        assert finished(*checkpoints.take()) == ()
        program.update()
    assert len(asked) == 1


@pytest.mark.parametrize("held", [name for name in HELD if name != "nothing"])
def test_an_alias_that_came_later_is_seen(held):
    """It could change the tensor behind our back: the tensor is copied at once from then on."""
    program = Program()
    checkpoints = Checkpoints(program)
    for _ in range(3):
        program.optimizer.zero_grad()
        made, before = checkpoints.take()
        late = late_ones(made)
        finished(made, before)
        program.update()
    program.hidden = HELD[held](program)
    program.optimizer.zero_grad()
    made, before = checkpoints.take()
    assert late_ones(made) < late
    begun(made)
    CHANGES["hidden"](program)
    assert check(made, before) == ()


def test_without_looking_again_the_bytes_would_be_wrong(monkeypatch):
    monkeypatch.setattr(StillTensors, "prepare", always)
    program = Program()
    checkpoints = Checkpoints(program)
    for _ in range(3):
        program.optimizer.zero_grad()
        finished(*checkpoints.take())
        program.update()
    program.hidden = HELD["numpy"](program)
    program.optimizer.zero_grad()
    made, before = checkpoints.take()
    made.overlap.begin()
    CHANGES["hidden"](program)
    made.overlap.copying.start()
    assert not made.overlap.end()
    assert any(bytes(made.wait_for(array)) != before[array.name] for array in made.arrays)


def always(self):
    self._versions = [tensor._version for tensor in self._watched]
    return True


def late_ones(made):
    return (
        {each.name for each in made.overlap.copying._windows._row.arrays} if made.overlap else set()
    )


def test_what_the_loop_changes_early_is_copied_at_once_from_then_on():
    program = Program()
    checkpoints = Checkpoints(program)
    program.optimizer.zero_grad()
    made, before = checkpoints.take()
    late = late_ones(made)
    finished(made, before)
    checkpoints.habits.hasty.add(min(late))
    made, before = checkpoints.take()
    assert late_ones(made) == late - {min(late)}
    finished(made, before)
    checkpoints.habits.torn = 2
    made, before = checkpoints.take()
    assert late_ones(made) == set()
    finished(made, before)


def test_when_something_was_compiled_all_is_copied_at_once(monkeypatch):
    program = Program()
    checkpoints = Checkpoints(program)
    program.optimizer.zero_grad()
    made, before = checkpoints.take()
    assert late_ones(made)
    finished(made, before)
    for module in (torch_adapter, still):
        monkeypatch.setattr(module, "is_compiled", lambda: True)
    made, before = checkpoints.take()
    assert not late_ones(made)
    assert "data" not in vars(torch.Tensor)
    finished(made, before)


def test_a_run_leaves_torch_as_it_was(tmp_path):
    program, seen = Program(), []
    with detrain.run(seed=1, runs=tmp_path, save_every=1, digest_every=0) as run:
        for _ in run.loop(range(4), model=program.model, optimizer=program.optimizer):
            seen.append("data" in vars(torch.Tensor))
            program.update()
            program.optimizer.zero_grad()
    assert any(seen)
    assert "data" not in vars(torch.Tensor)


def test_small_arrays_are_copied_from_where_they_are_now():
    program = Program()
    checkpoints = Checkpoints(program)
    for number in range(4):
        program.optimizer.zero_grad()
        program.model[1].bias.data = torch.full((SIDE,), float(number))
        program.model.register_buffer("turned", torch.arange(12.0).reshape(3, 4).t() + number)
        program.model.register_buffer("none", torch.zeros(0))
        assert finished(*checkpoints.take()) == ()


def test_variables_that_hold_arrays_are_copied_at_once_and_not_kept():
    program = Program()
    checkpoints = Checkpoints(program)
    for number in range(4):
        program.optimizer.zero_grad()
        program.roots["batch"] = torch.full((SIDE, SIDE), float(number))
        assert finished(*checkpoints.take()) == ()
        program.update()


@pytest.mark.slow
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rounds=st.lists(
        st.tuples(
            st.sampled_from(sorted(HELD)),
            st.lists(st.sampled_from(sorted(CHANGES)), max_size=3),
            st.lists(st.sampled_from(sorted(CHANGES)), max_size=3),
            st.booleans(),
        ),
        min_size=2,
        max_size=6,
    )
)
@example(rounds=[("nothing", [], ["step"], False)] * 4)
@example(rounds=[("nothing", ["step"], [], False)] * 3 + [("numpy", ["hidden"], [], True)] * 2)
def test_many_changes_between_checkpoints_and_while_they_are_taken(rounds):
    program = Program()
    checkpoints = Checkpoints(program)
    for held, within, between, written in rounds:
        program.hidden = HELD[held](program) if program.one.shape == (SIDE, SIDE) else []
        changing = frozenset(leaves_of(program)[1]) if written else NONE
        made, before = checkpoints.take(changing)
        if made.overlap is not None:
            begun(made)
        try:
            for name in within:
                CHANGES[name](program)
            check(made, before)
            for name in between:
                CHANGES[name](program)
        except (RuntimeError, AttributeError, KeyError, ValueError, TypeError, UserWarning):
            if made.overlap is not None:
                made.overlap.end()
            break  # the program's own mistake: a shape that another change made impossible
        finally:
            made.release()


def test_torch_is_left_as_it_was():
    names = ["data", "numpy", "data_ptr", "untyped_storage", "__array__"]
    plain = [vars(torch.Tensor).get(name) for name in names]
    swap = torch._C._swap_tensor_impl
    program = Program()
    checkpoints = Checkpoints(program)
    for _ in range(2):
        program.optimizer.zero_grad()
        finished(*checkpoints.take())
        program.update()
    assert "data" in vars(torch.Tensor)
    GUARDS.step_aside()
    assert [vars(torch.Tensor).get(name) for name in names] == plain
    assert torch._C._swap_tensor_impl is swap
    assert len(program.one.data) == SIDE
