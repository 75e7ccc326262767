"""Whatever a program does first to tensors that lie in a checkpoint's file: as if they did not."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import itertools
import os
import pickle
import signal
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_still import SIDE, Program, bytes_of, leaves_of

import detrain
from detrain.capture.restore import restore
from detrain.checkpoint.format import ArrayBytes, encode_header, read_arrays
from detrain.frameworks import find
from detrain.frameworks.base import Mapped
from detrain.frameworks.torch import lodging
from detrain.frameworks.torch.guards import GUARDS
from detrain.frameworks.torch.lodging import LODGING, Lodging
from detrain.state import ArrayFacts


def saved(path, program):
    """The state of a program, in a data file."""
    walked, leaves = leaves_of(program)
    arrays = [
        ArrayBytes(leaf.name, leaf.dtype, leaf.shape, bytes_of(leaf))
        for leaf in sorted(leaves.values(), key=lambda leaf: -leaf.nbytes)
    ]
    path.write_bytes(encode_header(arrays) + b"".join(each.data for each in arrays))
    return walked.tree


def rebuilt(**options):
    """A program as it is when it is built again: its optimizer has made no step."""
    program = Program()
    program.optimizer = torch.optim.Adam(program.model.parameters(), lr=0.1, **options)
    program.roots["optimizer"] = program.optimizer
    return program


def restored(tree, path, *, may_lodge, **options):
    program = rebuilt(**options)
    arrays = read_arrays(path)
    mapped = lodging_in(arrays) if may_lodge else None
    restore(tree, program.roots, arrays.__getitem__, mapped=mapped)
    return program


def lodging_in(arrays):
    """What gives where arrays lie, which are known to be right."""

    def copied(data, into):
        into[:] = data

    return lambda name: Mapped(arrays[name], partial(copied, arrays[name]))


def maps_of(path):
    """The memory that the process has of a file: where it begins, and ends."""
    lines = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(path) in line]
    return [[int(end, 16) for end in line.split()[0].split("-")] for line in lines]


def is_lodged(tensor, checkpoint):
    place = torch._C.TensorBase.data_ptr(tensor)  # past the guards
    return any(start <= place < end for start, end in maps_of(checkpoint[1]))


def content(program):
    return {name: bytes_of(leaf) for name, leaf in leaves_of(program)[1].items()}


@pytest.fixture
def checkpoint(tmp_path):
    program = Program()
    program.optimizer = torch.optim.Adam(program.model.parameters(), lr=0.1)
    program.roots["optimizer"] = program.optimizer
    for _ in range(3):
        program.update()
    path = tmp_path / "data.safetensors"
    return saved(path, program), path


@pytest.fixture(autouse=True)
def alone():
    yield
    LODGING.settle()
    GUARDS.step_aside()


@pytest.fixture(params=["early", "late"])
def pace(request, monkeypatch):
    """Copies are finished before the program does anything, or begun when they are waited for."""
    asked = threading.Event()
    plain_copy, plain_settle, plain_move_in = Lodging._copy, Lodging.settle, Lodging.move_in

    def copy_late(self, lodgers):
        asked.wait(20)
        plain_copy(self, lodgers)

    def settle(self):
        asked.set()
        plain_settle(self)
        asked.clear()

    def move_in(self, objects):
        others = plain_move_in(self, objects)
        if self._thread is not None:
            self._thread.join()
        return others

    if request.param == "late":
        monkeypatch.setattr(Lodging, "_copy", copy_late)
        monkeypatch.setattr(Lodging, "settle", settle)
    else:
        monkeypatch.setattr(Lodging, "move_in", move_in)
    return request.param


def replaced(program):
    state = program.optimizer.state_dict()
    program.optimizer.load_state_dict(copy.deepcopy(state))


def fused(program):
    """One update that counts no versions."""
    state = program.optimizer.state[program.one]
    torch._fused_adam_(
        [program.one.detach()], [torch.ones_like(program.one)],
        [state["exp_avg"]], [state["exp_avg_sq"]], [], [state["step"]],
        lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
    )  # fmt: skip


def swapped(program):
    torch.utils.swap_tensors(program.moment, torch.ones(SIDE, SIDE))


CHANGES = {
    "nothing": lambda p: None,
    "step": Program.update,
    "zero_": lambda p: p.moment.zero_(),
    "item": lambda p: p.moment.__setitem__(3, 7.0),
    "view": lambda p: p.moment.view(-1)[5:].mul_(2),
    "detach": lambda p: p.moment.detach().mul_(2),
    "foreach": lambda p: torch._foreach_add_([p.moment], 1.0),
    "out": lambda p: torch.add(p.one.detach(), 1, out=p.moment),
    "data": lambda p: p.moment.data.add_(1),
    "set data": lambda p: setattr(p.moment, "data", torch.ones(SIDE, SIDE)),
    "set_": lambda p: p.moment.set_(torch.ones(SIDE, SIDE)),
    "resize_": lambda p: p.moment.resize_(2 * SIDE, SIDE).zero_().resize_(SIDE, SIDE),
    "numpy": lambda p: p.moment.numpy().fill(2),
    "asarray": lambda p: np.asarray(p.moment).fill(2),
    "address": lambda p: ctypes.memset(p.moment.data_ptr(), 1, p.moment.nbytes),
    "storage": lambda p: p.moment.untyped_storage().fill_(1),
    "dlpack": lambda p: torch.from_dlpack(p.moment).fill_(6),
    "fused": fused,
    "swap": swapped,
    "shared": lambda p: p.moment.share_memory_().fill_(4),
    "replaced": replaced,
    "pickled": lambda p: pickle.dumps(p.moment),
    "deepcopy": lambda p: copy.deepcopy(p.optimizer),
    "parameter": lambda p: p.one.data.add_(1),
    "forward": lambda p: p.model[0](torch.ones(2, SIDE)).sum().backward(),
}


def after(program, names):
    """All bytes, a step later."""
    for name in names:
        CHANGES[name](program)
    find.settle()
    program.update()
    return content(program)


@pytest.mark.parametrize("name", CHANGES)
def test_the_first_thing_that_a_program_does(checkpoint, pace, name):
    lodged = restored(*checkpoint, may_lodge=True)
    assert is_lodged(lodged.moment, checkpoint)
    expected = after(restored(*checkpoint, may_lodge=False), [name])
    assert after(lodged, [name]) == expected
    assert not is_lodged(lodged.moment, checkpoint)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.sampled_from(sorted(CHANGES.keys() - {"resize_"})), max_size=5))
def test_several_things(checkpoint, pace, names):
    """What numpy was given can't be resized, lodged or not: that is tried alone."""
    expected = after(restored(*checkpoint, may_lodge=False), names)
    assert after(restored(*checkpoint, may_lodge=True), names) == expected
    GUARDS.step_aside()


