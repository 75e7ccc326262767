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
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgspec.structs import replace as replace_struct

from detrain.analysis.cells import Cell, Cells, CellSet
from detrain.analysis.clearing import Use, each_clears_its_own, uses_of_gradients
from detrain.analysis.decisions import decided_by_clock
from detrain.analysis.derive import (
    MOST_CHAINS,
    Cut,
    CutPlan,
    LevelPlan,
    Step,
    cuts_of,
    derive,
    leading_to,
)
from detrain.analysis.emit import GRADIENTS, OWN
from detrain.analysis.frontend import Source
from detrain.analysis.infer import Causes
from detrain.analysis.loops import TrainingLoops
from detrain.analysis.pretty import print_op
from detrain.analysis.program import (
    ELEMENT,
    Branch,
    Call,
    Draw,
    Loop,
    Op,
    Program,
    Span,
    blocks_of,
    walk_ops,
)
from detrain.analysis.scopes import Module, Scope
from detrain.analysis.types import Cause
from detrain.analysis.values import DEFINITIONS
from detrain.plan import Action, Plan, PlanCut, PlanItem, PlanLevel, PlanLoop

__all__ = ["Variable", "plan_python", "trained_cells"]

VARYING = frozenset({"clock", "entropy", "memory", "network"})
"""Answers of the world that another run on the same machine gets otherwise."""

_KEPT = VARYING - {"memory"}
"""Those of them that can be kept and given again: what lay in memory is no answer."""

_DEEPEST = 3
"""How many fields a place of an outer level may have; what lies deeper is taken with its holder."""

_TRAINED = frozenset({"model", "optimizer", "scheduler", "scaler", "average"})


@dataclass(frozen=True, order=True)
class Variable:
    """A variable of the program as it runs."""

    place: str
    name: str
    cell: Cell
    is_split: bool = False
    """Whether it is more than one variable of the program: only the first is known here."""


class Part(NamedTuple):
    """Something below a variable: where it is, and its cells."""

    path: str
    cells: set[Cell]
    """Those that are its own, without what is below it."""
    containers: frozenset[Cell]
    """Those that say what the containers on the way there contain."""
    again: set[Cell]
    """Fields of it that are those of another part, too: one op makes both objects."""


