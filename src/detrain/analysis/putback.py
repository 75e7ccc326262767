"""Putting the kept part of a state back into a rebuilt program, as restore does in a real run."""

from __future__ import annotations

import zlib
from collections.abc import Set
from dataclasses import dataclass

from detrain.analysis.cells import Cell
from detrain.analysis.heap import State, Thing, Value, all_things, mix
from detrain.analysis.program import ELEMENT

__all__ = ["Saved", "put_back"]


@dataclass(frozen=True)
class Saved:
    """One level of a checkpoint: what of the state at its head the plan keeps."""

    label: str
    ordinal: int
    iteration: int
    state: State
    restore: Set[Cell]
    changed: Set[Cell]
    """What the rebuilt program may have otherwise than the interrupted one."""
    answers: tuple[int, ...]
    way: tuple[int, ...] = ()
    """What was looked at on the way to this level, since the head of the one around it."""


def put_back(saved: Saved, live: State) -> None:
    """Put the kept part of a state back into a rebuilt one, in place.

    Objects that can be reached in both in one way are one. What is not kept stays as the program
    rebuilt it, or, where the plan drops it, is overwritten with garbage.
    """
    state = saved.state.copied()
    stands_for: dict[int, Thing] = {}
    claimed: set[int] = set()
    anchored: set[int] = set()

    def match(old: Value, new: Value, unchanged: bool) -> None:
        if not (isinstance(old, Thing) and isinstance(new, Thing)) or old.site != new.site:
            return
        if id(old) not in stands_for and id(new) not in claimed:
            stands_for[id(old)] = new
            claimed.add(id(new))
            if unchanged:
                anchored.add(id(old))
            todo.append((old, new, unchanged))

    todo: list[tuple[Thing, Thing, bool]] = []
    # What a loop goes through it took when it was entered, from what was right.
    for old_items, new_items in zip(state.iterators, live.iterators, strict=True):
        for one, other in zip(old_items, new_items, strict=True):
            match(one, other, True)
    for only_unchanged in (True, False):
        for scope, old_frame, new_frame in zip(state.names, state.frames, live.frames, strict=True):
            for name in sorted(old_frame.keys() & new_frame.keys()):
                is_kept = ("", scope, name) not in saved.changed
                if is_kept or not only_unchanged:
                    match(old_frame[name], new_frame[name], is_kept)
        pending = list(todo)
        while pending:
            old, new, unchanged = pending.pop(0)
            todo.clear()
            for name in sorted(old.fields.keys() & new.fields.keys()):
                same = unchanged and ("object", str(old.site), name) not in saved.changed
                if same or not only_unchanged:
                    match(old.fields[name], new.fields[name], same)
            same = unchanged and ("object", str(old.site), ELEMENT) not in saved.changed
            if same or not only_unchanged:
                for one, other in zip(old.elements, new.elements, strict=False):
                    match(one, other, same)
            pending += todo
        todo = [
            (thing, stands_for[id(thing)], id(thing) in anchored)
            for thing in all_things(state)
            if id(thing) in stands_for
        ]

    def translated(value: Value) -> Value:
        if not isinstance(value, Thing):
            return value
        made = stands_for.get(id(value))
        if made is None:
            made = stands_for[id(value)] = Thing(value.site, value.content)
            fill(value, made, everything=True)
        return made

    def fill(old: Thing, new: Thing, *, everything: bool) -> None:
        site = str(old.site)
        if everything or ("object", site, "") in saved.restore:
            new.content = old.content
        if everything or ("object", site, ELEMENT) in saved.restore:
            new.elements = [translated(each) for each in old.elements]
        if everything:
            new.fields = {name: translated(each) for name, each in old.fields.items()}
            return
        for name in old.fields.keys() | new.fields.keys():
            if ("object", site, name) in saved.restore:
                if name in old.fields:
                    new.fields[name] = translated(old.fields[name])
                else:
                    del new.fields[name]

    matched = [
        (thing, stands_for[id(thing)]) for thing in all_things(state) if id(thing) in stands_for
    ]
    for old, new in matched:
        fill(old, new, everything=id(old) not in anchored)
    for scope, old_frame, new_frame in zip(state.names, state.frames, live.frames, strict=True):
        for name in sorted(old_frame.keys() | new_frame.keys()):
            cell = ("", scope, name)
            if cell in saved.restore:
                if name in old_frame:
                    new_frame[name] = translated(old_frame[name])
                else:
                    new_frame.pop(name, None)
            elif cell in saved.changed:
                new_frame[name] = mix(zlib.crc32(name.encode()), 0xBAD)