def test_without_the_guards_an_update_that_counts_nothing_would_be_lost(checkpoint, monkeypatch):
    monkeypatch.setattr(GUARDS, "begin", lambda *_: None)
    expected = after(restored(*checkpoint, may_lodge=False), ["fused"])
    program = restored(*checkpoint, may_lodge=True)
    LODGING._thread.join()  # otherwise it may come after the update
    assert after(program, ["fused"]) != expected


def test_without_versions_other_changes_would_be_lost(checkpoint, monkeypatch):
    monkeypatch.setattr(lodging._Lodger, "is_changed", lambda _: False)
    expected = after(restored(*checkpoint, may_lodge=False), ["zero_"])
    program = restored(*checkpoint, may_lodge=True)
    LODGING._thread.join()
    assert after(program, ["zero_"]) != expected


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}, {"amsgrad": False}])
def test_the_first_update_moves_all_and_the_file_is_let_go(checkpoint, options):
    tree, path = checkpoint
    before = path.read_bytes()
    lodged = restored(tree, path, may_lodge=True, **options)
    moments = [each["exp_avg"] for each in lodged.optimizer.state.values()]
    assert all(is_lodged(each, checkpoint) for each in moments if each.nbytes > 4 * SIDE)
    lodged.update()
    gc.collect()
    assert not maps_of(path)
    assert path.read_bytes() == before


def test_an_alias_stays_one(checkpoint):
    """A tensor that something else looks into by then does not move away from it."""
    expected = restored(*checkpoint, may_lodge=False)
    program = restored(*checkpoint, may_lodge=True)
    alias = program.moment.view(-1)
    for each in (expected, program):
        each.update()
    find.settle()
    assert alias.data_ptr() == program.moment.data_ptr()
    assert content(program) == content(expected)
    program.moment.fill_(3)
    assert bool((alias == 3).all())
    assert checkpoint[1].exists()


def test_a_tensor_that_has_left_past_the_guards_is_left_alone(checkpoint):
    program = restored(*checkpoint, may_lodge=True)
    elsewhere = torch.from_numpy(np.full((SIDE, SIDE), 5, np.float32))  # can't be resized either
    torch.ops.aten.set_(program.moment, elsewhere)
    del elsewhere  # so that nothing but the moment looks into that memory
    find.settle()
    assert bool((program.moment == 5).all())


def test_arrays_of_one_content_get_memories_of_their_own(tmp_path):
    one = torch.optim.SGD([torch.nn.Parameter(torch.ones(SIDE, SIDE)) for _ in range(2)], lr=0.1)
    for parameter in one.param_groups[0]["params"]:
        one.state[parameter]["momentum_buffer"] = torch.full((SIDE, SIDE), 2.0)
    program = type("P", (), {"roots": {"it": one}})()
    path = tmp_path / "data.safetensors"
    tree = saved(path, program)
    arrays = read_arrays(path)
    places = [name for name, data in arrays.items() if bytes(data[:4]) == b"\0\0\0@"]
    assert len(places) == 2
    arrays[places[1]] = arrays[places[0]]  # as a manifest has it that names one place twice
    again = torch.optim.SGD([torch.nn.Parameter(torch.ones(SIDE, SIDE)) for _ in range(2)], lr=0.1)
    restore(tree, {"it": again}, arrays.__getitem__, mapped=lodging_in(arrays))
    first, second = (each["momentum_buffer"] for each in again.state.values())
    first.zero_()
    assert bool((second == 2).all())
    find.settle()
    assert not bool(first.any())
    assert bool((second == 2).all())


