"""Restore: make a rebuilt program's objects what a tree says they were, in place.

Two phases. *Match*: go down the tree and the live objects together, breadth first, and note which
live object stands for which node. *Fill*: put the captured content into the matched objects, and
make those that the program has not built again (it made them inside the loop). Only classes and
functions that the program itself has loaded are used; nothing is imported or unpickled.

Anchors are matched and never filled. Rebuilt ones come first: the program is known to have made
them as they were, so that they tell best which object is which. Dead ones come last.
"""

from __future__ import annotations

import inspect
from collections import deque
from typing import TYPE_CHECKING, Any

from detrain.capture.content import digest_live
from detrain.capture.filling import Filling
from detrain.capture.forms import FORMS
from detrain.capture.objects import NAMED, name_of
from detrain.capture.own import not_a_library
from detrain.capture.sound import Fence, check_tree
from detrain.capture.told import checked, told
from detrain.errors import DamagedCheckpoint, DetrainError, ResumeMismatch
from detrain.frameworks import find
from detrain.frameworks.beside import beside
from detrain.state import PLAIN, ArrayFacts, Node, Ref, StateTree, decode_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from detrain.capture.form import Form
    from detrain.frameworks.base import Filled, Framework, Mapped

__all__ = ["Restore", "restore"]


def restore(
    tree: StateTree,
    live: Mapping[str, Any],
    data: Callable[[str], memoryview],
    optional: Callable[[str], bool] = lambda _: False,
    note: Callable[[str], None] = lambda _: None,
    rebuilt: Mapping[str, str] | None = None,
    owns: Callable[[str], bool] = not_a_library,
    mapped: Callable[[str], Mapped] | None = None,
) -> dict[str, Any]:
    """Restore what the roots reach; gives each root's object, which is the live one if it could be.

    `data` gives the bytes of a leaf, in a buffer that may be written to. An `optional` root that
    stands for something which only the program can define (a function inside a function) and has
    not, is left out. `note` is told what could not be restored in a way that may matter. `rebuilt`
    are the digests of arrays that are not in the data: the program must have made them again.
    `owns` says which files are the program's: what it may name is fenced in by `capture.sound`.
    `mapped` gives where a leaf lies: new arrays may lodge there, if nobody reads it afterwards.
    """
    check_tree(tree, FORMS, "the state of a checkpoint")
    restoring = Restore(tree, data, note, rebuilt or {}, Fence(owns), mapped)
    return checked(tree.paths[0] if tree.paths else "", lambda: restoring.run(live, optional))


