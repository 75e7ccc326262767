"""The judgement: what a checkpoint at the head of a loop must contain.

A *cut* is a loop, with the loops and calls around it. On resume the program is executed again from
its top, each loop around the cut is re-entered at its iteration, and what lies between them (the
*way*) is executed again. So a cell needs no saving at a level if the rebuilt program has it right:

- before the outermost loop everything is right (*setup*: executed again from the same seeds);
- re-entering a loop makes all that its body may write wrong, except what is restored there;
- on the way, a variable that is surely written from what is right is right again (*rebuilt*).

What the way reads and would be wrong is restored at the level before it. At the cut itself all that
is live and would be wrong is *carried*: restored. What is dead is *scratch*: dropped.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from detrain.analysis.cells import Cell, Cells, CellSet
from detrain.analysis.infer import Causes
from detrain.analysis.pretty import print_op
from detrain.analysis.program import Branch, Call, Loop, Op, Program, blocks_of, walk_ops
from detrain.analysis.types import Type
from detrain.plan import Plan, PlanCut, PlanItem, PlanLevel

__all__ = [
    "MOST_CHAINS",
    "Cut",
    "CutPlan",
    "LevelPlan",
    "Step",
    "cuts_of",
    "derive",
    "leading_to",
    "plan_of",
    "type_at",
]

MOST_CHAINS = 64

Step = tuple[str, Op]
"""A call or a sequential loop on the way to a cut, with the function that it stands in."""


@dataclass(frozen=True)
class Cut:
    """The head of the last loop of a chain of loops and calls, from `main` inwards."""

    chain: tuple[Step, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The loops of the chain, outermost first."""
        return tuple(op.label for _, op in self.chain if isinstance(op, Loop))

    @property
    def loops(self) -> tuple[Step, ...]:
        """The loops of the chain, with the functions that they stand in."""
        return tuple(step for step in self.chain if isinstance(step[1], Loop))

    @property
    def frames(self) -> tuple[tuple[str, ...], ...]:
        """For each loop, the functions whose frames are there at its head, `main` first."""
        found = []
        scopes: tuple[str, ...] = ("",)
        for _, op in self.chain:
            if isinstance(op, Call):
                scopes = (*scopes, op.function)
            else:
                found.append(scopes)
        return tuple(found)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The functions whose frames are there at the cut, `main` first."""
        return ("", *(op.function for _, op in self.chain if isinstance(op, Call)))


@dataclass(frozen=True)
class LevelPlan:
    """One loop around a cut. `changed` is what the rebuilt program may have otherwise there, `read`
    all that the way to the next loop reads.
    """

    label: str
    restore: CellSet
    changed: CellSet
    read: CellSet


@dataclass(frozen=True)
class CutPlan:
    """What a checkpoint at a cut contains, level by level."""

    cut: Cut
    levels: tuple[LevelPlan, ...]
    live: CellSet


def cuts_of(program: Program, wanted: Callable[[Loop], bool] | None = None) -> Iterator[Cut]:
    """The places where a run can be interrupted, at `wanted` loops only if that is given.

    A function is not entered again inside itself, and only the first 64 chains of calls that lead
    to it are followed: there can be exponentially many.
    """
    functions = {each.name: each for each in program.functions}
    leading = leading_to(program, wanted)
    entries: Counter[str] = Counter()

    def inside(scope: str, block: tuple[Op, ...], chain: tuple[Step, ...]) -> Iterator[Cut]:
        for op in block:
            if isinstance(op, Loop) and op.how == "par":
                continue
            if isinstance(op, Loop):
                longer = (*chain, (scope, op))
                if wanted is None or wanted(op):
                    yield Cut(longer)
                yield from inside(scope, op.body, longer)
            elif isinstance(op, Branch):
                for each in blocks_of(op):
                    yield from inside(scope, each, chain)
            elif isinstance(op, Call):
                if op.function not in leading or entries[op.function] >= MOST_CHAINS:
                    continue
                if not any(
                    isinstance(each, Call) and each.function == op.function for _, each in chain
                ):
                    entries[op.function] += 1
                    body = functions[op.function].body
                    yield from inside(op.function, body, (*chain, (scope, op)))

    yield from inside("", program.main, ())


def leading_to(program: Program, wanted: Callable[[Loop], bool] | None) -> set[str]:
    """The functions in which, or in what they call, there are wanted loops."""
    callers: defaultdict[str, list[str]] = defaultdict(list)
    todo: list[str] = []
    for function in program.functions:
        for op in walk_ops(function.body):
            if isinstance(op, Call):
                callers[op.function].append(function.name)
            elif isinstance(op, Loop) and (wanted is None or wanted(op)):
                todo.append(function.name)
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += callers[name]
    return found


def derive(cells: Cells, cut: Cut, *, entered: bool = False) -> CutPlan:
    """The plan of a cut; of one that counts only if an iteration follows it, if `entered`."""
    live = cells.liveness.at(cut.chain, entered=entered)
    wrong = cells.nothing
    levels: list[LevelPlan] = []
    way = _Way(cells)
    for number, (scope, op) in enumerate(cut.chain):
        rest = cut.chain[number + 1 :]
        if isinstance(op, Loop):
            wrong |= cells.effects(scope, op).writes
            changed = wrong
            if not rest:
                levels.append(LevelPlan(op.label, live & wrong, changed, cells.nothing))
                break
            way.begin(wrong)
            way.enter(scope, op)
            way.go(scope, op.body, rest[0][1])
            levels.append(LevelPlan(op.label, way.needs, changed, way.read))
            wrong = way.wrong - way.needs
        else:
            assert isinstance(op, Call)
            function = cells.functions[op.function]
            if not levels:
                continue  # setup: all is right
            # A new frame: its variables are as unbound, or as bound, as they were.
            way.begin(wrong - cells.variables(op.function))
            way.go(op.function, function.body, rest[0][1])
            # What the way needs inside the function is restored at the loop around it.
            last = levels.pop()
            needs, read = way.needs | last.restore, way.read | last.read
            levels.append(LevelPlan(last.label, needs, last.changed, read))
            wrong = way.wrong - way.needs
    ends = [number for number, (_, op) in enumerate(cut.chain, 1) if isinstance(op, Loop)]
    kept = [
        _without_whole(cells, frames, cut.chain[:end], level)
        for frames, end, level in zip(cut.frames, ends, levels, strict=True)
    ]
    return CutPlan(cut, tuple(kept), live)


def _without_whole(
    cells: Cells, scopes: tuple[str, ...], chain: tuple[Step, ...], level: LevelPlan
) -> LevelPlan:
    """A level without items for objects that are only reached by what has changed.

    Such objects are saved whole with the place that holds them.
    """
    variables = cells.nothing
    for scope in scopes:
        variables |= cells.variables(scope)
    anchored = cells.below(variables - level.changed, level.changed, cells.items(chain))
    kept = level.restore - (cells.of_objects - anchored)
    return replace(level, restore=kept)


class _Way:
    """What is executed again between the head of a loop and the entry of the next one."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self.wrong = self.needs = self.read = cells.nothing

    def begin(self, wrong: CellSet) -> None:
        """From a head at which these cells are wrong unless they are restored."""
        self.wrong, self.needs, self.read = wrong, self._cells.nothing, self._cells.nothing

    def enter(self, scope: str, op: Loop) -> None:
        """From the head of a loop into its body: a test is evaluated, an item bound."""
        if op.how == "while":
            self._read(self._cells.header(scope, op).reads)
        elif op.target is not None and len(op.target) == 1:
            self.wrong -= self._cells.cells(scope, op.target)[0]

    def go(self, scope: str, block: tuple[Op, ...], target: Op) -> bool:
        """Execute ops up to `target`; whether it was met."""
        for op in block:
            header = self._cells.header(scope, op)
            if op is target:
                if not (isinstance(op, Loop) and op.how == "while"):
                    self._read(header.reads)
                return True
            if isinstance(op, Branch):
                self._read(header.reads)
                if self._cells.contains(op, target):
                    return any(self.go(scope, each, target) for each in self._with(op, target))
            found = self._cells.effects(scope, op)
            surely = found.surely
            if isinstance(op, Branch | Loop):
                surely |= self._cells.reading.replaced(scope, op)
            self._read(found.reads - (surely - found.surely))
            # What is written from what is right is right, if it is surely written.
            self.wrong -= surely
        return False

    def _with(self, op: Op, target: Op) -> Iterator[tuple[Op, ...]]:
        """The block of an op that an op inside it is in."""
        for block in blocks_of(op):
            if any(each is target or self._cells.contains(each, target) for each in block):
                yield block

    def _read(self, reads: CellSet) -> None:
        self.needs |= reads & self.wrong
        self.read |= reads


