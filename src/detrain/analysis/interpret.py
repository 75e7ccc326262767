"""What a program of the language means: an interpreter.

Scalars are numbers that depend on exactly what was read to compute them, so that a difference
anywhere shows in everything computed from it, and on a *seed*: what the program is given. Parallel
loops run in an order that a *schedule* chooses. At the head of every sequential loop a run can be
interrupted: `Machine.cut_at`.

A run is resumed as DETrain resumes one: executed again from its top, loops re-entered at their
iterations, each with the part of its state that was saved put back. What the plan drops is
overwritten with garbage first, so that nothing is right by accident. What lies between the loops is
executed again, and must look at exactly what it looked at before: `Strayed` if it does not.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from detrain.analysis.heap import Scope, State, Thing, Value, change_all, depth_digest, mix
from detrain.analysis.interrupted import Checkpoint, Interrupted, Level
from detrain.analysis.program import (
    ELEMENT,
    FORM,
    Bind,
    Branch,
    Call,
    Draw,
    Emit,
    Key,
    Leave,
    Loop,
    Mutate,
    Observe,
    Op,
    Place,
    Program,
    locals_of,
)
from detrain.analysis.putback import Saved, put_back

__all__ = ["Machine", "OutOfFuel", "Strayed", "resume"]

_MOST_ITERATIONS = 4


class OutOfFuel(Exception):
    """The program runs for too long."""


class Strayed(Exception):
    """On the way back to where it was interrupted, the program looked at something else."""


@dataclass
class _Return(Exception):
    value: Value = 0


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Machine:
    """One run of a program."""

    def __init__(
        self,
        program: Program,
        *,
        schedule: random.Random,
        world: Callable[[int], int],
        cut_at: Collection[int] = (),
        fuel: int = 4000,
        seed: int = 0,
    ) -> None:
        self._program, self._schedule, self._world = program, schedule, world
        self._functions = {each.name: each for each in program.functions}
        self._locals = {"": frozenset[str]()}
        self._locals |= {each.name: locals_of(each) for each in program.functions}
        self._cut_at, self._last_cut, self._fuel = cut_at, max(cut_at, default=0), fuel
        self._mix = partial(mix, seed)
        self.state = State([{}], [""])
        self._levels = [Level("", 0)]
        self._parallel = 0
        self.emitted: list[int] = []
        self.heads = 0
        self.asked = 0
        self._rebuild: deque[Saved] = deque()
        self._answers: deque[int] = deque()
        self._chain: list[int] = []
        """The sites of the calls and loops that are under way."""
        self.cuts: list[Interrupted] = []
        """The states at the heads that were asked for; the run goes on from there."""

    # ---------------------------------------------------------------- running

    def run(self) -> list[int]:
        """Run to the end; gives what was emitted."""
        self._block(self._program.main)
        return self.emitted

    def _block(self, block: tuple[Op, ...]) -> None:
        for op in block:
            self._fuel -= 1
            if self._fuel < 0:
                raise OutOfFuel
            self._op(op)

    def _op(self, op: Op) -> None:
        match op:
            case Bind(target, "new", reads):
                self._bind(target, Thing(op.site, self._mix(op.site, *map(self._digest, reads))))
            case Bind(target, "alias", (place, *others)):
                self._bind(target, self._chosen(place, others) if others else self._taken(place))
            case Bind(target, _, reads):
                self._bind(target, self._mix(op.site, *map(self._digest, reads)))
            case Mutate(place, reads, deep, contents):
                thing = self._get(place)
                read = list(map(self._digest, reads))
                if deep:
                    by = self._mix(op.site, self._digest(place), *read)
                    change_all(thing, by, only_contents=contents)
                elif isinstance(thing, Thing):
                    self._look(thing.content)
                    thing.content = self._mix(op.site, thing.content, *read)
            case Draw(target, generator):
                position = self._get(generator)
                self._look(position.content if isinstance(position, Thing) else position)
                if isinstance(position, Thing):
                    position.content = self._mix(position.content, 7)
                    self._bind(target, self._mix(position.content, 8))
                else:
                    moved = self._mix(position, 7)
                    self._bind(generator, moved)
                    self._bind(target, self._mix(moved, 8))
            case Key(target, reads):
                self._bind(target, self._mix(3, *map(self._digest, reads)))
            case Observe(target):
                self._bind(target, self._ask())
            case Emit(reads):
                value = self._mix(op.site, *map(self._digest, reads))
                if not self._rebuild:
                    self.emitted.append(value)
            case Call():
                self._call(op)
            case Branch(reads, then, otherwise):
                self._block(then if self._mix(*map(self._digest, reads)) % 2 else otherwise)
            case Loop(how="par"):
                self._parallel_loop(op)
            case Loop():
                self._loop(op)
            case Leave("return", value):
                raise _Return(0 if value is None else self._taken(value))
            case Leave("break"):
                raise _Break
            case Leave():
                raise _Continue

    def _call(self, op: Call) -> None:
        function = self._functions[op.function]
        values = [self._taken(each) for each in op.arguments]
        self.state.frames.append(dict(zip(function.parameters, values, strict=True)))
        self.state.names.append(function.name)
        if len(self.state.frames) > 12:
            raise OutOfFuel
        result: Value = 0
        self._chain.append(op.site)
        try:
            self._block(function.body)
        except _Return as returned:
            result = returned.value
        finally:
            self._chain.pop()
            self.state.frames.pop()
            self.state.names.pop()
        if op.target is not None:
            self._bind(op.target, result)

    # ---------------------------------------------------------------- loops

    def _items(self, op: Loop) -> list[Value]:
        first = self._get(op.reads[0])
        if op.listed and isinstance(first, Thing):
            return list(first.elements)
        start = self._mix(op.site, *map(self._digest, op.reads))
        if isinstance(first, Thing) and first.elements:
            begin = start % len(first.elements)
            return first.elements[begin:] + first.elements[:begin]
        return [self._mix(start, number) for number in range(1 + start % _MOST_ITERATIONS)]

    def _goes_on(self, op: Loop, iteration: int) -> bool:
        if not op.reads:
            return True
        return iteration < _MOST_ITERATIONS and self._mix(*map(self._digest, op.reads)) % 4 > 0

    def _loop(self, op: Loop) -> None:
        items = self._items(op) if op.how == "for" else []
        if self._parallel:
            self._plain_loop(op, items)
            return
        parent = self._levels[-1]
        parent.begun += 1
        level = Level(op.label, parent.begun)
        self._levels.append(level)
        self.state.iterators.append(items)
        self._chain.append(op.site)
        try:
            expected = self._rebuild[0] if self._rebuild else None
            on_the_way = len(self._levels) - 1 == self._depth + 1 if expected else False
            if expected and on_the_way and parent.begun == expected.ordinal:
                self._re_enter(level, expected)
            else:
                self._head(level)
            while (
                level.iteration < len(items)
                if op.how == "for"
                else self._goes_on(op, level.iteration)
            ):
                if op.target is not None and items:
                    self._bind(op.target, items[level.iteration])
                try:
                    self._block(op.body)
                except _Continue:
                    pass
                except _Break:
                    break
                level.iteration += 1
                self._head(level)
        finally:
            self._levels.pop()
            self._chain.pop()
            self.state.iterators.pop()
            parent.now += level.ever
            parent.ever += level.ever
            parent.way += level.whole_way
            parent.whole_way += level.whole_way

    def _plain_loop(self, op: Loop, items: list[Value]) -> None:
        """A loop inside a parallel one: nothing can be cut there."""
        iteration = 0
        while iteration < len(items) if op.how == "for" else self._goes_on(op, iteration):
            if op.target is not None and items:
                self._bind(op.target, items[iteration])
            try:
                self._block(op.body)
            except _Continue:
                pass
            except _Break:
                break
            iteration += 1

    def _parallel_loop(self, op: Loop) -> None:
        items = self._items(op)
        order = list(range(len(items)))
        self._schedule.shuffle(order)
        results: dict[int, Value] = {}
        self._parallel += 1
        for number in order:
            if op.target is not None:
                self._bind(op.target, items[number])
            self._block(op.body)
            results[number] = 0 if op.result is None else self._get(op.result)
        self._parallel -= 1
        if op.into is not None:
            made = Thing(op.site, self._mix(op.site, len(items)))
            made.elements = [results[n] for n in (order if op.unordered else sorted(order))]
            self._bind(op.into, made)

    def _head(self, level: Level) -> None:
        """A sequential loop is about to take its next item: the run can be interrupted here."""
        level.begun, level.now, level.way = 0, [], []
        if self.heads < self._last_cut:
            level.head = self.state.copied()
        if self._rebuild:
            return
        self.heads += 1
        if self.heads in self._cut_at:
            levels = tuple(replace(each, now=[*each.now], way=[*each.way]) for each in self._levels)
            self.cuts.append(Interrupted(tuple(self._chain), levels, self.asked, len(self.emitted)))

    # ---------------------------------------------------------------- the way back

    _depth = 0
    """How many levels have been re-entered."""

    def begin_rebuild(self, checkpoint: Checkpoint) -> None:
        """Begin as a resumed run does."""
        self._rebuild = deque(checkpoint.levels)
        self._answers = deque(checkpoint.answers)
        self.asked = checkpoint.asked

    def _re_enter(self, level: Level, saved: Saved) -> None:
        if level.label != saved.label or self._levels[-2].way != list(saved.way):
            raise Strayed
        self._rebuild.popleft()
        self._depth += 1
        level.iteration = saved.iteration
        put_back(saved, self.state)
        self._answers = deque(saved.answers)

    def _ask(self) -> int:
        if self._rebuild and self._answers:
            answer = self._answers.popleft()
        else:
            self.asked += 1
            answer = self._world(self.asked)
        self._levels[-1].now.append(answer)
        self._levels[-1].ever.append(answer)
        return answer

    # ---------------------------------------------------------------- places

    def _scope(self, name: str) -> Scope:
        """The frame that a variable lives in."""
        own = name in self._locals[self.state.names[-1]]
        return self.state.frames[-1 if own else 0]

    def _get(self, place: Place) -> Value:
        head, *fields = place
        value = self._scope(head).get(head, 0)
        for name in fields:
            if not isinstance(value, Thing):
                return 0
            if name == ELEMENT:
                elements = value.elements
                value = elements[value.content % len(elements)] if elements else 0
            else:
                value = value.fields.get(name, 0)
        return value

    def _chosen(self, place: Place, others: list[Place]) -> Value:
        """An element that others decide on; of one object they decide whether it is that."""
        number = self._mix(*map(self._digest, others))
        owner = self._get(place[:-1]) if place[-1] == ELEMENT else 0
        if isinstance(owner, Thing) and owner.elements:
            return owner.elements[self._mix(owner.content, number) % len(owner.elements)]
        return self._get(place) if number % 2 else number

    def _bind(self, place: Place, value: Value) -> None:
        if len(place) == 1:
            self._scope(place[0])[place[0]] = value
            return
        owner = self._get(place[:-1])
        if isinstance(owner, Thing):
            if place[-1] == ELEMENT:
                owner.elements.append(value)
            else:
                owner.fields[place[-1]] = value

    def _digest(self, place: Place) -> int:
        if place[-1] == FORM:
            value = self._get(place[:-1])
            found = depth_digest(value, contents=False) if isinstance(value, Thing) else 0
        else:
            found = depth_digest(self._get(place))
        self._look(found)
        return found

    def _taken(self, place: Place) -> Value:
        """A value that is handed on as it is."""
        value = self._get(place)
        self._look(value.site if isinstance(value, Thing) else value)
        return value

    def _look(self, number: int) -> None:
        """Remember what is looked at, except where the order is not the same in every run."""
        if not self._parallel:
            self._levels[-1].way.append(number)
            self._levels[-1].whole_way.append(number)


def resume(
    program: Program,
    checkpoint: Checkpoint,
    *,
    schedule: random.Random,
    world: Callable[[int], int],
    seed: int = 0,
) -> list[int]:
    """Go on with an interrupted run to its end; gives what was emitted since the cut."""
    machine = Machine(program, schedule=schedule, world=world, seed=seed)
    machine.begin_rebuild(checkpoint)
    return machine.run()
