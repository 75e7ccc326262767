"""Places: where cells are in the running program, below which variables and by which fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from detrain.analysis.cells import Cell, Cells, CellSet
from detrain.analysis.derive import LevelPlan, Step
from detrain.analysis.emit import GRADIENTS, OWN
from detrain.analysis.names import Names, Variable
from detrain.analysis.program import ELEMENT, Branch, Call, Loop, Op, Program, blocks_of, walk_ops

__all__ = ["Below", "Places", "made_once"]

_DEEPEST = 3
"""How many fields a place may have; what lies deeper is taken with its holder."""


class Below(NamedTuple):
    """Something below a variable: where it is, and its cells."""

    path: str
    cells: set[Cell]
    """Those that are its own, without what is below it."""
    containers: frozenset[Cell]
    """Those that say what the containers on the way there contain."""
    again: set[Cell]
    """Fields of it that are those of another one, too: one op makes both objects."""


class Places:
    """The places of a program; `trained` are cells of which nothing is taken apart, `once` the ops
    that make one object.
    """

    def __init__(self, cells: Cells, names: Names, trained: CellSet, once: set[int]) -> None:
        self._cells, self._names, self._trained, self._once = cells, names, trained, once
        self._found: dict[str, list[Below]] = {}

    def below(self, variable: Variable) -> list[Below]:
        """A variable, its fields, and theirs."""
        found = self._found.get(variable.place)
        if found is None:
            found = self._found[variable.place] = list(self._find(variable))
        return found

    def _find(self, variable: Variable) -> Iterator[Below]:
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
            yield Below(path, own, containers, again)

    def unchanged(self, variable: Variable, changed: CellSet) -> Iterator[str]:
        """Fields of a variable that hold what they held, and that as it was, if these cells are all
        that has changed, by whatever name.
        """
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
                        yield f"{path}.{name}"
                else:
                    todo.append((f"{path}.{name}", inner, depth + 1))

    def are_gone_through(
        self, needs: CellSet, level: LevelPlan, loops: tuple[Step, ...], scopes: tuple[str, ...]
    ) -> bool:
        """Whether some of these cells are of what only a loop that is under way may hold."""
        names = {variable.cell for variable in self._names.variables(scopes)}
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

    def of(
        self, needs: CellSet, level: LevelPlan, read: CellSet, scopes: tuple[str, ...]
    ) -> set[str] | None:
        """Places that hold these cells, if these are `read`; None if they are better saved as a
        whole.
        """
        wanted = {cell for cell in needs if not cell[2].startswith("@")}
        if ("", "", GRADIENTS[0]) in wanted or wanted & self._trained:
            return None
        places: set[str] = set()
        covered: set[Cell] = set()
        for variable in self._names.variables(scopes):
            whole = self._cells.below(self._cells.set({variable.cell}))
            if whole.isdisjoint(wanted):
                continue
            if variable.cell in level.changed and variable.cell not in wanted:
                continue  # it is written before it is read: nothing is got at through it
            parts = self.below(variable)
            if any(each.again & wanted for each in parts):
                # One cell by two paths: which object it is of is not known.
                parts = [Below(variable.place, set(whole), frozenset(), set())]
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


def made_once(program: Program, given_away: set[str]) -> set[int]:
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


def _step(name: str) -> str:
    """How a field is written in a place; settings are not a field of Python's."""
    return {ELEMENT: ELEMENT, OWN: ".<settings>"}.get(name, f".{name}")
