"""The twin of soundness: a plan without one of its items does not continue."""

from __future__ import annotations

import os
import random
import sys
from dataclasses import replace

import pytest
from typed import Typed

from detrain.analysis.cells import Cells
from detrain.analysis.check import check
from detrain.analysis.derive import cuts_of, derive
from detrain.analysis.heap import all_things, mix
from detrain.analysis.interpret import Machine, OutOfFuel, Strayed, resume

pytestmark = pytest.mark.slow

PROGRAMS = max(100, int(os.environ.get("DETRAIN_PROGRAMS", "0")) // 5)
SEEDS, ROUNDS, HEADS, TRIES = 64, 4, 3, 24
"""Runs of a program: 16 seeds in a round, each interrupted at up to three heads of each cut. Items
are counted that the first round meets; in each round what was not seen to be missing so far is left
out in up to 24 runs."""
FUEL = 1500
"""Ops of a run. Most take less than 500, and those that take more than this mostly never end."""


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

    def shows(self, level, cell):
        """Whether it may show that an item is missing: it is there, and something has changed."""
        iterations = sum(each.iteration for each in self.cut.levels[1 : level + 2])
        return iterations > 0 and self.has(cell, level)


def world(seed):
    return lambda number: mix(11, seed, number)


class Watching(Machine):
    """A machine that knows by which chain of ops it came to each head."""

    def __init__(self, program, **given):
        super().__init__(program, **given)
        self.heads_of = {}

    def _head(self, level):
        super()._head(level)
        self.heads_of.setdefault(tuple(self._chain), []).append(self.heads)


def runs_of(program, seeds, wanted):
    """Runs that were interrupted at heads of the wanted chains of ops, by the chain."""
    found = {}
    for seed in seeds:
        given = {"schedule": random.Random(0), "world": world(seed), "seed": seed}
        draw = random.Random(seed)
        try:
            whole = Watching(program, **given, fuel=FUEL)
            whole.run()
            at = [
                head
                for chain, heads in whole.heads_of.items()
                if wanted(chain)
                for head in draw.sample(heads, min(len(heads), HEADS))
            ]
            machine = Machine(program, **given, cut_at=at)
            machine.run()
        except OutOfFuel:
            continue
        for cut in machine.cuts:
            run = Run(program, seed, cut, machine.emitted)
            found.setdefault(cut.chain, []).append(run)
    return found


def without_one_item(program):
    """The items of the plans of a program, and those whose lack no run shows.

    What the first runs don't show is looked for in more runs.
    """
    cells = Cells(program)
    cuts = {tuple(op.site for _, op in cut.chain): cut for cut in cuts_of(program)}
    plans = {
        chain: [(each.restore, each.changed) for each in derive(cells, cut).levels]
        for chain, cut in cuts.items()
    }
    unseen = {
        chain: [(number, cell) for number, (restore, _) in enumerate(levels) for cell in restore]
        for chain, levels in plans.items()
    }
    counted = 0
    for first in range(0, SEEDS, SEEDS // ROUNDS):
        found = runs_of(program, range(first, first + SEEDS // ROUNDS), unseen.get)
        for chain, items in unseen.items():
            runs = found.get(chain, [])
            assert all(run.continues(plans[chain]) for run in runs[:3])
            tried = {item: [run for run in runs if run.shows(*item)] for item in items}
            if first == 0:
                items = [item for item in items if tried[item]]
                counted += len(items)
            unseen[chain] = [
                item
                for item in items
                if all(run.continues(without(plans[chain], *item)) for run in tried[item][:TRIES])
            ]
    return counted, [(chain, *item) for chain, items in unseen.items() for item in items]


def without(levels, number, cell):
    """A plan without one of its items."""
    less = [*levels]
    less[number] = (levels[number][0] - {cell}, levels[number][1])
    return less


def share_missed(seeds):
    """How many items there are in some programs, and the share of those whose lack is not seen."""
    missed = counted = 0
    for seed in seeds:
        program = Typed(random.Random(seed)).program()
        assert check(program) == []
        items, unseen = without_one_item(program)
        counted += items
        missed += len(unseen)
    return counted, missed / counted


def test_a_plan_without_one_of_its_items_does_not_continue():
    """Counted are items of cuts that a run reaches, with something that they stand for there, after
    a loop has finished an iteration: before that nothing has changed. Seen is an item without which
    one of up to 96 runs goes on otherwise, or executes its way otherwise than it did.

    It can't be all of them: what may be changed on some way may be on none that is ever taken.
    """
    counted, missed = share_missed(range(PROGRAMS))
    print(f"{counted} items, {1 - missed:.1%} seen")
    assert counted > 20 * PROGRAMS
    assert missed <= 0.1


def test_a_plan_that_keeps_too_much_is_found(monkeypatch):
    """The test before this one can fail: here all that has changed is restored."""

    plain = derive

    def all_changed(cells, cut):
        plan = plain(cells, cut)
        levels = (replace(each, restore=each.changed) for each in plan.levels)
        return replace(plan, levels=tuple(levels))

    monkeypatch.setattr(sys.modules[__name__], "derive", all_changed)
    _, missed = share_missed(range(10))
    assert missed > 0.15
