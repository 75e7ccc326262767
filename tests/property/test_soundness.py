"""Restoring the plan of a program at a cut continues as if nothing had happened."""

from __future__ import annotations

import os
import random

import pytest
from drawing import Drawing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typed import Typed

from detrain.analysis import derive as derivation
from detrain.analysis.cells import Cells, Effects
from detrain.analysis.check import check
from detrain.analysis.derive import cuts_of, derive, plan_of
from detrain.analysis.heap import mix
from detrain.analysis.interpret import Machine, OutOfFuel, Strayed, resume
from detrain.analysis.pretty import parse, print_program
from detrain.analysis.program import walk_ops
from detrain.plan import decode_plan, encode_plan

pytestmark = pytest.mark.slow

PROGRAMS = int(os.environ.get("DETRAIN_PROGRAMS", "500"))


def world(number):
    return mix(11, number)


class Entering(Machine):
    """A machine that knows whether an iteration followed the head at which it was cut."""

    entered = None

    def _block(self, block):
        if self.cuts and self.entered is None:
            blocks = (self._program.main, *(each.body for each in self._program.functions))
            last = self.cuts[0].chain[-1]
            loop = next(op for each in blocks for op in walk_ops(each) if op.site == last)
            self.entered = bool(block) and block is loop.body
        super()._block(block)


def run(program, schedule, cut_at=()):
    machine = Entering(program, schedule=random.Random(schedule), world=world, cut_at=cut_at)
    machine.run()
    return machine


def interrupted(program, schedule, where, crowd=48, entered=False):
    """A run of the program that was interrupted somewhere, and the levels of that place's plan.

    If it is to be `entered`, an iteration followed there.
    """
    whole = run(program, schedule)
    if not whole.heads:
        return None
    machine = run(program, schedule, cut_at=[1 + where % whole.heads])
    assert machine.emitted == whole.emitted
    cuts = {tuple(op.site for _, op in cut.chain): cut for cut in cuts_of(program)}
    cut = cuts.get(machine.cuts[0].chain)
    if cut is None or (entered and not machine.entered):
        return None
    cells = Cells(program, crowd)
    return machine, [
        (each_object(cells, level.restore), each_object(cells, level.changed))
        for level in derive(cells, cut, entered=entered).levels
    ]


def each_object(cells, found):
    """Cells of objects that are taken for one, as those of each of them."""
    ops = [op.site for _, block in cells.scopes for op in walk_ops(block)]
    return {
        (kind, str(site), name) if kind else (kind, owner, name)
        for kind, owner, name in found
        for site in (ops if kind else [0])
        if not kind or str(cells.object(site)) == owner
    }


def continues(program, machine, levels):
    """Whether a run goes on under another schedule as the uninterrupted one did."""
    checkpoint = machine.cuts[0].kept(lambda number: levels[number])
    try:
        found = resume(program, checkpoint, schedule=random.Random(99), world=world)
    except Strayed:
        return False
    return found == machine.emitted[machine.cuts[0].emitted :]


def counterexamples(seeds, crowd=48, entered=False):
    """Programs that do not continue from their plan, how many did, and how many were refused."""
    wrong, right, refused = [], 0, 0
    for seed in seeds:
        draw = random.Random(seed)
        program = Drawing(draw).program()
        if plan_of(program).refused:
            refused += 1
            continue
        try:
            found = interrupted(program, seed % 4, draw.randrange(1000), crowd, entered)
            if found is None:
                continue
            if continues(program, *found):
                right += 1
            else:
                wrong.append(program)
        except OutOfFuel:
            continue
    return wrong, right, refused


@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(0, 1000), st.integers(0, 3))
def test_a_run_continues_from_its_plan(draw, where, schedule):
    program = (Drawing if draw.random() < 0.7 else Typed)(draw).program()
    assert check(program) == []
    assert parse(print_program(program)) == program
    plan = plan_of(program)
    assert decode_plan(encode_plan(plan)) == plan
    if plan.refused:
        return
    try:
        found = interrupted(program, schedule, where)
        if found is not None:
            assert continues(program, *found), print_program(program)
    except OutOfFuel:
        return


def test_the_property_is_about_something():
    """Most programs are interrupted and go on; some are refused, and not for nothing."""
    wrong, right, refused = counterexamples(range(400))
    assert wrong == []
    assert right > 150
    assert 10 < refused < 150
    raced = 0
    for seed in range(400):
        program = Drawing(random.Random(seed)).program()
        if plan_of(program).refused:
            try:
                outputs = {tuple(run(program, schedule).emitted) for schedule in range(6)}
            except OutOfFuel:
                continue
            raced += len(outputs) > 1
    assert raced > 4


def test_a_run_continues_from_a_head_that_an_iteration_follows(monkeypatch):
    wrong, right, _ = counterexamples(range(1200), entered=True)
    assert wrong == []
    assert right > 250
    # At a head that no iteration follows it would not: what is read after the loop is needed there.
    monkeypatch.setattr(Entering, "entered", True)
    wrong, _, _ = counterexamples(range(1200), entered=True)
    assert wrong


def test_objects_that_are_taken_for_one_are_restored_as_well():
    wrong, right, _ = counterexamples(range(400), crowd=1)
    assert wrong == []
    assert right > 150


def test_a_broken_rule_is_found(monkeypatch):
    """If what loops write counted as unchanged, or the way needed nothing, runs would go wrong."""
    plain = Cells.effects

    def forgetful(self, scope, op):
        found = plain(self, scope, op)
        written = self.set(cell for cell in found.writes if cell[0] == "object")
        return Effects(found.reads, written, found.surely)

    monkeypatch.setattr(Cells, "effects", forgetful)
    assert counterexamples(range(150))[0]
    monkeypatch.setattr(Cells, "effects", plain)
    monkeypatch.setattr(derivation._Way, "_read", lambda self, reads: None)
    assert counterexamples(range(300))[0]
