"""The values of an interpreted program: scalars and objects, and all variables at a moment."""

from __future__ import annotations

import copy
import zlib
from dataclasses import dataclass, field

__all__ = ["Scope", "State", "Thing", "Value", "all_things", "depth_digest", "mix"]


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


def depth_digest(value: Value) -> int:
    """A number that depends on all that is reachable from a value, and on what is one object."""
    numbers: dict[int, int] = {}
    parts: list[int] = []
    todo: list[Value] = [value]
    while todo:
        each = todo.pop()
        if not isinstance(each, Thing):
            parts.append(each)
        elif id(each) in numbers:
            parts.append(-1 - numbers[id(each)])
        else:
            numbers[id(each)] = len(numbers)
            parts += [each.site, each.content, len(each.elements)]
            for name in sorted(each.fields):
                parts.append(zlib.crc32(name.encode()))
                todo.append(each.fields[name])
            todo += each.elements
    return mix(*parts)


@dataclass
class State:
    """All variables, outermost frame first; the first are the global ones."""

    frames: list[Scope]
    names: list[str]
    """The functions of the frames."""

    def copied(self) -> State:
        """A copy with the same identities inside."""
        return State(copy.deepcopy(self.frames), list(self.names))


def all_things(state: State) -> list[Thing]:
    """All objects of a state, each once."""
    found: dict[int, Thing] = {}
    todo: list[Value] = [value for frame in state.frames for value in frame.values()]
    while todo:
        each = todo.pop(0)
        if isinstance(each, Thing) and id(each) not in found:
            found[id(each)] = each
            todo += [*each.fields.values(), *each.elements]
    return list(found.values())