def test_what_no_optimizer_keeps_has_moved_when_the_program_goes_on(tmp_path):
    path = tmp_path / "data.safetensors"
    program = type("P", (), {"roots": {"it": {"buffer": torch.arange(SIDE * SIDE)}}})()
    tree = saved(path, program)
    arrays = read_arrays(path)
    found = restore(tree, {"it": {}}, arrays.__getitem__, mapped=lodging_in(arrays))
    del arrays
    assert not is_lodged(found["it"]["buffer"], (tree, path))
    assert bool((found["it"]["buffer"] == torch.arange(SIDE * SIDE)).all())


def test_what_stays_in_the_file_is_checked_as_well():
    """Something else looks into it, and no optimizer keeps it: nobody would come back to it."""
    data, checked = memoryview(bytearray(4 * SIDE * SIDE + 64)), []
    start = -ctypes.addressof(ctypes.c_char.from_buffer(data)) % 64
    data = data[start : start + 4 * SIDE * SIDE]
    facts = ArrayFacts("torch", "float32", (SIDE, SIDE), "it", 0)
    made = LODGING.lodge(torch.Tensor, facts, Mapped(data, checked.append))
    alias = made.view(-1)
    for move in LODGING.move_in([]):
        move()
    assert len(checked) == 1
    assert alias.data_ptr() == made.data_ptr() == ctypes.addressof(ctypes.c_char.from_buffer(data))


def test_what_is_to_be_compiled_is_left_alone(checkpoint):
    assert not lodging.may_compile()
    try:
        torch.compile(lambda x: x + 1, backend="eager")
        assert lodging.may_compile()
        program = restored(*checkpoint, may_lodge=True)
        assert not is_lodged(program.moment, checkpoint)
        assert "data" not in vars(torch.Tensor)
    finally:
        torch._dynamo.reset()
        torch._dynamo.eval_frame.cached_backends.clear()


def test_a_child_that_is_forked_meanwhile(checkpoint):
    """No thread is there when it is, which Python warns of."""
    expected = after(restored(*checkpoint, may_lodge=False), [])
    program = restored(*checkpoint, may_lodge=True)
    assert is_lodged(program.moment, checkpoint)
    child = os.fork()
    assert child == 0 or not LODGING._thread.is_alive()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        torch.set_num_threads(1)
        os._exit(0 if after(program, []) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert after(program, []) == expected


def test_several_threads_may_ask_at_once(checkpoint, pace):
    expected = content(restored(*checkpoint, may_lodge=False))
    for _ in range(20):
        program = restored(*checkpoint, may_lodge=True)
        moments = [each["exp_avg"] for each in program.optimizer.state.values()]
        asking = [threading.Thread(target=each.numpy) for each in itertools.chain(moments, moments)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        assert not any(is_lodged(each, checkpoint) for each in moments)
        assert content(program) == expected


class Stopped(Exception):
    """A run is left as a killed one would be."""


def trained(folder, steps, body, save_every=1):
    """One attempt at a run; the program that it built."""
    program = rebuilt()
    options = {"save_every": save_every, "digest_every": 0}
    with (
        contextlib.suppress(Stopped),
        detrain.run(name="it", seed=1, runs=folder, **options) as run,
    ):
        for step in run.loop(range(steps), model=program.model, optimizer=program.optimizer):
            body(program, step)
    return program


@pytest.mark.parametrize("updates", [True, False])
def test_a_resumed_run_is_lodged_for_an_iteration_at_the_most(tmp_path, updates):
    """With an update in the first iteration after it, and without one."""
    files, found = tmp_path / "runs" / "it" / "checkpoints", {}

    def step(program, number, until=9):
        if number == until:
            raise Stopped
        if updates or number != 4:
            program.update()

    def resumed(program, number):
        found[number] = is_lodged(program.moment, (None, files))
        step(program, number)
        # Whether what follows is right does not depend on it, but the file is to be let go.
        found[number, "after"] = is_lodged(program.moment, (None, files))

    whole = trained(tmp_path / "whole", 7, step)
    trained(tmp_path / "runs", 7, lambda program, number: step(program, number, until=4))
    again = trained(tmp_path / "runs", 7, resumed, "never")  # to save would look at the tensors
    assert content(again) == content(whole)
    assert found[4]
    assert found[4, "after"] is not updates
    assert not found[5]
    assert not maps_of(files)
