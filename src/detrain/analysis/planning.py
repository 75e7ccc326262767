"""The plan of a Python program: the judgement of its cuts, in the words of the running program.

Variables are left out only by proof, whole and by name: one that will surely be written before it
is read (`drop`), and one that the rebuilt program has right with all that hangs on it (`rebuild`).
Of others, fields may be rebuilt that nothing touches after the setup.
What may be called from outside at any time (hooks, callbacks) counts as reading and writing at
every cut.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import replace

from detrain.analysis.cells import Cell, Cells, CellSet
from detrain.analysis.clearing import Use, each_clears_its_own, uses_of_gradients
from detrain.analysis.demands import demands, varies
from detrain.analysis.derive import (
    MOST_CHAINS,
    Cut,
    CutPlan,
    cuts_of,
    derive,
    leading_to,
)
from detrain.analysis.emit import GRADIENTS, OWN
from detrain.analysis.frontend import Source
from detrain.analysis.infer import Causes
from detrain.analysis.loops import TrainingLoops
from detrain.analysis.merging import both_last, both_outer
from detrain.analysis.names import Names, Variable
from detrain.analysis.places import Places, made_once
from detrain.analysis.program import (
    Call,
    Loop,
    Op,
    Program,
    Span,
    blocks_of,
    walk_ops,
)
from detrain.analysis.types import Cause
from detrain.plan import Plan, PlanCut, PlanItem, PlanLevel, PlanLoop

__all__ = ["plan_python", "trained_cells"]

_TRAINED = frozenset({"model", "optimizer", "scheduler", "scaler", "average"})


def plan_python(source: Source, cells: Cells, causes: Causes, loops: TrainingLoops) -> Plan:
    """The plan of a program, for all training loops."""
    planning = _Planning(source, cells, causes, loops)
    cuts = [planning.merged(each) for each in planning.cuts()]
    planned = demands(source, cells, causes, loops, planning.trained)
    files = [
        PlanLoop(facts.scope.module.path, facts.node.lineno, facts.node.col_offset, site)
        for label, site in loops.sites.items()
        for facts in (source.lowered.loops[label],)
    ]
    return Plan(tuple(cuts), tuple(sorted(set(planned))), tuple(files))


def trained_cells(source: Source, cells: Cells) -> CellSet:
    """The cells of models, optimizers and the like, with all that they hold."""
    found: set[Cell] = set()
    for site, kind in source.lowered.kinds.items():
        if kind in _TRAINED and cells.makes(site):
            found.update(cell for cell in cells.fields(site) if cell[2] != OWN)
    return cells.below(cells.set(found))


class _Planning:
    def __init__(self, source: Source, cells: Cells, causes: Causes, loops: TrainingLoops) -> None:
        self._source, self._cells, self._causes, self._loops = source, cells, causes, loops
        self.trained = trained_cells(source, cells)
        self._asked = self._changed = cells.nothing
        self._asked_anytime = self._changed_anytime = cells.nothing
        anywhere = cells.variables("")
        for key in source.lowered.given_away:
            reads, writes = cells.liveness.exposed(key), cells.summary(key).writes
            self._asked |= reads
            self._changed |= writes
            # The others are called where what keeps them is touched, which is written there; only
            # what Python calls by itself is not, and looks at its own object and at variables.
            is_registered = key in source.lowered.registered
            self._asked_anytime |= reads if is_registered else reads & anywhere
            self._changed_anytime |= writes if is_registered else writes & anywhere
        self._opened = any(anytime or self._trains_at(at) for at, anytime in source.lowered.opened)
        self._recursive = _recursive(source.program)
        self._leading = leading_to(source.program, lambda op: op.label in loops.sites)
        self._words: dict[Set[Cause], tuple[str, ...]] = {}
        self._varying = causes.everywhere & {each for each in causes.everywhere if varies(each)}
        self._once = made_once(source.program, source.lowered.given_away)
        self._names = Names(source, cells)
        self._places = Places(cells, self._names, self.trained, self._once)

    def _trains_at(self, span: Span) -> bool:
        """Whether a place of the text lies in a training loop."""
        loops = (self._source.lowered.loops[label] for label in self._loops.sites)
        return any(
            facts.scope.module.path == span.file
            and facts.node.lineno <= span.line <= (facts.node.end_lineno or 0)
            for facts in loops
        )

    def cuts(self) -> list[list[Cut]]:
        """The cuts of all training loops: for each stack of loops, all calls that lead to it.

        A stack that may also stand inside a loop which is no place to stop has no plan.
        """
        sites = self._loops.sites
        found: dict[tuple[str, ...], list[Cut]] = {}
        unclear: set[tuple[str, ...]] = set()
        entries: Counter[str] = Counter()
        for cut in cuts_of(self._source.program, lambda op: op.label in sites):
            entries.update(set(cut.scopes))
            labels = tuple(label for label in cut.labels if label in sites)
            found.setdefault(labels, []).append(cut)
            if labels != cut.labels:
                unclear.add(labels)
        return [
            each
            for labels, each in found.items()
            if labels not in unclear and all(self._is_known(cut, entries) for cut in each)
        ]

    def _is_known(self, cut: Cut, entries: Counter[str]) -> bool:
        """Whether all calls that lead to a cut are known."""
        functions = set(cut.scopes[1:])
        stored = {self._source.lowered.copies.get(name, name) for name in functions}
        crowded = any(entries[name] >= MOST_CHAINS for name in functions)
        return not crowded and stored.isdisjoint(self._source.lowered.stored)

    def merged(self, cuts: list[Cut]) -> PlanCut:
        """What a checkpoint contains, whichever calls led to it."""
        found = [self._cut(cut) for cut in cuts]
        last = functools.reduce(both_last, (each.levels[-1] for each in found))
        # After a training loop that was finished on the way, its exit state has all that is needed.
        direct = [each for each, cut in zip(found, cuts, strict=True) if not self._passes(cut)]
        outer = [each.levels[:-1] for each in direct or found]
        around = [functools.reduce(both_outer, each) for each in zip(*outer, strict=True)]
        return PlanCut((*around, last))

    def _passes(self, cut: Cut) -> bool:
        """Whether another training loop is finished on the way from an outer loop to the cut."""
        steps = list(cut.chain)
        first = next(n for n, (_, op) in enumerate(steps) if isinstance(op, Loop))
        for (_, op), (_, target) in itertools.pairwise(steps[first:]):
            assert isinstance(op, Loop | Call)
            body = op.body if isinstance(op, Loop) else self._cells.functions[op.function].body
            if self._trains_before(body, target):
                return True
        return False

    def _trains_before(self, block: tuple[Op, ...], target: Op) -> bool:
        for op in block:
            if op is target:
                return False
            if self._cells.contains(op, target):
                return any(
                    self._trains_before(each, target)
                    for each in blocks_of(op)
                    if any(one is target or self._cells.contains(one, target) for one in each)
                )
            if any(self._is_on_the_way(each) for each in walk_ops((op,))):
                return True
        return False

    def _is_on_the_way(self, op: Op) -> bool:
        if isinstance(op, Loop):
            return op.label in self._loops.sites
        return isinstance(op, Call) and op.function in self._leading

    def _cut(self, cut: Cut) -> PlanCut:
        """What a checkpoint at the head of a loop contains, if these calls led to it."""
        # A checkpoint is published when the iteration that follows it has gone well.
        derived = derive(self._cells, cut, entered=True)
        recursive = [name for name in cut.scopes[1:] if name in self._recursive]
        if recursive:
            # Outer activations go on after this one, somewhere in what they have left to do.
            reads = [self._cells.summary(name).reads for name in recursive]
            live = self._cells.set(derived.live) | self._cells.nothing.numbering.union(reads)
            *outer, last = derived.levels
            last = replace(last, restore=live & last.changed)
            derived = replace(derived, live=live, levels=(*outer, last))
        levels = []
        for number, (scopes, (_, op)) in enumerate(zip(cut.frames, cut.loops, strict=True)):
            assert isinstance(op, Loop)
            if number < len(derived.levels) - 1:
                level = self._outer(derived, number, scopes, op)
                levels.append(PlanLevel(level.loop) if recursive else level)
            else:
                levels.append(self._last(derived, scopes, op))
        return PlanCut(tuple(levels))

    # ---------------------------------------------------------------- the cut itself

    def _last(self, derived: CutPlan, scopes: tuple[str, ...], op: Loop) -> PlanLevel:
        last = derived.levels[-1]
        live = derived.live | self._asked
        # What is only read from outside is restored too, if it may have changed.
        wrong = (last.restore | (last.changed & self._asked) | self._changed) & live
        items: list[PlanItem] = []
        for variable in self._names.variables(scopes):
            items += self._item(variable, derived, live, wrong)
        gradients = ("", "", GRADIENTS[0])
        if gradients not in derived.live:
            why = "cleared before they are used again; looked at before a checkpoint is published"
            items.append(PlanItem("gradients", "drop", why))
            lowered = self._source.lowered
            several = not self._has_one_optimizer and not self._opened
            if several and each_clears_its_own(self._cells, lowered, self._uses, derived.cut):
                why = "those of other optimizers may stay: each clears its own before it steps"
                items.append(PlanItem("gradients.others", "drop", why))
        return PlanLevel(self._loops.sites[op.label], tuple(sorted(set(items))))

    @functools.cached_property
    def _uses(self) -> list[Use]:
        return uses_of_gradients(self._cells)

    @functools.cached_property
    def _has_one_optimizer(self) -> bool:
        """Whether one optimizer makes all steps: it leaves no gradients of others."""
        steps = self._source.lowered.steps
        sites = {
            site
            for scope, _, op in self._uses
            if op.site in steps
            for site in self._cells.sites(scope, steps[op.site])
        }
        return len(sites) <= 1 and sites <= self._once

    def _item(
        self, variable: Variable, derived: CutPlan, live: CellSet, wrong: CellSet
    ) -> Iterator[PlanItem]:
        cell = variable.cell
        line, file = self._names.written_at(cell)
        if variable.is_split:
            why = "assigned more than once in a function that was taken for one without loops"
            yield PlanItem(variable.place, "restore", why, line, file)
            return
        if cell not in live and not self._opened:
            why = "written again before it is read"
            yield PlanItem(variable.place, "drop", why, line, file)
            return
        below = self._cells.below({cell})
        if not below & wrong and not self._opened:
            changed = any(not below.isdisjoint(level.changed) for level in derived.levels)
            why = "made again on the way to this loop" if changed else "as the setup makes it"
            yield PlanItem(variable.place, "rebuild", why, line, file)
            return
        why = "written in the loop and read later"
        inside = self._causes_below(below)
        yield PlanItem(variable.place, "restore", why, line, file, causes=inside)
        yield from self._uncompared(variable, line, file)
        if not self._opened:
            writes = self._cells.set(self._changed)
            for level in derived.levels:
                writes |= level.changed
            for place in self._places.unchanged(variable, writes):
                yield PlanItem(place, "rebuild", "as the setup makes it")

    def _causes_below(self, cells: CellSet) -> tuple[str, ...]:
        """How the bits of some cells come about, in words."""
        causes = self._causes.among(cells)
        if causes not in self._words:
            self._words[causes] = tuple(sorted({_in_words(cause) for cause in causes}))
        return self._words[causes]

    def _uncompared(self, variable: Variable, line: int, file: str) -> Iterator[PlanItem]:
        """The parts of a variable that the clock reaches."""
        if not self._varying:
            return
        for path, cells, *_ in self._places.below(variable):
            if cells & self.trained:
                continue
            reasons = self._causes.among(cells) & self._varying
            if reasons:
                what = ", ".join(sorted({cause.what for cause in reasons}))
                why = f"saved, but not compared: the {what} reaches it"
                yield PlanItem(path, "restore", why, line, file, compared=False)

    # ---------------------------------------------------------------- loops around it

    def _outer(self, derived: CutPlan, number: int, scopes: tuple[str, ...], op: Loop) -> PlanLevel:
        level = derived.levels[number]
        site = self._loops.sites[op.label]
        variables = self._cells.set(each.cell for each in self._names.variables(scopes))
        there = self._cells.below(variables)
        changed = level.changed | self._changed_anytime
        needs = level.restore | (self._cells.set(changed) & self._asked_anytime & there)
        loops = derived.cut.loops[: number + 1]
        places = None
        if not self._places.are_gone_through(needs, level, loops, scopes):
            read = level.read | self._asked_anytime
            places = self._places.of(needs, level, read, scopes)
        if places is None or self._opened:
            return PlanLevel(site, full=True)
        why = "read on the way to the next loop"
        items = [PlanItem(place, "restore", why) for place in sorted(places)]
        return PlanLevel(site, tuple(items), full=False)


def _recursive(program: Program) -> set[str]:
    """Functions that may call themselves, by others too."""
    called = {
        each.name: {op.function for op in walk_ops(each.body) if isinstance(op, Call)}
        for each in program.functions
    }
    found = set()
    for name in called:
        seen: set[str] = set()
        todo = list(called[name])
        while todo:
            each = todo.pop()
            if each not in seen:
                seen.add(each)
                todo += called[each]
        if name in seen:
            found.add(name)
    return found


def _in_words(cause: Cause) -> str:
    match cause.kind:
        case "draw":
            name = cause.what.removeprefix("@")
            return f"drawn from {name}" if cause.what.startswith("@") else "drawn from a generator"
        case "key":
            return "drawn by key"
        case "race":
            return "raced for"
    return f"the {cause.what}"
