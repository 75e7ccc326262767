"""The twin of soundness: a plan without one of its items does not continue."""

from __future__ import annotations

import os
import random

import pytest
from typed import Typed

from detrain.analysis.cells import Cells
from detrain.analysis.check import check
from detrain.analysis.derive import cuts_of, derive
from detrain.analysis.heap import all_things, mix
from detrain.analysis.interpret import Machine, OutOfFuel, Strayed, resume

pytestmark = pytest.mark.slow

PROGRAMS = max(100, int(os.environ.get("DETRAIN_PROGRAMS", "0")) // 5)
SEEDS, HEADS, TRIES = 16, 10, 24


class Run:
    """A run that was interrupted, and how it went on."""

    def __init__(self, program, seed, cut, emitted):
        self.program, self.seed, self.cut = program, seed, cut
        self.rest = emitted[cut.emitted :]

    def continues(self, levels):
        checkpoint = self.cut.kept(lambda number: levels[number])
        try:
            found = resume(
                self.program, checkpoint, schedule=random.Random(9), world=world(self.seed),
                seed=self.seed,
            )  # fmt: skip
        except (OutOfFuel, Strayed):
            return False
        return found == self.rest

    def has(self, cell, level):
        """Whether what a cell stands for is there at a level."""
        kind, owner, name = cell
        state = self.cut.levels[1 + level].head
        if not kind:
            frames = zip(state.names, state.frames, strict=True)
            return any(name in frame for scope, frame in frames if scope == owner)
        things = [thing for thing in all_things(state) if str(thing.site) == owner]
        if name == "[]":
            return any(thing.elements for thing in things)
        return any(name in thing.fields or not name for thing in things)

    def iterations(self, level):
        """How many iterations were finished by the loops down to a level."""
        return sum(each.iteration for each in self.cut.levels[1 : level + 2])


def world(seed):
    return lambda number: mix(11, seed, number)


def runs_of(program):
    """Runs that were interrupted at some of their heads, by the chain of ops around them."""
    found = {}
    for seed in range(SEEDS):
        given = {"schedule": random.Random(0), "world": world(seed), "seed": seed}
        try:
            heads = Machine(program, **given)
            heads.run()
            at = random.Random(seed).sample(range(1, heads.heads + 1), min(heads.heads, HEADS))
            machine = Machine(program, **given, cut_at=at)
            machine.run()
        except OutOfFuel:
            continue
        for cut in machine.cuts:
            run = Run(program, seed, cut, machine.emitted)
            found.setdefault(cut.chain, []).append(run)
    return found


def without_one_item(program):
    """For each item of each plan, whether some run shows that it is missing."""
    cells = Cells(program)
    cuts = {tuple(op.site for _, op in cut.chain): cut for cut in cuts_of(program)}
    for chain, runs in runs_of(program).items():
        cut = cuts[chain]
        levels = [(each.restore, each.changed) for each in derive(cells, cut).levels]
        assert all(run.continues(levels) for run in runs[:3])
        for number, (restore, changed) in enumerate(levels):
            later = [run for run in runs if run.iterations(number)]
            later.sort(key=lambda run: -run.iterations(number))
            for cell in sorted(restore):
                tried = [run for run in later if run.has(cell, number)][:TRIES]
                if tried:
                    less = [*levels]
                    less[number] = (restore - {cell}, changed)
                    yield any(not run.continues(less) for run in tried)


def test_a_plan_without_one_of_its_items_does_not_continue():
    """Counted are items of cuts that a run reaches, with something that they stand for there, after
    a loop has finished an iteration: before that nothing has changed. Seen is an item without which
    one of up to 24 runs goes on otherwise, or executes its way otherwise than it did.

    It can't be all of them: what may be changed on some way may be on none that is ever taken.
    """
    seen = counted = 0
    for seed in range(PROGRAMS):
        program = Typed(random.Random(seed)).program()
        assert check(program) == []
        found = list(without_one_item(program))
        counted += len(found)
        seen += sum(found)
    print(f"{seen} of {counted} items, {seen / counted:.1%}")
    assert counted > 20 * PROGRAMS
    assert seen / counted >= 0.9
