"""The values of an interpreted program: scalars and objects, and all variables at a moment."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import cache

__all__ = [
    "Scope",
    "State",
    "Thing",
    "Value",
    "all_things",
    "change_all",
    "depth_digest",
    "mix",
]


@dataclass(eq=False)
class Thing:
    """An object, made by the op `site`."""

    site: int
    content: int
    fields: dict[str, Value] = field(default_factory=dict)
    elements: list[Value] = field(default_factory=list)


Value = int | Thing
Scope = dict[str, Value]


def mix(*parts: int) -> int:
    """A number that depends on all parts."""
    return hash((*parts, 0x9E3779B9)) & 0x7FFFFFFF


@cache
def _number(name: str) -> int:
    return zlib.crc32(name.encode())


def depth_digest(value: Value, *, contents: bool = True) -> int:
    """A number that depends on all that is reachable from a value, and on what is one object;
    without `contents`, on neither these nor scalars.
    """
    numbers: dict[int, int] = {}
    parts: list[int] = []
    todo: list[Value] = [value]
    while todo:
        each = todo.pop()
        if not isinstance(each, Thing):
            parts.append(each if contents else 0)
        elif id(each) in numbers:
            parts.append(-1 - numbers[id(each)])
        else:
            numbers[id(each)] = len(numbers)
            parts += (each.site, each.content if contents else 0, len(each.elements))
            fields = each.fields
            for name in sorted(fields) if len(fields) > 1 else fields:
                if contents or isinstance(fields[name], Thing):
                    parts.append(_number(name))
                    todo.append(fields[name])
            todo += each.elements
    return mix(*parts)


def change_all(value: Value, by: int, *, only_contents: bool = False) -> None:
    """Change every object that can be reached from a value, as an opaque call may.

    Fields that hold objects go on holding them; elements may change their order, and come to be.
    """
    seen: set[int] = set()
    todo: list[Value] = [value]
    while todo:
        each = todo.pop()
        if not isinstance(each, Thing) or id(each) in seen:
            continue
        seen.add(id(each))
        number = mix(by, len(seen))
        each.content = mix(number, each.content)
        if only_contents:
            todo += [*(each.fields[name] for name in sorted(each.fields)), *each.elements]
            continue
        for name in sorted(each.fields):
            each.fields[name] = _changed(each.fields[name], number)
            todo.append(each.fields[name])
        elements = [_changed(one, number) for one in each.elements]
        if number % 3 == 0 and len(elements) < 3:
            elements.append(number)
        each.elements = elements[number % 2 :] + elements[: number % 2]
        todo += each.elements


def _changed(value: Value, by: int) -> Value:
    return value if isinstance(value, Thing) else mix(by, value)


@dataclass
class State:
    """All variables, outermost frame first; the first are the global ones."""

    frames: list[Scope]
    names: list[str]
    """The functions of the frames."""
    iterators: list[list[Value]] = field(default_factory=list)
    """What the loops that are under way have taken to go through, outermost first."""

    def copied(self) -> State:
        """A copy with the same identities inside."""
        made: dict[int, Thing] = {}

        def copied(value: Value) -> Value:
            if not isinstance(value, Thing):
                return value
            found = made.get(id(value))
            if found is None:
                found = made[id(value)] = Thing(value.site, value.content)
                found.fields = {name: copied(each) for name, each in value.fields.items()}
                found.elements = [copied(each) for each in value.elements]
            return found

        frames = [{name: copied(each) for name, each in frame.items()} for frame in self.frames]
        iterators = [[copied(each) for each in items] for items in self.iterators]
        return State(frames, list(self.names), iterators)


def all_things(state: State) -> list[Thing]:
    """All objects of a state, each once."""
    found: dict[int, Thing] = {}
    todo: list[Value] = [value for frame in state.frames for value in frame.values()]
    todo += [value for items in state.iterators for value in items]
    while todo:
        each = todo.pop(0)
        if isinstance(each, Thing) and id(each) not in found:
            found[id(each)] = each
            todo += [*each.fields.values(), *each.elements]
    return list(found.values())
