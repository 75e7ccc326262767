"""The walk from one loop's head, gone again at every checkpoint.

From one checkpoint to the next a program changes numbers in arrays, a few constants, perhaps an
array for another: hardly ever its structure. So the objects of the walk before are looked at in
their old order, which takes a tenth of the time that it takes to describe them. What is not as it
was is described again; an object that is new takes the place of the one that was on its path. If
that does not give what a fresh walk would give, object for object and number for number, a fresh
walk is made.

Arrays are held weakly in between, so that the memory of one that the program is done with is freed.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import msgspec

from detrain.capture.anchors import FULL, REBUILT, content_of, is_addressed
from detrain.capture.forms import form_of
from detrain.capture.sights import ARRAY, Sight, Together, is_as_seen, look
from detrain.capture.walk import Aside, Roots, Walk, Walked
from detrain.errors import UncapturableState
from detrain.frameworks import find
from detrain.frameworks.base import LiveLeaf
from detrain.state import StateTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from detrain.frameworks.base import ArrayView, Framework
    from detrain.state import Node

__all__ = ["Again"]


_Place = tuple[Any, int, int]
"""A memory, where in it an array lies, and how large it is."""


class _Changed(Exception):
    """A fresh walk would give another structure."""


class Again:
    """Walks from the same place of a program, time after time."""

    def __init__(self, owns: Callable[[str], bool]) -> None:
        self._owns = owns
        self._before: _Standing | None = None

    def walk(self, roots: Mapping[str, Any], aside: Aside | None = None) -> Walked:
        """What `walk` gives."""
        aside, frameworks = aside or Aside(), find.loaded()
        before, self._before = self._before, None
        if before is None or before.frameworks != frameworks or not before.holds(roots, aside):
            before = _Standing(frameworks, self._owns)
            before.begin(roots, aside)
        found = before.found(aside)
        self._before = before
        return found


class _Standing(Walk):
    """A walk whose findings stand as long as they are true."""

    def __init__(self, frameworks: tuple[Framework, ...], owns: Callable[[str], bool]) -> None:
        super().__init__(frameworks, owns)
        self._sights: list[Sight] = []
        self._weak: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._by_path: dict[str, int] = {}
        self._together: Together | None = None
        self._restless: set[int] = set()
        """Objects that were not as before, or can't be seen to be: each is looked at by itself."""
        self._loose: list[int] = []
        """Arrays that no sight holds, and ..."""
        self._held: frozenset[int] = frozenset()
        """... the others."""
        self._placed: dict[int, _Place] = {}
        self._moved: dict[int, _Place] = {}
        self._names: tuple[tuple[str, ...], ...] = ()
        self._fixed: set[int] | None = None
        """While it is gone again: the objects that no other can take the place of."""
        self._taken: set[int] = set()
        """Those whose place others took."""
        self._named_by: dict[int, list[tuple[dict[str, LiveLeaf], str]]] = {}
        self._firm: tuple[LiveLeaf, ...] | None = None
        """The leaves of arrays that sights hold, as long as these lie where they lay."""
        self._given: Walked | None = None
        """What was given last, if no object, nor what is known of one, is another since."""
        self.is_same = False
        """Whether it holds, and only arrays and plain containers took the place of others."""

    def begin(self, roots: Mapping[str, Any], aside: Aside) -> None:
        """Walk for the first time, from all but the dead roots."""
        self._reach(roots, aside)
        self._names = _names(roots, aside)
        self._by_path = {path: index for index, path in enumerate(self._paths)}
        for place, memory in self._memories.items():
            for index, offset, nbytes in memory.views:
                self._placed[index] = place, offset, nbytes
        self._sights = [*map(look, self._alive, self._nodes)]
        held: set[int] = set()
        for sight, node in zip(self._sights, self._nodes, strict=True):
            if sight.way < ARRAY:
                held.update(_below(node))
        arrays = [i for i, sight in enumerate(self._sights) if sight.way == ARRAY]
        self._loose = [
            i for i in arrays if i not in held and self._sights[i].kind.__weakrefoffset__
        ]
        self._held = frozenset(arrays).difference(self._loose)
        for leaves in (self._leaves, self._rebuilt):
            for name, leaf in leaves.items():
                self._named_by.setdefault(self._index[id(leaf.array)], []).append((leaves, name))

    def found(self, aside: Aside) -> Walked:
        """Walk from the dead roots; gives all that was found, and forgets the dead."""
        if self._given is None or aside.dead or self._numbering is not None:
            given = self._found_anew(aside)
        else:  # to gather the nodes again, one would have to touch each of them
            tree = self._given.tree
            tree = StateTree(self._refs, tree.nodes, tree.paths, self._rebuilt_refs)
            given = msgspec.structs.replace(self._given, tree=tree, again=self.is_same)
        self._given = None if self._loose else given
        return given

    def _found_anew(self, aside: Aside) -> Walked:
        count, left_out = len(self._nodes), dict(self._left_out)
        found = self._found(aside)
        for obj in self._alive[count:]:
            del self._index[id(obj)]
        for each in (self._nodes, self._paths, self._modes, self._alive):
            del each[count:]
        self._left_out = left_out
        self._graphs = {i: leaf for i, leaf in self._graphs.items() if i < count}
        self._described.clear()
        self._asked.clear()
        firm, loose = self._parted()
        self._loosen()
        return msgspec.structs.replace(found, again=self.is_same, firm=firm, loose=loose)

    def _parted(self) -> tuple[tuple[LiveLeaf, ...], tuple[LiveLeaf, ...]]:
        """The leaves whose arrays sights hold, and the others."""
        named = [each for index in self._loose for each in self._named_by.get(index, ())]
        loose = tuple(leaves[name] for leaves, name in named if leaves is self._leaves)
        if self._firm is None:
            names = {leaf.name for leaf in loose}
            self._firm = tuple(leaf for leaf in self._leaves.values() if leaf.name not in names)
        return self._firm, loose

    def holds(self, roots: Mapping[str, Any], aside: Aside) -> bool:
        """Whether a fresh walk would give the same structure; what differs is described again."""
        if aside.namespaces or aside.gradients is not self._with_gradients:
            return False
        if aside.fields != self._fields or _names(roots, aside) != self._names:
            return False
        shared, self._shared = self._shared, set()
        self._fixed = shared
        try:
            self._fasten()
            self._check_roots(roots, aside)
            self._check()
        except (_Changed, UncapturableState):
            return False
        for index in self._taken.union(self._loose):
            self._set_array(index, self._alive[index])
        self._shared, self._fixed = shared, None
        self.is_same = all(self._sights[index].is_plain for index in self._taken)
        self._taken.clear()
        return True

    # ---------------------------------------------------------------- between two walks

    def _loosen(self) -> None:
        """Hold those arrays weakly that nothing else here holds."""
        for index in self._loose:
            obj, self._alive[index] = self._alive[index], None
            self._weak[index] = id(obj), weakref.ref(obj)
            self._set_array(index, None)

    def _fasten(self) -> None:
        """Hold those that are still there; an id of another may be given to a new object."""
        for index, (number, weak) in self._weak.items():
            self._alive[index] = obj = weak()
            if obj is None:
                del self._index[number]
        self._weak.clear()

    def _set_array(self, index: int, array: Any) -> None:
        """Change what leaves say that an array is."""
        for leaves, name in self._named_by.get(index, ()):
            leaves[name] = _with_array(leaves[name], array)
        for by_index in (self._graphs, self._gradients):
            if index in by_index:
                by_index[index] = _with_array(by_index[index], array)

    # ---------------------------------------------------------------- looking again

    def _check_roots(self, roots: Mapping[str, Any], aside: Aside) -> None:
        refs = self._refs_again(roots, FULL)
        rebuilt = self._refs_again(aside.rebuilt, REBUILT)
        refs += self._refs_again(aside.held, FULL)
        if _numbers(refs) != _numbers(self._refs):
            raise _Changed
        if _numbers(rebuilt) != _numbers(self._rebuilt_refs):
            raise _Changed
        self._refs, self._rebuilt_refs = refs, rebuilt

    def _refs_again(self, roots: Mapping[str, Any], mode: int) -> Roots:
        self._mode = mode
        return tuple((name, self.ref(value, name)) for name, value in roots.items())

    def _check(self) -> None:
        """Look at all objects: at those together that did not change so far."""
        together, self._together = self._together, None
        everything = range(len(self._sights))
        if together is None or not together.are_as_seen():
            together, rebuilt_differ = None, self._check_each(everything)
        else:
            rebuilt_differ = self._check_each(sorted(self._restless))
        if together is not None and not self._taken <= self._restless:
            # Others stand now where some of them stood.
            together, rebuilt_differ = None, self._check_each(everything) or rebuilt_differ
        if self._queue:
            raise _Changed  # something is saved now that was not
        self._move()
        if rebuilt_differ:
            self._contents = content_of(self._nodes, self._paths, self._modes) | self._led_to()
        self._together = together or self._gathered()

    def _gathered(self) -> Together:
        """What did not change so far."""
        self._restless.update(self._loose)
        seen = zip(self._alive, self._sights, strict=True)
        return Together([each for i, each in enumerate(seen) if i not in self._restless])

    def _check_each(self, indices: Iterable[int]) -> bool:
        """Look at objects in the order in which they were met, those that hold others first.

        Whether a constant differs in one that is rebuilt.
        """
        alive, sights, rebuilt_differ = self._alive, self._sights, False
        for index in indices:
            obj, sight = alive[index], sights[index]
            if type(obj) is not sight.kind:
                raise _Changed
            if is_as_seen(obj, sight):
                continue
            self._restless.add(index)
            if sight.way == ARRAY:
                self._describe_array(index, obj)
            elif self._describe_again(index, obj) and self._modes[index] == REBUILT:
                rebuilt_differ = True
        return rebuilt_differ

    def _describe_again(self, index: int, obj: Any) -> bool:
        """Describe an object again; whether a constant in it differs."""
        before, path = self._nodes[index], self._paths[index]
        self._mode = mode = self._modes[index]
        if not before.form:  # it is rebuilt, and can't be captured
            if self._is_at_work(obj):
                raise _Changed
            return False
        form = form_of(obj, path, self.frameworks)
        if mode != FULL and not is_addressed(form.name, obj):
            raise _Changed
        node = form.describe(obj, path, self)
        if self._modes[index] != mode:
            raise _Changed
        self._sights[index] = look(obj, node)
        if node == before:
            return False
        if node.form != before.form or node.type != before.type or _below(node) != _below(before):
            raise _Changed
        self._nodes[index] = node
        self._given = None
        return True

    def _meet(self, obj: Any, path: str) -> int:
        """An object that was not there takes the place of what was on its path, if it is alike."""
        if self._fixed is None:
            return super()._meet(obj, path)
        index = self._by_path.get(path, -1)
        if index < 0 or type(obj) is not self._sights[index].kind:
            raise _Changed
        if index in self._fixed or index in self._taken:
            raise _Changed
        self._taken.add(index)
        self._given = None
        before = self._alive[index]
        if before is not None:
            del self._index[id(before)]
        self._index[id(obj)] = index
        self._alive[index] = obj
        return index

    # ---------------------------------------------------------------- arrays

    def _describe_array(self, index: int, obj: Any) -> None:
        """Describe an array again. Only where it lies, and what hangs on it, may differ."""
        self._given = None
        node = self._nodes[index]
        assert node.array is not None
        framework = find.by_name(node.array.framework)
        try:
            view = None if framework.decompose(obj) is not None else framework.view(obj)
        except ValueError:
            view = None
        if view is None:
            raise _Changed
        self._place_again(index, framework, view)
        facts = node.array
        alike = (view.dtype, view.shape, view.strides, view.device, view.requires_grad)
        if alike != (facts.dtype, facts.shape, facts.strides, facts.device, facts.requires_grad):
            raise _Changed
        self._mode = mode = self._modes[index]
        self._gradients.pop(index, None)
        self._left_out.pop(("gradient", index), None)
        self._graphs.pop(index, None)
        if view.graph:
            self._graphs[index] = LiveLeaf(
                self._paths[index], framework, obj, view.nbytes, view.dtype, view.shape
            )
        kept = self.array_fields(obj, framework, view)
        if kept and mode == REBUILT:
            raise _Changed
        fields = self.fields(kept.items(), self._paths[index])
        if _numbers(fields) != _numbers(node.fields):
            raise _Changed
        self._nodes[index] = msgspec.structs.replace(node, fields=fields)
        self._sights[index] = look(obj, self._nodes[index])

    def _place_again(self, index: int, framework: Framework, view: ArrayView) -> None:
        """Note where an array lies now; the memory of one that shares it must be as it was."""
        now = (framework.name, view.memory), view.offset, view.memory_bytes
        if now != self._placed[index]:
            if len(self._memories[self._placed[index][0]].views) > 1:
                raise _Changed
            self._moved[index] = now

    def _move(self) -> None:
        """Note the arrays that lie elsewhere now. Memory that one left may be another's."""
        if not self._held.isdisjoint(self._moved):
            self._firm = None  # what took another's place is among them: that was still there
        memories = {index: self._memories.pop(self._placed[index][0]) for index in self._moved}
        if self._moved and self._are_in_others():
            raise _Changed
        for index, now in self._moved.items():
            if now[0] in self._memories:
                raise _Changed
            self._memories[now[0]] = memories[index]
            self._placed[index] = now
        self._moved.clear()

    def _are_in_others(self) -> bool:
        """Whether the memory of one that was moved has that of another in it, or is in it.

        Where the others lie is asked by the addresses of their elements: one that is in a larger
        memory now, at the address where it was before, does not show there.
        """
        stayed = {x[0]: x[2] for i, x in self._placed.items() if i not in self._moved}
        starts = sorted(stayed)
        for place, _, size in self._moved.values():
            framework, start = place
            after = bisect_left(starts, (framework, start))
            if after < len(starts) and starts[after] < (framework, start + size):
                return True
            known, at = starts[after - 1] if after else ("", 0)
            if known == framework and at + stayed[known, at] > start:
                return True
        return False


def _with_array(leaf: LiveLeaf, array: Any) -> LiveLeaf:
    return LiveLeaf(leaf.name, leaf.framework, array, leaf.nbytes, leaf.dtype, leaf.shape)


def _names(roots: Mapping[str, Any], aside: Aside) -> tuple[tuple[str, ...], ...]:
    return tuple(roots), tuple(aside.rebuilt), tuple(aside.held)


def _numbers(refs: Roots) -> list[tuple[str, int]]:
    """The objects among some named children; constants may differ."""
    return [(name, ref) for name, ref in refs if type(ref) is int]


def _below(node: Node) -> list[int]:
    """The objects that a node refers to, in order."""
    fields = [ref for _, ref in node.fields]
    return [ref for ref in (*node.items, *node.keys, *fields) if type(ref) is int]
