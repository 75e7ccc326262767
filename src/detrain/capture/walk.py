"""The walk: everything reachable from named roots, as a `StateTree`.

Breadth first, each object once: what is one object in the program is one node. Nothing is copied
here; the arrays met are listed in `Walked.leaves`, to be copied or digested by the caller before
the program goes on.

What is left out (`Aside`) is walked too, after what is saved: it gives *anchors*, ways on which
restore finds the live objects that stand for saved ones. See `capture.anchors`.
"""

from __future__ import annotations

import sys
import threading
import types
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from detrain.capture.anchors import (
    DEAD,
    FULL,
    REBUILT,
    Numbering,
    content_of,
    is_addressed,
    is_field,
    number_objects,
    variable_of,
    with_anchors,
)
from detrain.capture.form import fields_of
from detrain.capture.forms import form_of
from detrain.capture.holders import held_elsewhere, is_asked_after
from detrain.capture.own import not_a_library
from detrain.errors import UncapturableState
from detrain.frameworks import find
from detrain.frameworks.base import LiveLeaf
from detrain.state import LEFT_OUT, PLAIN, ArrayFacts, Node, Ref, StateTree, encode_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from detrain.frameworks.base import ArrayView, Framework

__all__ = ["Aside", "Roots", "Walk", "Walked", "walk"]

Roots = tuple[tuple[str, Ref], ...]


@dataclass(frozen=True)
class Aside:
    """What is reachable and not saved, by roots of their own.

    `rebuilt` is made again by the program, unchanged; `dead` is written before it is read. `fields`
    are those of saved objects, by their ids, whose values are among the rebuilt roots. `held`
    is saved, except arrays that a rebuilt root reaches too. Without `gradients`, those are left
    out wherever they are. If `namespaces`, which hold the dead ones, are given, it is asked who
    else does.
    """

    rebuilt: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[int, Set[str]] = field(default_factory=dict)
    held: Mapping[str, Any] = field(default_factory=dict)
    dead: Mapping[str, Any] = field(default_factory=dict)
    gradients: bool = True
    namespaces: tuple[Any, ...] = ()


class Walked(msgspec.Struct, frozen=True, eq=False):
    """A tree, and the live arrays that its leaves name."""

    tree: StateTree
    leaves: tuple[LiveLeaf, ...]
    graphs: tuple[LiveLeaf, ...]
    """Arrays that an autograd graph hangs on; they are captured without it."""
    rebuilt: tuple[LiveLeaf, ...] = ()
    """Arrays that are not saved, because the program makes them again."""
    contents: dict[str, str] = {}
    """Digests, by path, of all but the arrays that only rebuilt roots reach, and for each root
    what it leads to."""
    gradients: tuple[LiveLeaf, ...] = ()
    """Arrays whose gradients are left out."""
    left_out: int = 0
    """The bytes of arrays that are not saved."""
    hidden: frozenset[str] = frozenset()
    """Dead variables with an object that something holds which was not walked."""
    alive: tuple[Any, ...] = ()
    """All objects that were met."""
    carried: frozenset[str] = frozenset()
    """The names of those `graphs` that belong to arrays which are saved: they may be used later."""
    met: tuple[str, ...] = ()
    """The paths of the objects that are `alive`."""
    again: bool = False
    """Whether only constants, arrays and plain containers are others than in the walk before."""
    firm: tuple[LiveLeaf, ...] = ()
    """Those of the leaves whose arrays are held by something that was walked. If all of them are
    the arrays of the walk before, and lie where they lay, it is the very tuple of that walk."""
    loose: tuple[LiveLeaf, ...] = ()
    """The other leaves, if a walk is gone again and again."""


def walk(
    roots: Mapping[str, Any],
    owns: Callable[[str], bool] = not_a_library,
    aside: Aside | None = None,
) -> Walked:
    """Describe what is reachable from the roots; `UncapturableState` if some of it can't be.

    `owns` says whether a file is the program's own: what its functions and classes keep is state.
    """
    return Walk(find.loaded(), owns).run(roots, aside or Aside())


