"""What of a state a resumed run could not get back: said when it is saved, not when it is needed.

What the rebuilt program has at the same place is taken as it is; all else is made anew, behind the
fence of `sound`. Which is which is known when a checkpoint is taken, if it is known what was there
when the loop was first entered (`Present`): that much the program makes by itself on resume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from detrain.capture.objects import NAMED, name_of
from detrain.capture.sound import Fence
from detrain.errors import ResumeMismatch

if TYPE_CHECKING:
    from detrain.capture.walk import Walked
    from detrain.state import Node, StateTree

__all__ = ["Lost", "Present", "Returning"]

_MADE = frozenset({"named", "object", "list", "dict", "tuple", "set", "frozenset", "deque", "enum"})
"""Forms whose objects are made by a name, if they are not there."""

_NEVER_MADE = {
    "standing": "is a part of the process that only the program can set up",
    "state_dict": "keeps its state where fields don't show it: only the program can make it",
}
"""Forms whose objects must be there."""


@dataclass(frozen=True)
class Present:
    """What was there: names of functions and classes, and objects that could not be made anew, by
    their paths and classes and by what they are. If that is known from a file, what they are is
    not: then their classes count.
    """

    names: frozenset[str]
    objects: frozenset[tuple[str, str]]
    ids: frozenset[int] | None = None

    def has(self, path: str, kind: str, objects: Callable[[], dict[str, Any]]) -> bool:
        """Whether an object was there, by whatever way."""
        if (path, kind) in self.objects:
            return True
        if self.ids is None:
            return any(kind == each for _, each in self.objects)
        return id(objects().get(path)) in self.ids


@dataclass(frozen=True)
class Lost:
    """An object that could not be made anew: where it is, what it is called, and why not."""

    path: str
    name: str
    why: str


def _objects(walked: Walked) -> dict[str, Any]:
    return dict(zip(walked.met, walked.alive, strict=True))


class Returning:
    """Looks at states before they are saved; `owns` says which files are the program's."""

    def __init__(self, owns: Callable[[str], bool]) -> None:
        self._fence = Fence(owns)
        self._fine: set[tuple[str, str]] = set()
        self._looked_at: tuple[Node, ...] = ()

    def present(self, tree: StateTree, walked: Walked | None = None) -> Present:
        """What a state has that could not be made anew; `walked` is the walk that found it."""
        found = {
            (path, node.type)
            for node, path in zip(tree.nodes, tree.paths, strict=True)
            if self._why_not(node)
        }
        names = frozenset(node.type for node in tree.nodes if node.form == "named")
        if walked is None:
            return Present(names, frozenset(found))
        objects = _objects(walked) if found else {}
        ids = frozenset(id(objects[path]) for path, _ in found if path in objects)
        return Present(names, frozenset(found), ids)

    def lost(self, walked: Walked, present: Present) -> Iterator[Lost]:
        """What could not be made anew and was not there before."""
        tree, fine = walked.tree, self._fine
        if tree.nodes is self._looked_at:
            return
        # A variable that can't be bound on resume is left to the program, which binds it again.
        variables = {ref for name, ref in tree.roots if "/" in name}
        objects = cache(lambda: _objects(walked))
        for number, node in enumerate(tree.nodes):
            if (node.form, node.type) in fine or node.anchor:
                continue
            why, path = self._why_not(node), tree.paths[number]
            if not why or number in variables or node.type in present.names:
                continue
            if not present.has(path, node.type, objects):
                yield Lost(path, node.type, why)
        self._looked_at = tree.nodes

    def _why_not(self, node: Node) -> str:
        if node.form in _NEVER_MADE:
            return _NEVER_MADE[node.form]
        key = node.form, node.type
        if key in self._fine or node.form not in _MADE:
            self._fine.add(key)
            return ""
        found = self._fence.find(node.type)
        if not isinstance(found, NAMED) or name_of(found) != node.type:
            return "is defined inside a function, so that only the program itself can make it"
        why = self._refusal(node, found)
        if not why:
            self._fine.add(key)
        return why

    def _refusal(self, node: Node, found: Any) -> str:
        try:
            if node.form == "named":
                self._fence.check_value(found, node.type, "")
            elif isinstance(found, type):
                self._fence.check_class(found, node.form, "")
        except ResumeMismatch as error:
            return error.found.partition(", which ")[2]
        return ""
