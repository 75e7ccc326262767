"""Whether a task in a thread has to take its turn: whether it may draw random numbers.

A plan names the lines of draws in parallel work. A function that may come to such a line takes
turns; so does every function if there is no plan. Of the others the first tasks take turns as well
and are watched, because calls into libraries may draw unseen. "May come to" goes by names: a name
in a function stands for all functions and methods of the program that are called so.
"""

from __future__ import annotations

import functools
import sys
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from detrain.plan import Plan

__all__ = ["Judge", "Verdict", "functions_in", "is_own", "name_of", "place_of"]

Verdict = Literal["turn", "trial", "free"]

_TRIALS = 3


class Judge:
    """Says of each function whether its tasks take turns."""

    def __init__(self, plan: Plan | None, owns: Callable[[str], bool]) -> None:
        self._plan, self._owns = plan, owns
        items = plan.items if plan is not None else ()
        self._draws = {(item.file, item.line) for item in items if item.action == "rekey"}
        self._reaches: dict[str, bool] = {}
        self._trials: dict[str, int] = {}
        self._drew: set[str] = set()
        self._suspected: dict[str, int] = {}
        self._acquitted: set[str] = set()

    def judge(self, function: Any) -> Verdict:
        """What a task with this function has to do."""
        name = name_of(function)
        if self._plan is None or name in self._drew or self._may_draw(name, function):
            return "turn"
        return "trial" if self._trials.get(name, 0) < _TRIALS else "free"

    def tried(self, function: Any, *, drew: bool) -> bool:
        """A task of a function on trial is over; gives whether it drew, and had run free before."""
        name = name_of(function)
        self._trials[name] = self._trials.get(name, 0) + 1
        if drew:
            self._drew.add(name)
        return drew and name in self._suspected

    def suspect(self, function: Any) -> None:
        """Something was drawn beside a free task, by it or by others: try another one of its kind.

        The first times that happens, and then ever more rarely: mostly it is the main thread.
        """
        name = name_of(function)
        self._suspected[name] = count = self._suspected.get(name, 0) + 1
        if not count & count - 1 and name not in self._acquitted:
            self._trials[name] = _TRIALS - 1

    def acquit(self, function: Any) -> None:
        """A function on trial waits for others: its tasks can't take turns."""
        name = name_of(function)
        self._trials[name] = _TRIALS
        self._acquitted.add(name)

    def _may_draw(self, name: str, function: Any) -> bool:
        if not self._draws:
            return False
        if name not in self._reaches:
            self._reaches[name] = self._comes_to_a_draw(function)
        return self._reaches[name]

    def _comes_to_a_draw(self, function: Any) -> bool:
        named = _own_functions(self._owns)
        todo = [each.__code__ for each in functions_in(function)]
        seen: set[CodeType] = set()
        while todo:
            code = todo.pop()
            if code in seen:
                continue
            seen.add(code)
            lines = _lines(code)
            if any(code.co_filename.endswith(file) and at in lines for file, at in self._draws):
                return True
            todo += (each for each in code.co_consts if isinstance(each, CodeType))
            for name in (*code.co_names, *code.co_freevars):
                todo += named.get(name, ())
        return False


def _lines(code: CodeType) -> frozenset[int]:
    return frozenset(line for *_, line in code.co_lines() if line is not None)


def _own_functions(owns: Callable[[str], bool]) -> dict[str, list[CodeType]]:
    """All functions and methods of the program by name; a class stands for all its methods."""
    found: dict[str, list[CodeType]] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not owns(file):
            continue
        for name, value in list(vars(module).items()):
            for each in functions_in(value):
                found.setdefault(name, []).append(each.__code__)
                found.setdefault(each.__name__, []).append(each.__code__)
    return found


def functions_in(obj: Any) -> Iterator[FunctionType]:
    """The functions that a callable is made of."""
    todo, seen = [obj], set()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, FunctionType):
            yield each
            wrapped = getattr(each, "__wrapped__", None)
            todo += [wrapped, *_closed_over(each)]
        elif isinstance(each, MethodType):
            todo += [each.__func__, type(each.__self__)]
        elif isinstance(each, functools.partial):
            callables = (a for a in (*each.args, *each.keywords.values()) if callable(a))
            todo += [each.func, *callables]
        elif isinstance(each, staticmethod | classmethod):
            todo.append(each.__func__)
        elif isinstance(each, property):
            todo += [each.fget, each.fset]
        elif isinstance(each, type):
            if each.__module__ not in ("builtins", "abc"):
                todo += [v for v in vars(each).values() if callable(v) or hasattr(v, "__get__")]
                todo += each.__bases__
        elif callable(each):
            todo.append(type(each))


def _closed_over(function: FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        if callable(content):
            found.append(content)
    return found


def is_own(function: Any, owns: Callable[[str], bool]) -> bool:
    """Whether a callable is, or holds, a function of the program's."""
    return any(owns(each.__code__.co_filename) for each in functions_in(function))


def place_of(function: Any) -> str:
    """Where a callable stands in the program."""
    for each in functions_in(function):
        return f"{each.__code__.co_filename}:{each.__code__.co_firstlineno}"
    return "?"


def name_of(function: Any) -> str:
    """A callable in words."""
    while isinstance(function, functools.partial):
        function = function.func
    kind = type(function)
    module = getattr(function, "__module__", None) or kind.__module__
    return f"{module}.{getattr(function, '__qualname__', kind.__qualname__)}"
