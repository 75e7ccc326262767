"""Whatever a program does to its tensors while they are copied: the bytes of the cut, or nothing.

The copy is made to begin as late as it can (when something has it finished), so that any change
which goes unseen would be in it.
"""

from __future__ import annotations

import copy
import ctypes
import itertools
import os
import signal
import threading

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import nn

from detrain.capture.walk import walk
from detrain.checkpoint import buffers, windows
from detrain.checkpoint import copying as copying_module
from detrain.checkpoint.arranged import arrange
from detrain.checkpoint.buffers import Arena
from detrain.checkpoint.snapshot import take_overlapped
from detrain.frameworks import find
from detrain.frameworks.find import live_bytes
from detrain.frameworks.torch.guards import GUARDS
from detrain.frameworks.torch.still import StillTensors
from detrain.trace.digest import digest_array

SIDE = 128  # just large enough to be copied late


class Program:
    """A model, its optimizer after a step, and aliases that nobody but the program knows of."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(SIDE, SIDE, bias=False), nn.Linear(SIDE, SIDE))
        self.rows = np.ones((SIDE, SIDE), np.float32)
        self.model.borrowed = nn.Parameter(torch.from_numpy(self.rows))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1, foreach=False)
        self.update()
        self.roots = {"model": self.model, "optimizer": self.optimizer}
        self.hidden = []

    @property
    def one(self):
        return self.model[0].weight

    @property
    def other(self):
        return self.model[1].weight

    @property
    def moment(self):
        return self.optimizer.state[self.one]["exp_avg"]

    def update(self):
        loss = self.model[1](self.model[0](torch.ones(2, SIDE)) @ self.model.borrowed).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def without_grad(action):
    def change(program):
        with torch.no_grad():
            action(program)

    return change


def fused(program):
    torch.optim.SGD([program.one], lr=0.5, fused=True).step()


def fused_function(program):
    none = torch.zeros(())
    grads = [torch.ones_like(program.one)]
    moments = [[torch.ones_like(program.one)] for _ in range(2)]
    torch._fused_adam_(
        [program.one.detach()], grads, *moments, [], [none + 1],
        lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
    )  # fmt: skip


def swap(program):
    torch.utils.swap_tensors(program.model[0].weight, torch.zeros(4))


def swap_unseen(program):
    """The tensor that comes has the same version, and the memory that goes is changed."""
    other = nn.Parameter(torch.zeros_like(program.one))
    with torch.no_grad():
        while other._version < program.one._version:
            other.add_(1)
        torch.utils.swap_tensors(program.model[0].weight, other)
        other.add_(1)


def by_address(program):
    ctypes.memset(program.one.data_ptr(), 7, program.one.nbytes)


def to_numpy(program):
    program.other.detach().numpy()[3] = 5


def set_data(program):
    program.one.data = torch.zeros(SIDE, SIDE)


def inference(program):
    with torch.inference_mode():
        program.one.add_(1)


def through_storage(program):
    program.one.untyped_storage().fill_(3)


def vector(program):
    flat = torch.ones(sum(p.numel() for p in program.model.parameters()))
    nn.utils.vector_to_parameters(flat, program.model.parameters())


def renorm(program):
    nn.functional.embedding(torch.tensor([1, 2]), program.one, max_norm=0.01)


def shared(program):
    program.one.share_memory_().data.fill_(4)


def dlpack(program):
    torch.from_dlpack(program.one.detach()).fill_(6)


def capsule(program):
    torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(program.one.detach())).fill_(6)


def freed(program):
    program.model[0].weight = nn.Parameter(torch.zeros(SIDE, SIDE))


def hidden(program):
    for alias in program.hidden:
        alias.fill(9) if isinstance(alias, np.ndarray) else alias.fill_(9)


def numpy_behind(program):
    program.rows[:] = 8


def apply(program):
    program.other.detach().apply_(lambda value: value + 1)


CHANGES = {
    "step": Program.update,
    "add_": without_grad(lambda p: p.one.add_(1)),
    "item": without_grad(lambda p: p.one.__setitem__(3, 7.0)),
    "view": without_grad(lambda p: p.other.view(-1)[5:].mul_(2)),
    "detach": lambda p: p.one.detach().mul_(2),
    "moment": lambda p: p.moment.zero_(),
    "foreach": without_grad(lambda p: torch._foreach_add_([p.one, p.other], 1.0)),
    "out": without_grad(lambda p: torch.add(p.one, 1, out=p.moment)),
    "data": lambda p: p.one.data.add_(1),
    "set data": set_data,
    "set_": without_grad(lambda p: p.one.set_(torch.ones(SIDE, SIDE))),
    "resize_": lambda p: p.moment.resize_(4 * SIDE, SIDE).zero_(),
    "numpy": to_numpy,
    "asarray": lambda p: np.asarray(p.one.detach()).fill(2),
    "address": by_address,
    "storage": through_storage,
    "dlpack": dlpack,
    "capsule": capsule,
    "fused": fused,
    "fused function": fused_function,
    "swap": swap,
    "swap unseen": swap_unseen,
    "inference": inference,
    "init": lambda p: nn.init.normal_(p.one),
    "load": lambda p: p.model.load_state_dict(
        {name: torch.zeros_like(value) for name, value in p.model.state_dict().items()}
    ),
    "vector": vector,
    "renorm": renorm,
    "shared": shared,
    "freed": freed,
    "hidden": hidden,
    "numpy behind": numpy_behind,
    "apply": apply,
    "deepcopy": lambda p: copy.deepcopy(p.model),
    "forward": lambda p: p.model[0](torch.ones(2, SIDE)).sum().backward(),
}

HELD = {
    "nothing": lambda p: [],
    "data": lambda p: [p.one.data],
    "numpy": lambda p: [p.other.detach().numpy()],
    "storage": lambda p: [p.one.untyped_storage()],
    "view": lambda p: [p.one.detach().view(-1)],
}


def leaves_of(program):
    walked = walk(program.roots)
    return walked, {leaf.name: leaf for leaf in walked.leaves}


def bytes_of(leaf):
    return bytes(live_bytes(leaf.framework, leaf.array, leaf.nbytes))


def snapshot(program, arena, *, thorough=False, left=False):
    """A snapshot, what it must hold, and what is copied late: all by the writer if it is `left`."""
    walked, leaves = leaves_of(program)
    before = {name: bytes_of(leaf) for name, leaf in leaves.items()}
    still = find.by_name("torch").still(walked.leaves, walked.alive)
    assert still is None or still.prepare()
    addresses = still.addresses if still else {}
    made = take_overlapped(
        walked.tree, arrange(walked.leaves, addresses, leaves if left else ()), {},
        gradients=True, left_out=0, arena=arena, still=[still] if still else [], thorough=thorough,
    )  # fmt: skip
    late = set(addresses)
    del walked, leaves
    return made, before, late


def begun(made):
    """Go on, as after the head of a loop; somebody writes."""
    made.overlap.begin()
    made.overlap.copying.start()


@pytest.fixture(autouse=True)
def late_copies(monkeypatch):
    """A copy begins when it is waited for, or when `hasten` is set."""
    hasten = threading.Event()
    plain_run, plain_finish = copying_module.Copying._run, copying_module.Copying.finish

    def run(self):
        self.asked = getattr(self, "asked", None) or threading.Event()
        while not self.asked.is_set() and not hasten.is_set():
            self.asked.wait(0.001)
        plain_run(self)

    def finish(self):
        self.asked = getattr(self, "asked", None) or threading.Event()
        self.asked.set()
        plain_finish(self)

    monkeypatch.setattr(copying_module.Copying, "_run", run)
    monkeypatch.setattr(copying_module.Copying, "finish", finish)
    return hasten


def check(made, before):
    """Either something is said to have changed, or all bytes are those of the cut."""
    changed = made.overlap.end() if made.overlap is not None else ()
    if not changed:
        for array in made.arrays:
            assert bytes(made.wait_for(array)) == before[array.name], array.name
            assert made.digest(array) is not None
    return changed


def test_parameters_and_moments_are_copied_late_and_nothing_else():
    program = Program()
    made, before, late = snapshot(program, Arena())
    # Two parameters; the third lies in memory of numpy's. Two moments of each of the three.
    assert len(late) == 2 + 6
    assert not [name for name in late if name.endswith("grad")]
    begun(made)
    assert check(made, before) == ()


@pytest.mark.slow
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", CHANGES)
def test_one_change(name, held):
    program = Program()
    program.hidden = HELD[held](program)
    made, before, _ = snapshot(program, Arena())
    begun(made)
    CHANGES[name](program)
    check(made, before)
    GUARDS.step_aside()
    assert "data" not in vars(torch.Tensor)
    assert "numpy" not in vars(torch.Tensor)


@pytest.mark.parametrize(
    ("name", "torn"),
    [("add_", True), ("foreach", True), ("inference", True), ("moment", True), ("step", False),
     ("data", False), ("numpy", False), ("fused function", False), ("forward", False)],
)  # fmt: skip
def test_what_goes_past_an_optimizer_is_seen_and_what_waits_is_kept(name, torn):
    program = Program()
    made, before, _ = snapshot(program, Arena())
    begun(made)
    CHANGES[name](program)
    assert bool(check(made, before)) == torn


def test_a_write_that_nothing_shows_is_found_by_comparing():
    """An address that a program kept: no version, no alias. The first copy is compared for it."""
    for thorough in (True, False):
        program = Program()
        address = program.one.data_ptr()
        made, before, _ = snapshot(program, Arena(), thorough=thorough)
        begun(made)
        made.overlap.copying.finish()
        ctypes.memset(address, 7, program.one.nbytes)
        changed = made.overlap.end()
        assert len(changed) == thorough
        if not thorough:  # it was copied before the write: the bytes are right all the same
            assert check(made, before) == ()


def test_a_child_that_is_forked_meanwhile_waits_for_nothing():
    program = Program()
    made, before, _ = snapshot(program, Arena())
    begun(made)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        torch.set_num_threads(1)  # the threads of the parent are not here
        program.one.data.add_(1)
        program.update()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert check(made, before) == ()


@pytest.mark.parametrize("name", ["step", "data", "numpy", "address", "fused function"])
def test_without_the_guards_the_bytes_would_be_wrong(monkeypatch, name):
    monkeypatch.setattr(StillTensors, "begin", lambda self, settle: None)
    program = Program()
    made, before, _ = snapshot(program, Arena())
    begun(made)
    CHANGES[name](program)
    assert made.overlap.end() or any(
        bytes(made.wait_for(array)) != before[array.name] for array in made.arrays
    )


def passed(made, before):
    """Pieces that a writer takes from where they lie, each as it was when it was taken."""
    expected = b"".join(before[a.name] for a in made.arrays if a.name in made.left)
    return (bytes(piece) for piece in made.overlap.copying.pieces()), expected


@pytest.fixture
def small_windows(monkeypatch):
    for module in (buffers, copying_module, windows):
        monkeypatch.setattr(module, "WINDOW", 20_000)  # an array has three and a half


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize(("guarded", "right"), [(True, True), (False, False)])
def test_what_is_written_from_where_it_lies_is_the_state_of_the_cut(monkeypatch, guarded, right):
    if not guarded:
        monkeypatch.setattr(StillTensors, "begin", lambda self, settle: None)
    program = Program()
    made, before, late = snapshot(program, Arena(), left=True)
    assert made.left == late
    begun(made)
    pieces, expected = passed(made, before)
    found = next(pieces) + next(pieces)
    program.update()  # waits until the rest is in the block, if it is guarded
    found += b"".join(pieces)
    assert (found == expected) == right
    changed = made.overlap.end()
    assert bool(changed) != guarded
    if guarded:
        assert all(made.digest(a) == digest_array(before[a.name]) for a in made.arrays)


@pytest.mark.slow
@pytest.mark.usefixtures("small_windows")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    held=st.sampled_from(sorted(HELD)),
    events=st.lists(
        st.one_of(st.sampled_from(sorted(CHANGES)), st.integers(1, 12), st.none()), max_size=8
    ),
)
def test_many_changes_while_it_is_written(late_copies, held, events):
    """Numbers are pieces that the writer takes; from None on, the copy goes on by itself."""
    late_copies.clear()
    program = Program()
    program.hidden = HELD[held](program)
    made, before, _ = snapshot(program, Arena(), left=True)
    begun(made)
    (pieces, expected), found = passed(made, before), b""
    for event in events:
        if event is None:
            late_copies.set()
        elif isinstance(event, int):
            found += b"".join(itertools.islice(pieces, event))
        else:
            try:
                CHANGES[event](program)
            except (RuntimeError, AttributeError, KeyError, ValueError, TypeError, UserWarning):
                break
    changed = made.overlap.end()
    found += b"".join(pieces)
    if not changed:
        assert found == expected
        for array in made.arrays:
            assert made.digest(array) == digest_array(before[array.name])


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rounds=st.lists(
        st.tuples(
            st.sampled_from(sorted(HELD)),
            st.lists(st.sampled_from(sorted(CHANGES)), max_size=5),
            st.integers(0, 5),
        ),
        min_size=1,
        max_size=3,
    )
)
@example(rounds=[("nothing", ["add_", "step"], 0), ("nothing", ["step", "add_"], 1)])
def test_many_changes_over_some_checkpoints(late_copies, rounds):
    program, arena = Program(), Arena()
    for held, names, hasten_at in rounds:
        late_copies.clear()
        program.hidden = HELD[held](program) if program.one.shape == (SIDE, SIDE) else []
        made, before, _ = snapshot(program, arena)
        if made.overlap is not None:
            begun(made)
        for number, name in enumerate(names):
            if number == hasten_at:
                late_copies.set()
            try:
                CHANGES[name](program)
            except (RuntimeError, AttributeError, KeyError, ValueError, TypeError, UserWarning):
                break  # the program's own mistake: a shape that another change made impossible
        check(made, before)
        made.release()
