"""Whether code of the program may leave something behind: whether doing less of it would be seen.

It goes by the instructions of functions, and by names: a name in a function stands for all
functions and methods called so among those that can be reached. What can't be told counts as an
effect.
"""

from __future__ import annotations

import dis
import io
import queue
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from detrain.frameworks import find, held

__all__ = ["MOVING", "Reach", "codes", "reach"]

_WRITES = frozenset({
    "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_SUBSCR", "DELETE_SUBSCR",
    "STORE_SLICE",
})  # fmt: skip

MOVING = frozenset({
    "next", "__next__", "send", "throw", "read", "readline", "readlines", "read1", "readinto",
    "seek", "write", "writelines", "flush", "pop", "popleft", "popitem", "append", "appendleft",
    "add", "extend", "insert", "remove", "discard", "update", "clear", "setdefault", "sort",
    "reverse", "rotate", "get_nowait", "put", "put_nowait", "recv", "step", "reset", "fetchone",
    "fetchmany", "advance", "acquire", "release", "set_state", "load_state_dict", "setattr",
    "delattr", "exec", "eval", "globals", "vars",
})  # fmt: skip
"""Names of what changes the object that it is asked of."""

_MADE = frozenset({"__init__", "__post_init__", "__new__"})
"""What is written there belongs to an object that is new."""


def _is_effect(step: dis.Instruction) -> bool:
    if step.opname == "IMPORT_NAME":
        # What is imported where it is used can't be seen from outside.
        module = sys.modules.get(str(step.argval))
        return module is None or held.is_own_file(getattr(module, "__file__", None))
    return step.opname in _WRITES


@dataclass(frozen=True)
class Reach:
    """What an object of the program may come to.

    `functions` are those of its classes, and what they name, by name; under "" those that the
    object holds. `moving` is the path to something that keeps a place of its own (a file, an
    iterator), if it holds any.
    """

    functions: Mapping[str, list[CodeType]]
    moving: str

    def leaves_something(self, names: Iterable[str]) -> bool:
        """Whether work that uses some names may be seen afterwards."""
        todo, seen = ["", *names], set[str]()
        while todo:
            name = todo.pop()
            if name in MOVING:
                return True
            if name in seen:
                continue
            seen.add(name)
            for code in self.functions.get(name, ()):
                if code.co_name in _MADE:
                    continue
                for each in codes(code):
                    if any(map(_is_effect, dis.get_instructions(each))):
                        return True
                    todo += each.co_names
        return False

    def uses(self, wanted: str, *roots: CodeType) -> bool:
        """Whether some code may come to where a name is used."""
        todo, seen = list(roots), set[CodeType]()
        while todo:
            code = todo.pop()
            if code in seen:
                continue
            seen.add(code)
            for name in (name for each in codes(code) for name in each.co_names):
                if name == wanted:
                    return True
                todo += self.functions.get(name, ())
        return False


def reach(obj: Any, path: str = "dataset") -> Reach:
    """Look at all that an object holds, and at all functions that those of its classes name."""
    found: dict[str, list[CodeType]] = {}
    moving, count = "", 0
    for at, each in held.walk({path: obj}):
        count += 1
        if isinstance(each, FunctionType):
            if held.is_own(each):
                _note(found, "" if at.startswith(path) else each.__name__, each)
        elif isinstance(each, type):
            _note(found, each.__name__, each)
        elif not moving and _moves(each):
            moving = at
    return Reach(found, moving or (path if count >= held.MOST else ""))


def _moves(obj: Any) -> bool:
    if any(framework.is_generator(obj) for framework in find.loaded()):
        return False
    package = type(obj).__module__.partition(".")[0]
    return (
        hasattr(type(obj), "__next__")
        or isinstance(obj, io.IOBase | queue.Queue)
        or package in ("multiprocessing", "_queue", "socket", "sqlite3")
    )


def _note(found: dict[str, list[CodeType]], name: str, value: Any) -> None:
    """Enter a function under its name, and a class under its own and those of its methods."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, FunctionType):
        for each in {name, value.__name__}:
            _enter(found, each, held.as_written(value).__code__)
    elif isinstance(value, type) and held.is_own(value):
        for inner, method in vars(value).items():
            _note(found, inner, method)
            for code in found.get(inner, ()):
                if code.co_qualname == f"{value.__qualname__}.{inner}":
                    _enter(found, name, code)


def _enter(found: dict[str, list[CodeType]], name: str, code: CodeType) -> None:
    under = found.setdefault(name, [])
    if code not in under:
        under.append(code)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code, and those inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)