# ------------------------------------------------------------------------ types, and the plan


def type_at(cells: Cells, causes: Causes, plan: CutPlan, cell: Cell) -> Type:
    """The type of a cell at a cut."""
    last = plan.levels[-1]
    found = frozenset(causes.of.get(cell, ()))
    if cell not in plan.live:
        return Type(found, "scratch")
    if cell in last.restore:
        return Type(found, "carried")
    is_written = any(cell in cells.effects(scope, op).writes for scope, op in plan.cut.chain)
    return Type(found, "rebuilt" if is_written else "setup")


def plan_of(program: Program) -> Plan:
    """The plan of a program, with a reason for each item."""
    cells = Cells(program)
    causes = Causes(cells)
    cuts, carried = [], set[Cell]()
    for cut in cuts_of(program):
        derived = derive(cells, cut)
        levels = [
            PlanLevel(
                level.label, tuple(sorted(_restored(level, "read on the way to the next loop")))
            )
            for level in derived.levels[:-1]
        ]
        last = derived.levels[-1]
        carried |= last.restore
        items = [*_restored(last, "written in the loop and read later")]
        for scope in cut.scopes:
            for cell in cells.variables(scope):
                kind = type_at(cells, causes, derived, cell)
                if kind.life == "scratch":
                    items.append(PlanItem(_name(cell), "drop", "not read after the cut"))
                elif kind.life == "rebuilt":
                    items.append(PlanItem(_name(cell), "rebuild", "written again on the way here"))
        levels.append(PlanLevel(last.label, tuple(sorted(items))))
        cuts.append(PlanCut(tuple(levels)))
    return Plan(tuple(cuts), tuple(sorted(_demands(program, causes, carried))))