def plan_python(source: Source, cells: Cells, causes: Causes, loops: TrainingLoops) -> Plan:
    """The plan of a program, for all training loops."""
    planning = _Planning(source, cells, causes, loops)
    cuts = [planning.merged(each) for each in planning.cuts()]
    files = [
        PlanLoop(facts.scope.module.path, facts.node.lineno, facts.node.col_offset, site)
        for label, site in loops.sites.items()
        for facts in (source.lowered.loops[label],)
    ]
    return Plan(tuple(cuts), tuple(sorted(set(planning.demands()))), tuple(files))


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
        self._trained = trained_cells(source, cells)
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
        self._varying = causes.everywhere & {each for each in causes.everywhere if _varies(each)}
        self._found: dict[tuple[str, ...], list[Variable]] = {}
        self._parted: dict[str, list[Part]] = {}
        self._once = _made_once(source.program, source.lowered.given_away)

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
        last = functools.reduce(_both_last, (each.levels[-1] for each in found))
        # After a training loop that was finished on the way, its exit state has all that is needed.
        direct = [each for each, cut in zip(found, cuts, strict=True) if not self._passes(cut)]
        outer = [each.levels[:-1] for each in direct or found]
        around = [functools.reduce(_both_outer, each) for each in zip(*outer, strict=True)]
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
                level = self._outer(derived, number, list(scopes), op)
                levels.append(PlanLevel(level.loop) if recursive else level)
            else:
                levels.append(self._last(derived, list(scopes), op))
        return PlanCut(tuple(levels))

    # ---------------------------------------------------------------- the cut itself

    def _last(self, derived: CutPlan, scopes: list[str], op: Loop) -> PlanLevel:
        last = derived.levels[-1]
        live = derived.live | self._asked
        # What is only read from outside is restored too, if it may have changed.
        wrong = (last.restore | (last.changed & self._asked) | self._changed) & live
        items: list[PlanItem] = []
        for variable in self._variables(scopes):
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
        line, file = self._written_at(cell)
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
            yield from self._unchanged(variable, derived)

    def _unchanged(self, variable: Variable, derived: CutPlan) -> Iterator[PlanItem]:
        """Fields of a variable that hold what they held before the outermost loop, and that as it
        was: nothing in the loops writes it, nor what leads to it, by whatever name.
        """
        changed = self._cells.set(self._changed)
        for level in derived.levels:
            changed |= level.changed
        todo = [(variable.place, self._cells.set({variable.cell}), 0)]
        while todo:
            path, cells, depth = todo.pop()
            sites = {site for cell in cells for site in self._cells.holds(cell)}
            contents = self._cells.set(("object", str(site), "") for site in sites)
            if depth == _DEEPEST or not (cells | contents).isdisjoint(changed):
                continue
            fields = [inner for site in sites for inner in self._cells.fields(site)]
            for name in sorted({each[2] for each in fields} - {"", ELEMENT, OWN}):
                inner = self._cells.set(each for each in fields if each[2] == name)
                if self._cells.below(inner).isdisjoint(changed):
                    if any(map(self._cells.holds, inner)):
                        yield PlanItem(f"{path}.{name}", "rebuild", "as the setup makes it")
                else:
                    todo.append((f"{path}.{name}", inner, depth + 1))

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
        for path, cells, *_ in self._parts(variable):
            if cells & self._trained:
                continue
            reasons = self._causes.among(cells) & self._varying
            if reasons:
                what = ", ".join(sorted({cause.what for cause in reasons}))
                why = f"saved, but not compared: the {what} reaches it"
                yield PlanItem(path, "restore", why, line, file, compared=False)

    def _parts(self, variable: Variable) -> list[Part]:
        """A variable, its fields, and theirs."""
        found = self._parted.get(variable.place)
        if found is None:
            found = self._parted[variable.place] = list(self._parts_below(variable))
        return found

    def _parts_below(self, variable: Variable) -> Iterator[Part]:
        todo = [(variable.place, variable.cell, 0, frozenset[Cell]())]
        seen = {variable.cell}
        while todo:
            path, cell, depth, containers = todo.pop()
            sites = self._cells.holds(cell)
            own = {cell}.union({("object", str(site), "") for site in sites})
            again: set[Cell] = set()
            for site in sites:
                for inner in self._cells.fields(site):
                    if inner in seen:
                        again.add(inner)
                    elif inner[2] and depth < _DEEPEST:
                        seen.add(inner)
                        contained = {inner, ("object", str(site), "")}
                        more = containers | contained if inner[2] == ELEMENT else containers
                        todo.append((path + _step(inner[2]), inner, depth + 1, more))
            yield Part(path, own, containers, again)

    # ---------------------------------------------------------------- loops around it

    def _outer(self, derived: CutPlan, number: int, scopes: list[str], op: Loop) -> PlanLevel:
        level = derived.levels[number]
        site = self._loops.sites[op.label]
        variables = self._cells.set(each.cell for each in self._variables(scopes))
        there = self._cells.below(variables)
        changed = level.changed | self._changed_anytime
        needs = level.restore | (self._cells.set(changed) & self._asked_anytime & there)
        loops = derived.cut.loops[: number + 1]
        places = None
        if not self._is_gone_through(needs, level, loops, scopes):
            places = self._places(needs, level, scopes)
        if places is None or self._opened:
            return PlanLevel(site, full=True)
        why = "read on the way to the next loop"
        items = [PlanItem(place, "restore", why) for place in sorted(places)]
        return PlanLevel(site, tuple(items), full=False)

    def _is_gone_through(
        self, needs: CellSet, level: LevelPlan, loops: tuple[Step, ...], scopes: list[str]
    ) -> bool:
        """Whether some of these cells are of what only a loop that is under way may hold."""
        names = {variable.cell for variable in self._variables(scopes)}
        for scope, op in loops:
            if not isinstance(op, Loop) or op.how != "for":
                continue
            over = op.reads[0]
            cells, passed = self._cells.cells(scope, (*over, ELEMENT))
            is_named = self._cells.variable(scope, over[0]) in names
            if is_named and (cells | passed).isdisjoint(level.changed):
                continue
            if not self._cells.under(self._cells.sites(scope, (*over, ELEMENT))).isdisjoint(needs):
                return True
        return False

    def _places(self, needs: CellSet, level: LevelPlan, scopes: list[str]) -> set[str] | None:
        """Places that hold these cells; None if they are better saved as a whole."""
        read = level.read | self._asked_anytime
        wanted = {cell for cell in needs if not cell[2].startswith("@")}
        if ("", "", GRADIENTS[0]) in wanted or wanted & self._trained:
            return None
        places: set[str] = set()
        covered: set[Cell] = set()
        for variable in self._variables(scopes):
            whole = self._cells.below(self._cells.set({variable.cell}))
            if whole.isdisjoint(wanted):
                continue
            if variable.cell in level.changed and variable.cell not in wanted:
                continue  # it is written before it is read: nothing is got at through it
            parts = self._parts(variable)
            if any(part.again & wanted for part in parts):
                # One cell by two paths: which object it is of is not known.
                parts = [Part(variable.place, set(whole), frozenset(), set())]
            for path, cells, containers, _ in parts:
                found = cells & wanted
                if variable.cell not in read:  # it may be another name of an object that is
                    found = {cell for cell in found if self._is_one(cell)}
                if not found:
                    continue
                inside = self._cells.below(self._cells.set(cells))
                if containers:
                    # The container is taken whole, unless what is in it has a name of its own, or
                    # it holds what it held in the beginning and one field of that is taken.
                    if all(map(self._is_one, found)):
                        continue
                    if path.endswith(ELEMENT) or not containers.isdisjoint(level.changed):
                        path, inside = path.partition(ELEMENT)[0], whole
                if not inside.isdisjoint(self._trained):
                    return None
                places.add(path)
                covered.update(inside)
                if path == variable.place:
                    break
        return places if wanted <= covered else None

    def _is_one(self, cell: Cell) -> bool:
        """Whether a cell is of an object which is the only one that its op makes."""
        return cell[0] == "object" and int(cell[1]) in self._once

    # ---------------------------------------------------------------- names

    def _variables(self, scopes: list[str]) -> list[Variable]:
        """The variables of the program that are there, with their cells."""
        if tuple(scopes) not in self._found:
            self._found[tuple(scopes)] = self._find_variables(scopes)
        return self._found[tuple(scopes)]

    def _find_variables(self, scopes: list[str]) -> list[Variable]:
        found: list[Variable] = []
        for module in self._source.modules:
            found += self._globals(module)
        for key in scopes:
            if key:
                found += self._locals(self._source.scope(key), key)
        there = self._there(scopes)
        return [each for each in found if each.cell in there]

    def _there(self, scopes: list[str]) -> CellSet:
        """All variables of some functions."""
        there = self._cells.nothing
        for key in scopes:
            there |= self._cells.variables(key)
        return there

    def _globals(self, module: Module) -> Iterator[Variable]:
        for name in sorted(module.scope.bound):
            if not self._is_definition(module.prefix + name):
                place = f"{module.name}/{name}"
                yield Variable(place, name, ("", "", module.prefix + name))

    def _locals(self, scope: Scope, function: str) -> Iterator[Variable]:
        names = set(scope.bound) | set(scope.declared_nonlocal)
        for name in sorted(names | self._free(scope)):
            owner = scope.owner(name)
            if owner is None or owner.kind != "function":
                continue
            if name in owner.captured:
                head = f"{owner.key}/{name}"
                cell, key = ("", "", head), head
            else:
                cell, key = ("", function, name), f"{scope.key}:{name}"
            if not self._is_definition(key):
                is_split = (function, name) in self._source.lowered.versions
                yield Variable(f"{scope.space}/{name}", name, cell, is_split)

    def _free(self, scope: Scope) -> set[str]:
        """Variables of functions around one, which its frame shows too."""
        found: set[str] = set()
        outer = scope.parent
        while outer is not None:
            if outer.kind == "function":
                found |= outer.captured
            outer = outer.parent
        return found

    def _is_definition(self, key: str) -> bool:
        tags = self._source.facts.variables.get(key, set())
        return len(tags) == 1 and all(tag[0] in DEFINITIONS for tag in tags)

    def _written_at(self, cell: Cell) -> tuple[int, str]:
        """The first line that binds a variable."""
        return self._lines.get(cell, (0, ""))

    @functools.cached_property
    def _lines(self) -> dict[Cell, tuple[int, str]]:
        found: dict[Cell, tuple[int, str]] = {}
        for scope, block in self._cells.scopes:
            for op in walk_ops(block):
                target = getattr(op, "target", None)
                if target is not None and op.span is not None and len(target) == 1:
                    key = self._cells.variable(scope, target[0])
                    found.setdefault(key, (op.span.line, op.span.file))
        return found

    # ---------------------------------------------------------------- demands

    def demands(self) -> Iterator[PlanItem]:
        """What must be recorded or keyed, and what can't be replayed."""
        ops = _ops(self._source)
        lowered = self._source.lowered
        decisions = decided_by_clock(self._cells, self._causes, self._loops, lowered, self._trained)
        reached = {*self._causes.among(self._trained), *(cause for _, cause in decisions)}
        for cause in reached:
            op = ops.get(cause.site)
            if op is None or op.span is None:
                continue
            if cause.kind == "world" and cause.what in _KEPT:
                why = f"the {cause.what} reaches what is trained, or decides which way it goes"
                yield PlanItem(print_op(op), "record", why, op.span.line, op.span.file)
            elif cause.kind == "race" and not _is_loader(op) and not isinstance(op, Draw):
                # Tasks of a pool that may draw take turns, in the order of submission.
                action: Action = "rekey" if self._is_pool(op) and self._draws(op) else "refuse"
                yield PlanItem(print_op(op), action, _RACED, op.span.line, op.span.file)
        # A draw moves a generator that others draw from, whatever becomes of the number.
        raced = {cause.site for cause in self._causes.everywhere if cause.kind == "race"}
        for site in raced:
            op = ops.get(site)
            if isinstance(op, Draw) and op.span is not None:
                yield PlanItem(print_op(op), "rekey", _RACED, op.span.line, op.span.file)

    def _is_pool(self, op: Op) -> bool:
        """Whether a parallel loop is the tasks of a pool of Python's own."""
        return op.span is not None and any(
            name.startswith(_POOLS)
            and (node.lineno, node.col_offset) == (op.span.line, op.span.column)
            and scope.module.path == op.span.file
            for name, _, node, scope in self._source.lowered.calls
        )

    def _draws(self, op: Op) -> bool:
        """Whether a parallel loop may come to a draw."""
        bodies = dict(self._cells.scopes)
        todo, seen = list(blocks_of(op)), set[str]()
        while todo:
            for each in walk_ops(todo.pop()):
                if isinstance(each, Draw):
                    return True
                if isinstance(each, Call) and each.function not in seen:
                    seen.add(each.function)
                    todo.append(bodies[each.function])
        return False


