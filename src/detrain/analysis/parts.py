"""Which parts of a program must be read again: those that asked for a fact which has changed since.

A part is a function or the top of a module, and each plain statement in it. Each fact remembers who
has asked for it. So to leave out what is not stale changes nothing: it would learn nothing new.
What is asked without being noted must never change, or `Reading.change_all` must be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, ItemsView
from typing import Generic, TypeVar

from detrain.analysis.values import NOTHING, Tags

__all__ = ["Asked", "Key", "Part", "Reading", "Table"]

Key = TypeVar("Key", bound=Hashable)


class Part:
    """A part of a program, perhaps inside another."""

    def __init__(self, outer: Part | None = None) -> None:
        self.outer, self.is_stale = outer, True

    def must_be_read(self) -> None:
        """Something that it asked for is another thing now."""
        self.is_stale = True
        if self.outer is not None:
            self.outer.is_stale = True


class Reading:
    """Who is reading."""

    def __init__(self) -> None:
        self.part = Part()
        """The part that is being read."""
        self._parts: list[Part] = []

    def new_part(self, outer: Part | None = None) -> Part:
        """A part that has not been read."""
        part = Part(outer)
        self._parts.append(part)
        return part

    def begin(self, part: Part) -> None:
        """From here on it is this part that is read."""
        part.is_stale = False
        self.part = part

    def change_all(self) -> None:
        """Something has changed that anybody may have asked for."""
        for part in self._parts:
            part.is_stale = True


class Asked(Generic[Key]):
    """Who has asked for which facts of one kind."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._readers: defaultdict[Key, set[Part]] = defaultdict(set)

    def note(self, key: Key) -> None:
        """Note that the part which is being read asks for a fact."""
        self._readers[key].add(self._reading.part)

    def changed(self, key: Key) -> None:
        """A fact is another one now. Who asks again is noted again."""
        for part in self._readers.pop(key, ()):
            part.must_be_read()


class Table(Generic[Key]):
    """What things of one kind may be, by their keys."""

    def __init__(self, reading: Reading) -> None:
        self._asked = Asked[Key](reading)
        self._tags: dict[Key, Tags] = {}

    def get(self, key: Key) -> Tags:
        """What a thing may be."""
        self._asked.note(key)
        return self._tags.get(key, NOTHING)

    def __contains__(self, key: Key) -> bool:
        self._asked.note(key)
        return key in self._tags

    def add(self, key: Key, tags: Tags) -> bool:
        """Whether it was not known that a thing may be one of these."""
        known = self._tags.get(key)
        if known is None:  # that there is such a thing is a fact too
            self._tags[key] = tags
            self._asked.changed(key)
            return bool(tags)
        if tags <= known:
            return False
        self._tags[key] = known | tags
        self._asked.changed(key)
        return True

    def items(self) -> ItemsView[Key, Tags]:
        """All of them; for when the program has been read."""
        return self._tags.items()