def _restored(level: LevelPlan, why: str) -> Iterator[PlanItem]:
    for cell in level.restore:
        if cell[2].startswith("@"):
            yield PlanItem(_name(cell), "reposition", "a generator that is drawn from later")
        else:
            yield PlanItem(_name(cell), "restore", why)


def _demands(program: Program, causes: Causes, carried: set[Cell]) -> Iterator[PlanItem]:
    """What must be recorded, and what can't be replayed."""
    ops = {
        op.site: op
        for block in (program.main, *(each.body for each in program.functions))
        for op in walk_ops(block)
    }
    reached = {*causes.emitted, *causes.deciding}
    reached.update(cause for cell in carried for cause in causes.of.get(cell, ()))
    for cause in reached:
        op = ops[cause.site]
        line = op.span.line if op.span is not None else 0
        if cause.kind == "race":
            why = "its bits depend on the order in which parallel work is done"
            yield PlanItem(print_op(op), "refuse", why, line)
        elif cause.kind == "world":
            why = "an answer of the world that the program depends on"
            yield PlanItem(print_op(op), "record", why, line)


def _name(cell: Cell) -> str:
    kind, owner, name = cell
    if kind == "object":
        return f"the {name or 'content'} of what op {owner} makes"
    return f"{owner}: {name}" if owner else name