class Restore:
    """One restore under way; `forms` call `get` for each child."""

    def __init__(
        self,
        tree: StateTree,
        data: Callable[[str], memoryview],
        note: Callable[[str], None],
        rebuilt: Mapping[str, str],
        fence: Fence,
        mapped: Callable[[str], Mapped] | None = None,
    ) -> None:
        self._tree, self._data, self.note, self._rebuilt = tree, data, note, rebuilt
        self._fence = fence
        self._frameworks = {framework.name: framework for framework in find.loaded()}
        self._under_way: set[int] = set()
        """Objects that can't change and are being made: none of them can hold itself."""
        self._live: dict[int, Any] = {}
        self._claimed: dict[int, int] = {}
        self._memories: dict[object, int] = {}
        self._made: dict[int, Any] = {}
        self._to_fill: list[int] = []
        self._filled: set[int] = set()
        self._sharing: dict[int, Any] = {}
        self._named: dict[str, Any] = {}
        self._late: list[tuple[int, Ref, Any]] = []
        self._anchored: list[tuple[int, Any]] = []
        """Saved objects that rebuilt ones hold, which must stay the ones that they hold."""
        self._mapped = mapped
        self._complete: set[str] = set()
        """The leaves of arrays that were made with their content in them."""
        self._filling = Filling()

    def run(self, live: Mapping[str, Any], optional: Callable[[str], bool]) -> dict[str, Any]:
        """Match, then fill."""
        try:
            found = self._run(live, optional)
            self._filling.finish()
            for framework in self._frameworks.values() if self._mapped is not None else ():
                beside(framework.move_in(self._made.values()))
            return found
        finally:
            self._filling.stop()

    def _run(self, live: Mapping[str, Any], optional: Callable[[str], bool]) -> dict[str, Any]:
        for name, ref in self._tree.rebuilt:
            if name not in live:
                raise self._not_rebuilt(ref, "nothing")
        self._match(self._tree.rebuilt, live)
        self._match(self._tree.roots, live)
        self._match(self._tree.dead, live)
        self._compare_rebuilt()
        arrays = [index for index in self._live if self._tree.nodes[index].array is not None]
        for index in arrays:
            facts = self._tree.nodes[index].array
            assert facts is not None
            self._sharing.setdefault(facts.storage, self._live[index])
        for index in arrays:
            self.get(index)  # large ones are filled beside all that follows
        self._filling.begin()
        found = {}
        for name, ref in self._tree.roots:
            try:
                found[name] = self.get(ref)
            except ResumeMismatch:
                if not optional(name):
                    raise
        for ref, obj in self._anchored:
            if self.get(ref) is not obj:
                raise self._not_rebuilt(ref, "another object")
        while self._to_fill:
            self._fill(self._to_fill.pop())
        return found

    def aside(self, framework: Framework, filled: Filled, path: str) -> None:
        """Fill a large array beside all else."""
        self._filling.add(framework, filled, path)

    def get(self, ref: Ref) -> Any:
        """The object that a reference stands for; it may be filled only later."""
        if not isinstance(ref, int):
            return decode_scalar(ref)
        if ref in self._made:
            return self._made[ref]
        node, path = self._tree.nodes[ref], self._tree.paths[ref]
        form = FORMS[node.form]
        live = self._live.get(ref, _NONE)
        if node.anchor:
            if live is _NONE:
                raise self._not_rebuilt(ref, "nothing")
            return live
        if ref in self._under_way:
            raise DamagedCheckpoint(path, f"a {node.form} that can't change holds itself")
        self._under_way.add(ref)
        try:
            keep = live is not _NONE and (form.mutable or self._is_same(form, node, live, path))
            made = live if keep else checked(path, lambda: form.make(node, self, path))
        finally:
            self._under_way.discard(ref)  # another root may ask for it again
        self._made[ref] = made
        if node.array is not None:
            self._sharing.setdefault(node.array.storage, made)
        if node.array is not None and not node.fields:
            self._fill(ref)  # at once: large ones are filled beside all else
        elif form.mutable:
            self._to_fill.append(ref)
        return made

    def complete(self, ref: Ref) -> None:
        """Fill an object, and all below it, now."""
        todo = [ref]
        while todo:
            at = todo.pop()
            if isinstance(at, int) and at not in self._filled:
                self.get(at)
                self._fill(at)
                node = self._tree.nodes[at]
                todo += [*node.items, *node.keys, *(child for _, child in node.fields)]
        self._filling.finish()

    def data(self, facts: ArrayFacts) -> memoryview:
        """The bytes of an array."""
        return self._data(facts.leaf)

    def new_with(self, framework: Framework, kind: type[Any], facts: ArrayFacts) -> Any | None:
        """A new array with its content in it; None if it has to be created and filled."""
        made = None
        if self._mapped is not None:
            made = framework.lodge(kind, facts, self._mapped(facts.leaf))
        if made is None:
            made = framework.new_with(kind, facts, self.data(facts))
        if made is not None:
            self._complete.add(facts.leaf)
        return made

    def is_complete(self, facts: ArrayFacts) -> bool:
        """Whether an array has its content already."""
        return facts.leaf in self._complete

    def sharing(self, storage: int) -> Any | None:
        """An array that looks into the given memory, if one is there already."""
        return self._sharing.get(storage)

    def framework(self, name: str, path: str) -> Framework:
        """An adapter that the program's imports have brought in."""
        if name in self._frameworks:
            return self._frameworks[name]
        raise ResumeMismatch(
            path,
            f"{name} to be imported by the program",
            "it is not",
            f"Import {name} before the loop",
        )

    def resolve(self, name: str, path: str) -> Any:
        """What a name stands for in the program as it is loaded; never imports anything.

        Classes and functions that were defined inside a function are those that it defined again.
        """
        if name in self._named:
            return self._named[name]
        found = self._find(name, path)
        self._fence.check_value(found, name, path)
        return found

    def _find(self, name: str, path: str) -> Any:
        found = self._fence.find(name)
        if not isinstance(found, NAMED) or name_of(found) != name:
            raise ResumeMismatch(
                path,
                f"{name} to be loaded by the program, as in the first attempt",
                "no such name",
                "Define it at module level, so that it can be found again",
            )
        return found

    def check_keeps(self, owner: Any, name: str, path: str) -> None:
        """Only what the program's own functions and classes keep is put back into them."""
        is_method = hasattr(type(vars(owner).get(name)), "__get__")
        hidden = name.startswith("__") and name not in ("__defaults__", "__kwdefaults__")
        if not self._fence.is_own(owner) or is_method or hidden:
            raise DamagedCheckpoint(f"{path}.{name}", "is no state: it can't have been saved")

    def check_called(self, function: Any, path: str) -> None:
        """Only generator functions of the program's own are called, to take their items again."""
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is None or not code.co_flags & inspect.CO_GENERATOR:
            raise DamagedCheckpoint(path, f"{function!r} is no generator function")
        if not self._fence.is_own(inspect.unwrap(function)):
            raise DamagedCheckpoint(path, f"{function!r} is not the program's own")

    def resolve_type(self, node: Node, path: str) -> type[Any]:
        """The class of a node's object."""
        kind = self._named.get(node.type) or self._find(node.type, path)
        if not isinstance(kind, type):
            raise ResumeMismatch(path, f"{node.type} to be a class", repr(kind), "Rename it")
        self._fence.check_class(kind, node.form, path)
        return kind

    def _match(self, roots: Iterable[tuple[str, Ref]], live: Mapping[str, Any]) -> None:
        """Note which live object stands for which node, from these roots down."""
        queue: deque[tuple[Ref, Any, bool]] = deque(
            (ref, live[name], roots is self._tree.rebuilt) for name, ref in roots if name in live
        )
        while queue or self._late:
            if not queue:
                self._match_late(queue)
                if not queue:
                    return
                continue
            ref, obj, exact = queue.popleft()
            if not isinstance(ref, int):
                continue
            if exact:
                self._check_rebuilt(ref, obj)
            if ref in self._live:
                continue
            node = self._tree.nodes[ref]
            form = FORMS[node.form]
            fits = type(obj) not in PLAIN and form.matches(node, obj)
            if not fits or not self._claim(ref, node, obj):
                if exact and form.mutable:
                    raise self._not_rebuilt(ref, f"a {type(obj).__name__}")
                continue
            self._live[ref] = obj
            if node.form == "named":
                self._named[node.type] = obj
            exact = node.anchor == "rebuilt"
            queue.extend((child, found, exact) for child, found in form.children(node, obj))
            self._late += [
                (key, value, obj)
                for key, value in zip(node.keys, node.items, strict=False)
                if isinstance(key, int)
            ]

    def _match_late(self, queue: deque[tuple[Ref, Any, bool]]) -> None:
        """Pair dictionary values whose keys are objects that have been matched by now."""
        waiting = []
        for key, value, owner in self._late:
            found = self._live.get(key, _NONE)
            if found is _NONE and self._is_constant(key):
                found = self.get(key)
            if found is _NONE:
                waiting.append((key, value, owner))
            elif dict.__contains__(owner, found):
                queue.append((value, dict.__getitem__(owner, found), False))
        self._late = waiting

    def _check_rebuilt(self, ref: int, obj: Any) -> None:
        """What a rebuilt object holds must be what it held: it is not filled itself."""
        node = self._tree.nodes[ref]
        if FORMS[node.form].mutable and self._live.get(ref, obj) is not obj:
            raise self._not_rebuilt(ref, "two objects where there was one")
        if not node.anchor:
            self._anchored.append((ref, obj))

    def _compare_rebuilt(self) -> None:
        """Arrays that are not in the checkpoint must have been made again, bit for bit."""
        for ref, node in enumerate(self._tree.nodes):
            if node.array is None or node.anchor not in ("held", "rebuilt"):
                continue
            if ref not in self._live:
                raise self._not_rebuilt(ref, "nothing")
            expected, found = self._rebuilt[node.array.leaf], digest_live(self._live[ref])
            if found != expected:
                raise self._not_rebuilt(ref, f"other content (digest {found}, it was {expected})")

    def _not_rebuilt(self, ref: Ref, found: str) -> ResumeMismatch:
        assert isinstance(ref, int)
        node = self._tree.nodes[ref]
        return ResumeMismatch(
            self._tree.paths[ref],
            f"the {node.type} that the program made in the first attempt, which is not saved "
            "because nothing changes it afterwards",
            found,
            "Sort or seed what makes it, so that it comes out the same; a run that is started "
            "with --no-plan saves it",
        )

    def _is_constant(self, ref: int) -> bool:
        node = self._tree.nodes[ref]
        return node.form in ("value", "enum") or (
            node.form == "tuple" and not any(isinstance(item, int) for item in node.items)
        )

    def _claim(self, ref: int, node: Node, obj: Any) -> bool:
        """A live object, and a live memory, may stand for one captured one only."""
        if not FORMS[node.form].mutable or node.form == "named":
            return True
        if self._claimed.setdefault(id(obj), ref) != ref:
            return False
        if node.array is None or node.anchor == "dead":
            return True
        view = find.by_name(node.array.framework).view(obj)
        if view is None or view.nbytes == 0:
            return True
        place = (node.array.framework, view.memory)
        return self._memories.setdefault(place, node.array.storage) == node.array.storage

    def _fill(self, ref: int) -> None:
        if ref not in self._filled:
            self._filled.add(ref)
            node, path = self._tree.nodes[ref], self._tree.paths[ref]
            try:
                FORMS[node.form].fill(node, self._made[ref], self, path)
            except DetrainError:
                raise
            except Exception as error:
                raise told(path, error) from error

    def _is_same(self, form: Form, node: Node, live: Any, path: str) -> bool:
        return bool(checked(path, lambda: form.same(node, live, self, path)))


_NONE = object()