_TO_COME = Node("")
"""Stands for an object that was met and is not described yet."""


@dataclass(frozen=True)
class _Memory:
    """The arrays met so far that look into one memory, and the names of their bytes by layout."""

    number: int
    views: list[tuple[int, int, int]]
    """For each array its index, where in the memory it lies, and how large the memory is."""
    leaves: dict[object, str]


class Walk:
    """One walk under way; `forms` call `ref` for each child."""

    def __init__(self, frameworks: tuple[Framework, ...], owns: Callable[[str], bool]) -> None:
        self.frameworks = frameworks
        self._owns = owns
        self.transparent = frozenset().union(*(f.transparent for f in frameworks))
        self._nodes: list[Node] = []
        self._paths: list[str] = []
        self._index: dict[int, int] = {}
        self._queue: deque[tuple[int, Any]] = deque()
        # Keeps temporary objects alive, so that no address is used twice.
        self._alive: list[Any] = []
        self._silent: set[int] = set()
        self._shared: set[int] = set()
        self._graphs: dict[int, LiveLeaf] = {}
        self._leaves: dict[str, LiveLeaf] = {}
        self._memories: dict[object, _Memory] = {}
        self._mode = FULL
        self._modes: list[int] = []
        self._described: dict[int, int] = {}
        self._asked: set[int] = set()
        self._rebuilt: dict[str, LiveLeaf] = {}
        self._with_gradients = True
        self._gradients: dict[int, LiveLeaf] = {}
        self._left_out: dict[object, int] = {}
        self._fields: Mapping[int, Set[str]] = {}
        self._refs: Roots = ()
        self._rebuilt_refs: Roots = ()
        self._contents: dict[str, str] = {}
        self._numbering: Numbering | None = None

    def run(self, roots: Mapping[str, Any], aside: Aside) -> Walked:
        """Walk from the roots, then from what is left out."""
        self._reach(roots, aside)
        return self._found(aside)

    def _reach(self, roots: Mapping[str, Any], aside: Aside) -> None:
        """Walk from all but the dead roots."""
        self._with_gradients, self._fields = aside.gradients, aside.fields
        self._refs = self._roots(roots, FULL)
        self._rebuilt_refs = self._roots(aside.rebuilt, REBUILT)
        leads_to = self._led_to()
        self._refs += self._roots(aside.held, FULL)
        self._mark_shared_memory()
        self._contents = content_of(self._nodes, self._paths, self._modes) | leads_to

    def _found(self, aside: Aside) -> Walked:
        """Walk from the dead roots; gives all that was found."""
        if self._numbering is None and (aside.rebuilt or aside.dead):
            refs = (ref for _, ref in self._refs)
            self._numbering = number_objects(refs, self._nodes, self._modes)
        dead = self._roots(aside.dead, DEAD)
        nodes, paths = tuple(self._nodes), tuple(self._paths)
        tree = StateTree(self._refs, nodes, paths, self._rebuilt_refs, dead)
        if self._numbering is not None:
            tree = with_anchors(tree, self._modes, self._numbering)
        return Walked(
            tree,
            tuple(self._leaves.values()),
            tuple(self._graphs.values()),
            tuple(self._rebuilt.values()),
            self._contents,
            tuple(self._gradients.values()),
            sum(self._left_out.values()),
            self._hidden(aside) if aside.namespaces else frozenset(),
            tuple(self._alive),
            frozenset(leaf.name for i, leaf in self._graphs.items() if self._modes[i] == FULL),
            paths,
        )

    def _led_to(self) -> dict[str, str]:
        """Which objects the fields lead to that are rebuilt."""
        named = ((name, ref) for name, ref in self._rebuilt_refs if is_field(name))
        return {f"{name}.=": self._leads_to(ref) for name, ref in named}

    def _leads_to(self, ref: Ref) -> str:
        """Which of the rebuilt objects one is; "" if it is saved."""
        is_rebuilt = isinstance(ref, int) and self._modes[ref] == REBUILT
        return self._paths[ref] if isinstance(ref, int) and is_rebuilt else ""

    def _hidden(self, aside: Aside) -> frozenset[str]:
        asked = [i for i, mode in enumerate(self._modes) if mode == DEAD and i in self._asked]
        objects = [self._alive[i] for i in asked]
        ours = (self._alive, aside.dead, *aside.namespaces)
        found = held_elsewhere(objects, self._alive, ours)
        return frozenset(variable_of(self._paths[asked[i]]) for i in found)

    def _roots(self, roots: Mapping[str, Any], mode: int) -> Roots:
        self._mode = mode
        refs = tuple((name, self.ref(value, name)) for name, value in roots.items())
        while self._queue:
            index, obj = self._queue.popleft()
            self._mode = self._modes[index]
            self._describe(index, obj)
        return refs

    def _describe(self, index: int, obj: Any) -> None:
        path, wanted = self._paths[index], self._mode
        if self._described.get(index, DEAD + 1) <= wanted:
            return
        self._described[index] = wanted
        try:
            form = form_of(obj, path, self.frameworks)
            if wanted == DEAD and is_asked_after(form.name):
                self._asked.add(index)
            if wanted != FULL and not is_addressed(form.name, obj):
                if wanted == DEAD:
                    return
                # There is no way to find it again by its path, so it is saved.
                self._mode = self._modes[index] = FULL
            self._nodes[index] = form.describe(obj, path, self)
        except UncapturableState:
            if wanted == FULL or self._is_at_work(obj):
                raise
            self._modes[index] = wanted

    def _is_at_work(self, obj: Any) -> bool:
        """Whether it is a thread that runs code of the program: what it does goes on, whether or
        not anything looks at the thread itself.
        """
        if not isinstance(obj, threading.Thread):
            return False
        target = getattr(obj, "_target", None) or type(obj).run
        code = getattr(getattr(target, "__func__", target), "__code__", None)
        return code is not None and self._owns(code.co_filename)

    def ref(self, obj: Any, path: str) -> Ref:
        """The reference to a child; the object is described later, once."""
        if type(obj) in PLAIN:
            return encode_scalar(obj)
        index = self._index.get(id(obj))
        if index is None:
            return self._meet(obj, path)
        self._shared.add(index)
        if self._mode < self._modes[index] and self._nodes[index].array is None:
            # Something that is saved holds it: it is described again, to be saved.
            self._modes[index] = self._mode
            self._queue.append((index, obj))
        return index

    def _meet(self, obj: Any, path: str) -> int:
        """The index of an object that was not met before."""
        index = self._index[id(obj)] = len(self._nodes)
        self._nodes.append(_TO_COME)
        self._paths.append(path)
        self._modes.append(self._mode)
        self._alive.append(obj)
        self._queue.append((index, obj))
        return index

    def refs(self, items: Iterable[Any], path: str) -> tuple[Ref, ...]:
        """References to the items of a sequence."""
        return tuple([self.ref(item, f"{path}[{i}]") for i, item in enumerate(items)])

    def fields(self, items: Iterable[tuple[str, Any]], path: str) -> tuple[tuple[str, Ref], ...]:
        """References to named fields."""
        found = []
        for name, value in items:
            silent = name in self.transparent
            ref = self.ref(value, path if silent else f"{path}.{name}")
            if silent and isinstance(ref, int):
                self._silent.add(ref)
            found.append((name, ref))
        return tuple(found)

    def object_fields(self, obj: Any, path: str) -> tuple[tuple[str, Ref], ...]:
        """References to the fields of an object, without those that are rebuilt if it is saved."""
        apart = self._fields.get(id(obj)) if self._mode == FULL else None
        fields = fields_of(obj)
        if not apart:
            return self.fields(fields, path)
        refs = dict(self.fields([each for each in fields if each[0] not in apart], path))
        return tuple((name, refs.get(name, LEFT_OUT)) for name, _ in fields)

    def items(
        self, owner: Any, items: Sequence[tuple[Any, Any]], path: str
    ) -> tuple[tuple[Ref, ...], tuple[Ref, ...]]:
        """References to keys and values, which a person names by keys if those are constants."""
        ref, silent = self.ref, self._index[id(owner)] in self._silent
        keys = tuple([ref(key, f"{path}.key({i})") for i, (key, _) in enumerate(items)])
        if silent:
            paths = [
                f"{path}.{key}" if type(key) in PLAIN else f"{path}[#{i}]"
                for i, (key, _) in enumerate(items)
            ]
        else:
            paths = [
                f"{path}[{key!r}]" if type(key) in PLAIN else f"{path}[#{i}]"
                for i, (key, _) in enumerate(items)
            ]
        values = [ref(value, at) for (_, value), at in zip(items, paths, strict=True)]
        return keys, tuple(values)

    def is_own(self, obj: Any) -> bool:
        """Whether a function or class is part of the program's own text."""
        if isinstance(obj, types.FunctionType):
            return self._owns(obj.__code__.co_filename)
        module = sys.modules.get(getattr(obj, "__module__", None) or "")
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and self._owns(file)

    def array(self, obj: Any, framework: Framework, view: ArrayView, path: str) -> ArrayFacts:
        """Register an array; two that look at the very same elements share their bytes."""
        index = self._index[id(obj)]
        # Arrays of two frameworks over one memory are two: neither can make the other's kind.
        place = (framework.name, view.memory)
        mode = self._modes[index]
        if view.graph:
            live = LiveLeaf(path, framework, obj, view.nbytes, view.dtype, view.shape)
            self._graphs[index] = live
        if mode == DEAD:
            return self._dead_array(place, framework, view)
        memory = self._memories.get(place)
        if memory is None:
            memory = self._memories[place] = _Memory(len(self._memories), [], {})
        layout = (view.dtype, view.shape, view.offset, view.strides, mode)
        leaves = self._leaves if mode == FULL else self._rebuilt
        leaf = memory.leaves.get(layout, "")
        if not leaf:
            leaf = path
            while leaf in self._leaves or leaf in self._rebuilt:
                leaf += "'"
            memory.leaves[layout] = leaf
            leaves[leaf] = LiveLeaf(leaf, framework, obj, view.nbytes, view.dtype, view.shape)
            if mode != FULL:
                self._left_out[place, layout] = view.nbytes
        memory.views.append((index, view.offset, view.memory_bytes))
        return ArrayFacts(
            framework=framework.name,
            dtype=view.dtype,
            shape=view.shape,
            leaf=leaf,
            storage=memory.number,
            strides=view.strides,
            device=view.device,
            requires_grad=view.requires_grad,
        )

    def array_fields(self, obj: Any, framework: Framework, view: ArrayView) -> dict[str, Any]:
        """What belongs to an array, without its gradient if those are left out."""
        fields = dict(view.fields)
        if self._with_gradients or self._mode == DEAD:
            return fields
        gradient = fields.pop(framework.gradient, None)
        if gradient is not None:
            index = self._index[id(obj)]
            leaf = LiveLeaf(self._paths[index], framework, obj, view.nbytes, view.dtype, view.shape)
            self._gradients[index] = leaf
            self._left_out["gradient", index] = view.nbytes
        return fields

    def save_instead(self, obj: Any) -> None:
        """An object that was to be rebuilt has to be saved after all."""
        index = self._index[id(obj)]
        if self._modes[index] == REBUILT:
            self._mode = self._modes[index] = FULL

    def _dead_array(self, place: object, framework: Framework, view: ArrayView) -> ArrayFacts:
        if place not in self._memories:
            self._left_out[place] = view.memory_bytes
        # It has no bytes and claims no memory; only what hangs on it may matter.
        return ArrayFacts(framework.name, view.dtype, view.shape, "", -1, device=view.device)

    def _mark_shared_memory(self) -> None:
        """Only arrays that share their memory need to know where in it they lie."""
        for memory in self._memories.values():
            if len(memory.views) < 2:
                continue
            for index, offset, nbytes in memory.views:
                node = self._nodes[index]
                assert node.array is not None
                facts = msgspec.structs.replace(node.array, offset=offset, storage_bytes=nbytes)
                self._nodes[index] = msgspec.structs.replace(node, array=facts)
