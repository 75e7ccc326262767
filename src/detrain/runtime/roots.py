"""What a state is captured from and restored to.

A loop that the program wrote with `run.loop` reaches the objects that were declared, and the plain
variables of the functions that run the loops. A loop that DETrain found by itself reaches all that
the program can: every variable of its functions on the stack, the global names of its modules, and
the iterators of the active loops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from operator import is_
from types import FrameType
from typing import Any

from detrain.capture.anchors import is_field
from detrain.capture.form import fields_of
from detrain.capture.forms import is_standing
from detrain.capture.frames import bind, plain_variables
from detrain.capture.walk import Aside
from detrain.errors import ResumeMismatch
from detrain.runtime.level import Level
from detrain.runtime.places import expand, join_place, set_place, split_place
from detrain.runtime.planned import Cut
from detrain.state import PLAIN

__all__ = ["Owns", "Roots"]

Owns = Callable[[str], bool]
"""Whether a file is the program's own."""


@dataclass(frozen=True)
class Roots:
    """`objects` are restored in place; variables of `spaces`, by label, are bound again."""

    objects: dict[str, Any]
    own: dict[str, Any]
    spaces: dict[str, FrameType | MutableMapping[str, Any]]
    whole: bool

    @staticmethod
    def of(level: Level, owns: Owns) -> Roots:
        """The roots at the head of a loop."""
        own: dict[str, Any] = {}
        spaces: dict[str, FrameType | MutableMapping[str, Any]] = {}
        for each in level.stack():
            if each.source is None:
                continue
            held = each.source.held() if each.whole else each.source.generators()
            if held:
                own[f"the iterable of {' '.join(each.path())}"] = held
        if level.whole:
            spaces.update(_modules(owns))
            spaces.update(_stack(level.frame, owns))
        else:
            for each in level.stack():
                if each.frame is not None and all(each.frame is not f for f in spaces.values()):
                    spaces[" ".join(each.path())] = each.frame
        return Roots(level.objects(), own, spaces, level.whole)

    def values(self) -> dict[str, Any]:
        """All of them, as the walk takes them: a variable is named by its space and its name."""
        found = {**self.objects, **self.own}
        for label, space in self.spaces.items():
            for name, value in self._variables(space).items():
                found[f"{label}/{name}"] = value
        return found

    def _variables(self, space: FrameType | MutableMapping[str, Any]) -> dict[str, Any]:
        if isinstance(space, FrameType) and not self.whole:
            return plain_variables(space)
        names = space.f_locals if isinstance(space, FrameType) else space
        return {
            name: value
            # Sorted: the order of a frame's names depends on when somebody looked at them.
            for name, value in sorted(names.items(), key=lambda item: item[0])
            if not name.startswith((".", "__")) and not is_standing(value)
        }

    def parted(self, cut: Cut, *, thorough: bool = False) -> tuple[dict[str, Any], Aside]:
        """What is saved, and what is not, at a head whose plan leaves something out.

        If it is to be `thorough`, it is asked who else holds what is dead.
        """
        live, rebuilt, dead = dict(self.objects), dict[str, Any](), dict[str, Any]()
        for label, space in self.spaces.items():
            for name, value in self._variables(space).items():
                place = f"{label}/{name}"
                if isinstance(value, type):
                    # What a class keeps is read through its objects, whether or not its name is.
                    live[place] = value
                elif place in cut.dead:
                    dead[place] = value
                elif place in cut.rebuilt and (cut.constants or type(value) not in PLAIN):
                    rebuilt[place] = value
                else:
                    live[place] = value
        fields: dict[int, set[str]] = {}
        for place, owner, name, value in self._rebuilt_fields(cut):
            rebuilt[place] = value
            fields.setdefault(id(owner), set()).add(name)
        names = [s.f_locals if isinstance(s, FrameType) else s for s in self.spaces.values()]
        namespaces = tuple(names) if thorough and dead else ()
        return live, Aside(rebuilt, fields, self.own, dead, not cut.gradients, namespaces)

    def owners(self, cut: Cut) -> dict[str, int]:
        """The fields that a cut leaves out, and the ids of the objects that they are of."""
        return {place: id(owner) for place, owner, _, _ in self._rebuilt_fields(cut)}

    def _rebuilt_fields(self, cut: Cut) -> Iterator[tuple[str, Any, str, Any]]:
        """Fields that are left out: the place, the object, the field, and what is there.

        A field that the plan was wrong about is saved, whichever of its names says otherwise.
        Numbers and texts are saved.
        """
        seen = {found[1:3] for place in sorted(cut.kept) if (found := self._field(place))}
        for place in sorted(cut.rebuilt):
            found = self._field(place)
            if found is None or found[1:3] in seen:
                continue
            seen.add(found[1:3])
            owner, name = found[0], found[2]
            value = dict(fields_of(owner))[name]
            if type(value) not in PLAIN and not isinstance(value, type) and not is_standing(value):
                yield place, owner, name, value

    def _field(self, place: str) -> tuple[Any, int, str] | None:
        """The object that a field is of, its id, and the name; None if it is no field of one."""
        if not is_field(place):
            return None
        owned_by, _, name = place.rpartition(".")
        for owner in (self.at([owned_by]) or {}).values():
            if any(name == each for each, _ in fields_of(owner)):
                return owner, id(owner), name
        return None

    def at(self, places: Iterable[str]) -> dict[str, Any] | None:
        """What lies at some places, by their names; None if one of them can't be found."""
        found: dict[str, Any] = {}
        for place in places:
            variable, steps = split_place(place)
            label, _, name = variable.rpartition("/")
            space = self.spaces.get(label)
            names = space.f_locals if isinstance(space, FrameType) else space
            if names is None or name not in names:
                return None
            try:
                for each, value in expand(names[name], steps):
                    if not is_standing(value):
                        found[join_place(variable, each)] = value
            except LookupError:
                return None
        return found

    def bind(self, restored: Mapping[str, Any]) -> None:
        """Give the functions and modules their variables back, and objects single fields."""
        new: dict[str, dict[str, Any]] = {label: {} for label in self.spaces}
        parts: list[tuple[str, Any]] = []
        for root, value in restored.items():
            label, _, name = root.rpartition("/")
            if label in new and ("." in name or "[" in name):
                parts.append((root, value))
            elif label in new:
                new[label][name] = value
        for label, space in self.spaces.items():
            if isinstance(space, FrameType):
                bind(space, new[label])
            else:
                space.update(new[label])
        for place, value in parts:
            self._set(place, value)

    def _set(self, place: str, value: Any) -> None:
        variable, steps = split_place(place)
        found = self.at([variable])
        try:
            if not found:
                raise LookupError(variable)
            set_place(found[variable], steps, value)
        except LookupError:
            raise ResumeMismatch(
                place,
                "to be there, as in the first attempt",
                "nothing",
                "Make the object that holds it before the loop",
            ) from None