_POOLS = ("concurrent.futures.", "multiprocessing.pool.", "multiprocessing.dummy.")

_RACED = "its bits depend on the order in which parallel work is done"


def _is_loader(op: Op) -> bool:
    """Whether an op is the workers of a loader: what they draw is keyed, the rest is their own."""
    return isinstance(op, Loop) and op.label.rpartition(":")[2].startswith("W")


def _ops(source: Source) -> dict[int, Op]:
    program = source.program
    blocks = (program.main, *(each.body for each in program.functions))
    return {op.site: op for block in blocks for op in walk_ops(block)}


def _both_outer(one: PlanLevel, other: PlanLevel) -> PlanLevel:
    """A loop around a cut, for two ways there."""
    if one.full or other.full:
        return PlanLevel(one.loop)
    return PlanLevel(one.loop, tuple(sorted({*one.items, *other.items})), full=False)


def _both_last(one: PlanLevel, other: PlanLevel) -> PlanLevel:
    """A cut, for two ways there: what one of them needs is saved."""
    mine, theirs = ({i.place: i for i in each.items if i.compared} for each in (one, other))
    kept: list[PlanItem] = [item for item in (*one.items, *other.items) if not item.compared]
    for place in {*mine, *theirs}:
        here = [each[place] for each in (mine, theirs) if place in each]
        if len(here) == 1 and _has_variable(mine, place) and _has_variable(theirs, place):
            continue  # a field that is changed on one of the ways
        if "restore" in (item.action for item in here) or len({i.action for i in here}) == 1:
            kept.append(next((i for i in here if i.action == "restore"), here[0]))
        else:
            why = "needed on one of the ways to this loop"
            kept.append(replace_struct(here[0], action="restore", reason=why))
    if ("gradients" in mine) != ("gradients" in theirs):
        kept = [item for item in kept if item.place != "gradients"]
    return PlanLevel(one.loop, tuple(sorted(set(kept))))


def _has_variable(items: Mapping[str, PlanItem], place: str) -> bool:
    """Whether a level knows the variable of a place."""
    space, slash, rest = place.rpartition("/")
    return f"{space}{slash}{rest.partition('.')[0]}" in items


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


def _made_once(program: Program, given_away: set[str]) -> set[int]:
    """Ops that run at most once, so that what they make is one object."""
    calls: Counter[str] = Counter(given_away)
    todo: list[tuple[Op, ...]] = [program.main]
    bodies = {each.name: each.body for each in program.functions}
    for block in (program.main, *bodies.values()):
        calls.update(op.function for op in walk_ops(block) if isinstance(op, Call))
    once: set[int] = set()
    while todo:
        for op in todo.pop():
            once.add(op.site)
            if isinstance(op, Branch):
                todo += blocks_of(op)
            elif isinstance(op, Call) and calls[op.function] == 1:
                todo.append(bodies[op.function])
    return once


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


def _varies(cause: Cause) -> bool:
    return cause.kind == "world" and cause.what in VARYING


def _step(name: str) -> str:
    """How a field is written in a place; settings are not a field of Python's."""
    return {ELEMENT: ELEMENT, OWN: ".<settings>"}.get(name, f".{name}")
