"""The audit: is a name that a checkpoint left out read before it is written?

A plan that leaves out a name says that nothing reads it any more before it is bound again. For an
iteration after a checkpoint that is watched, instruction by instruction, in the program's own
functions. Not seen: other threads, and names read past the language (`globals()`, `eval`, or
`module.name` from elsewhere).
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping, Set
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

__all__ = ["Audit", "Read"]

Spaces = Mapping[str, FrameType | MutableMapping[str, Any]]

_MARKS = {"LOAD": "read", "STORE": "write", "DELETE": "read"}
"""To delete a name, it must be there: in a resumed run it may not be."""


@dataclass(frozen=True)
class Read:
    """A name that was read, and where."""

    place: str
    file: str
    line: int


class Audit:
    """Watches names from `start` to `stop`; one that is written first is no longer watched."""

    def __init__(self, owns: Callable[[str], bool]) -> None:
        self._owns = owns
        self._left: set[str] = set()
        self._frames: dict[int, tuple[str, FrameType]] = {}
        self._modules: dict[int, str] = {}
        self.found: dict[str, Read] = {}
        self._process = os.getpid()

    def start(self, spaces: Spaces, names: Set[str]) -> bool:
        """Begin; False if that can't be: a debugger or a coverage tool is at work."""
        if not names or sys.gettrace() is not None:
            return False
        self._left = set(names)
        for label, space in spaces.items():
            if isinstance(space, FrameType):
                self._frames[id(space)] = label, space
            else:
                self._modules[id(space)] = label
        sys.settrace(self._called)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._owns(frame.f_code.co_filename):
                self._watch(frame)
            frame = frame.f_back
        return True

    def stop(self) -> tuple[Read, ...]:
        """End; gives what was read."""
        # A method is another object each time that it is looked up, but an equal one.
        if sys.gettrace() == self._called:
            sys.settrace(None)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_trace == self._executes:
                frame.f_trace, frame.f_trace_opcodes, frame.f_trace_lines = None, False, True
            frame = frame.f_back
        self._frames, self._modules, self._left = {}, {}, set()
        return tuple(self.found.values())

    def _called(self, frame: FrameType, _event: str, _value: object) -> Any:
        if os.getpid() != self._process:  # a worker of a loader, forked while this was watching
            sys.settrace(None)
            return None
        if self._left and self._owns(frame.f_code.co_filename):
            return self._watch(frame)
        return None

    def _watch(self, frame: FrameType) -> Any:
        frame.f_trace, frame.f_trace_opcodes, frame.f_trace_lines = self._executes, True, False
        return self._executes

    def _executes(self, frame: FrameType, event: str, _value: object) -> Any:
        if event == "opcode":
            use = _uses(frame.f_code).get(frame.f_lasti)
            if use is not None:
                self._used(frame, *use)
        if not self._left:  # all were written
            frame.f_trace_opcodes = False
            return None
        return self._executes

    def _used(self, frame: FrameType, mark: str, scope: str, names: tuple[str, ...]) -> None:
        for name in names:
            place = self._place(frame, mark, scope, name)
            if place not in self._left:
                continue
            self._left.discard(place)
            if mark == "read":
                self.found[place] = Read(place, frame.f_code.co_filename, frame.f_lineno)

    def _place(self, frame: FrameType, mark: str, scope: str, name: str) -> str:
        """The variable that an instruction means; "" if it is none of a watched space."""
        if scope == "NAME":  # of a module, or of a class that is being defined
            names = frame.f_locals
            if names is frame.f_globals or (mark == "read" and name not in names):
                scope = "GLOBAL"
        if scope == "GLOBAL":
            label = self._modules.get(id(frame.f_globals), "")
        else:
            label = self._frames.get(id(frame), ("",))[0]
        if not label and scope == "DEREF" and mark == "read":
            # Of a function around this one. That it may be another call of it makes no harm: a
            # name more is saved. A write there does not count, for the same reason.
            label = self._around(frame.f_code, name)
        return f"{label}/{name}" if label else ""

    def _around(self, code: CodeType, name: str) -> str:
        for label, frame in self._frames.values():
            inside = code.co_qualname.startswith(f"{frame.f_code.co_qualname}.<locals>.")
            if inside and name in code.co_freevars and name in frame.f_code.co_cellvars:
                return label
        return ""


@lru_cache(maxsize=1024)
def _uses(code: CodeType) -> dict[int, tuple[str, str, tuple[str, ...]]]:
    """The instructions that use a variable: by offset, how, of which scope, which ones."""
    found = {}
    begins: int | None = None
    for each in dis.get_instructions(code):
        if each.opname == "EXTENDED_ARG":
            begins = each.offset if begins is None else begins
            continue
        # An instruction with a long argument is announced where that begins.
        start, begins = each.offset if begins is None else begins, None
        action, _, scope = each.opname.partition("_")
        scope = scope.partition("_")[0].replace("CLASSDEREF", "DEREF")
        if action in _MARKS and scope in ("FAST", "DEREF", "NAME", "GLOBAL"):
            if each.opname.endswith("AND_CLEAR"):
                continue  # a comprehension puts the outer variable away and back
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            found[each.offset] = found[start] = _MARKS[action], scope, names
    return found