_Names = dict[str, MutableMapping[str, Any]]

_judged: tuple[Owns | None, list[Any], _Names] = None, [], {}
"""What `_modules` found for the modules that were loaded when it was asked last."""


def _modules(owns: Owns) -> _Names:
    """The global names of the program's modules; the script's come first.

    There are thousands of modules, and mostly the same ones as at the last checkpoint.
    """
    global _judged
    loaded, (before, known, found) = list(sys.modules.values()), _judged
    if before is not owns or len(known) != len(loaded) or not all(map(is_, known, loaded)):
        found = _own_modules(owns)
        _judged = owns, loaded, found
    return found


def _own_modules(owns: Owns) -> _Names:
    found: _Names = {}
    files = ((name, getattr(module, "__file__", None)) for name, module in _all_modules())
    own = [name for name, file in files if isinstance(file, str) and owns(file)]
    seen: set[int] = set()
    for name in sorted(own, key=lambda name: (name != "__main__", name)):
        names = sys.modules[name].__dict__
        # One module may go by two names: multiprocessing calls the script `__mp_main__` too.
        if id(names) not in seen:
            seen.add(id(names))
            found[name] = names
    return found


def _all_modules() -> list[tuple[str, Any]]:
    return list(sys.modules.items())


def _stack(frame: FrameType | None, owns: Owns) -> dict[str, FrameType]:
    """The program's functions on the stack, outermost first."""
    frames = []
    while frame is not None:
        if owns(frame.f_code.co_filename) and frame.f_locals is not frame.f_globals:
            frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    names = [f"{each.f_globals.get('__name__')}:{each.f_code.co_qualname}" for each in frames]
    # A function that is there more than once gets numbers, which no plan names.
    return {
        name if names.count(name) == 1 else f"{name}#{i}": frame
        for i, (name, frame) in enumerate(zip(names, frames, strict=True))
    }
