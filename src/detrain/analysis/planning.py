"""The plan of a Python program: the judgement of its cuts, in the words of the running program.

Variables are left out only by proof, whole and by name: one that will surely be written before it
is read (`drop`), and one that the rebuilt program has right with all that hangs on it (`rebuild`).
What may be called from outside at any time (hooks, callbacks) counts as reading and writing at
every cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass

from detrain.analysis.cells import Cell, Cells, CellSet
from detrain.analysis.derive import Cut, CutPlan, cuts_of, derive
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
    blocks_of,
    walk_ops,
)
from detrain.analysis.scopes import Module, Scope
from detrain.analysis.types import Cause
from detrain.plan import Action, Plan, PlanCut, PlanItem, PlanLevel, PlanLoop

__all__ = ["Variable", "plan_python", "trained_cells"]

VARYING = frozenset({"clock", "entropy", "memory", "network"})
"""Answers of the world that another run on the same machine gets otherwise."""

_DEEPEST = 3
"""How many fields a place of an outer level may have; what lies deeper is taken with its holder."""

_DEFINITIONS = frozenset({"lib", "module", "class", "function"})
_TRAINED = frozenset({"model", "optimizer", "scheduler", "scaler", "average"})


@dataclass(frozen=True, order=True)
class Variable:
    """A variable of the program as it runs."""

    place: str
    name: str
    cell: Cell


def plan_python(source: Source, cells: Cells, causes: Causes, loops: TrainingLoops) -> Plan:
    """The plan of a program, for all training loops."""
    planning = _Planning(source, cells, causes, loops)
    cuts = [planning.cut(cut) for cut in planning.cuts()]
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
        if kind in _TRAINED:
            found.update(cell for cell in cells.fields(site) if cell[2] != OWN)
    return cells.below(cells.set(found))


class _Planning:
    def __init__(self, source: Source, cells: Cells, causes: Causes, loops: TrainingLoops) -> None:
        self._source, self._cells, self._causes, self._loops = source, cells, causes, loops
        self._trained = trained_cells(source, cells)
        # A loop that doesn't train is gone through before a cut or after it, as any other op is.
        self._opened = any(
            around is None or not around.isdisjoint(loops.sites) for around in source.lowered.opened
        )
        self._asked = self._changed = cells.nothing
        for key in source.lowered.given_away:
            self._asked |= cells.liveness.exposed(key)
            self._changed |= cells.summary(key).writes
        self._words: dict[Set[Cause], tuple[str, ...]] = {}
        self._varying = causes.everywhere & {each for each in causes.everywhere if _varies(each)}
        self._found: dict[tuple[str, ...], list[Variable]] = {}
        self._once = _made_once(source.program, source.lowered.given_away)

    def cuts(self) -> Iterator[Cut]:
        """The cuts of all training loops, by the loops around them."""
        seen: set[tuple[str, ...]] = set()
        for cut in cuts_of(self._source.program, lambda op: op.label in self._loops.sites):
            labels = cut.labels
            if labels[-1] not in self._loops.sites or labels in seen:
                continue
            if all(label in self._loops.sites for label in labels):
                seen.add(labels)
                yield cut

    def cut(self, cut: Cut) -> PlanCut:
        """What a checkpoint at the head of a loop contains."""
        # A checkpoint is published when the iteration that follows it has gone well.
        derived = derive(self._cells, cut, entered=True)
        levels = []
        depth = 0
        scopes: list[str] = [""]
        for scope, op in cut.chain:
            if scope and scope not in scopes:
                scopes.append(scope)
            if not isinstance(op, Loop):
                continue
            if depth < len(derived.levels) - 1:
                levels.append(self._outer(derived, depth, scopes, op))
            else:
                levels.append(self._last(derived, scopes, op))
            depth += 1
        return PlanCut(tuple(levels))

    # ---------------------------------------------------------------- the cut itself

    def _last(self, derived: CutPlan, scopes: list[str], op: Loop) -> PlanLevel:
        last = derived.levels[-1]
        live = derived.live | self._asked
        wrong = (last.restore | self._changed) & live
        items: list[PlanItem] = []
        for variable in self._variables(scopes):
            items += self._item(variable, derived, live, wrong)
        gradients = ("", "", GRADIENTS[0])
        if gradients not in derived.live:
            why = "cleared before they are used again; looked at before a checkpoint is published"
            items.append(PlanItem("gradients", "drop", why))
        return PlanLevel(self._loops.sites[op.label], tuple(sorted(set(items))))

    def _item(
        self, variable: Variable, derived: CutPlan, live: CellSet, wrong: CellSet
    ) -> Iterator[PlanItem]:
        if self._opened:
            return
        cell = variable.cell
        line, file = self._written_at(cell)
        if cell not in live:
            why = "written again before it is read"
            yield PlanItem(variable.place, "drop", why, line, file)
            return
        below = self._cells.below({cell})
        if not below & wrong:
            changed = any(cell in level.changed for level in derived.levels)
            why = "made again on the way to this loop" if changed else "as the setup makes it"
            yield PlanItem(variable.place, "rebuild", why, line, file)
            return
        why = "written in the loop and read later"
        inside = self._causes_below(below)
        yield PlanItem(variable.place, "restore", why, line, file, causes=inside)
        yield from self._uncompared(variable, line, file)

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
        for path, cells in self._parts(variable):
            if cells & self._trained:
                continue
            reasons = self._causes.among(cells) & self._varying
            if reasons:
                what = ", ".join(sorted({cause.what for cause in reasons}))
                why = f"saved, but not compared: the {what} reaches it"
                yield PlanItem(path, "restore", why, line, file, compared=False)

    def _parts(self, variable: Variable) -> Iterator[tuple[str, set[Cell]]]:
        """A variable, its fields, and theirs, with the cells that are theirs alone."""
        todo: list[tuple[str, Cell, int]] = [(variable.place, variable.cell, 0)]
        seen = {variable.cell}
        while todo:
            path, cell, depth = todo.pop()
            sites = self._cells.holds(cell)
            own = {cell}.union({("object", str(site), "") for site in sites})
            yield path, own
            if depth == _DEEPEST:
                continue
            for site in sites:
                for inner in self._cells.fields(site):
                    if inner[2] and inner not in seen:
                        seen.add(inner)
                        todo.append((path + _step(inner[2]), inner, depth + 1))

    # ---------------------------------------------------------------- loops around it

    def _outer(self, derived: CutPlan, number: int, scopes: list[str], op: Loop) -> PlanLevel:
        level = derived.levels[number]
        site = self._loops.sites[op.label]
        variables = self._cells.set(each.cell for each in self._variables(scopes))
        there = self._cells.below(variables)
        needs = level.restore | (self._changed & self._asked & there)
        places = self._places(needs, scopes)
        if places is None or self._opened:
            return PlanLevel(site, full=True)
        why = "read on the way to the next loop"
        items = [PlanItem(place, "restore", why) for place in sorted(places)]
        return PlanLevel(site, tuple(items), full=False)

    def _places(self, needs: CellSet, scopes: list[str]) -> set[str] | None:
        """Places that hold these cells; None if they are better saved as a whole."""
        wanted = {cell for cell in needs if not cell[2].startswith("@")}
        if ("", "", GRADIENTS[0]) in wanted or wanted & self._trained:
            return None
        places: set[str] = set()
        covered: set[Cell] = set()
        for variable in self._variables(scopes):
            whole = self._cells.below(self._cells.set({variable.cell}))
            if whole.isdisjoint(wanted):
                continue
            for path, cells in self._parts(variable):
                found = cells & wanted
                if not found:
                    continue
                inside = self._cells.below(self._cells.set(cells))
                if ELEMENT in path:
                    # The container is taken whole, unless what is in it has a name of its own.
                    if all(cell[0] == "object" and int(cell[1]) in self._once for cell in found):
                        continue
                    inside = whole
                if not inside.isdisjoint(self._trained):
                    return None
                places.add(path)
                covered.update(inside)
                if path == variable.place:
                    break
        return places if wanted <= covered else None

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
                yield Variable(f"{scope.space}/{name}", name, cell)

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
        return bool(tags) and all(tag[0] in _DEFINITIONS for tag in tags)

    def _written_at(self, cell: Cell) -> tuple[int, str]:
        """The first line that binds a variable."""
        if not hasattr(self, "_lines"):
            self._lines: dict[Cell, tuple[int, str]] = {}
            program = self._source.program
            for scope, block in (
                *((each.name, each.body) for each in program.functions), ("", program.main)
            ):  # fmt: skip
                for op in walk_ops(block):
                    target = getattr(op, "target", None)
                    if target is not None and op.span is not None and len(target) == 1:
                        key = self._cells.variable(scope, target[0])
                        self._lines.setdefault(key, (op.span.line, op.span.file))
        return self._lines.get(cell, (0, ""))

    # ---------------------------------------------------------------- demands

    def demands(self) -> Iterator[PlanItem]:
        """What must be recorded or keyed, and what can't be replayed."""
        ops = _ops(self._source)
        reached = self._causes.among(self._trained) | self._causes.deciding
        for cause in reached:
            op = ops.get(cause.site)
            if op is None or op.span is None:
                continue
            if cause.kind == "world" and cause.what in VARYING:
                why = f"the {cause.what} reaches what is trained, or decides which way it goes"
                yield PlanItem(print_op(op), "record", why, op.span.line, op.span.file)
            elif cause.kind == "race":
                action: Action = "rekey" if isinstance(op, Draw) else "refuse"
                why = "its bits depend on the order in which parallel work is done"
                yield PlanItem(print_op(op), action, why, op.span.line, op.span.file)


def _ops(source: Source) -> dict[int, Op]:
    program = source.program
    blocks = (program.main, *(each.body for each in program.functions))
    return {op.site: op for block in blocks for op in walk_ops(block)}


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
