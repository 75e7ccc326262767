"""The forms of iterators: the built-in ones, by what they are made from, and those over loaders."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from detrain.capture.form import Form, Pairs, identical, type_name
from detrain.capture.held import HeldGenerator
from detrain.errors import ResumeMismatch, UncapturableState
from detrain.state import Node

if TYPE_CHECKING:
    from detrain.capture.restore import Restore
    from detrain.capture.walk import Walk

__all__ = ["ITERATORS", "HeldForm", "IteratorForm", "PositionForm"]


class _Indexed:
    """Iterated over by index, as all was once."""

    def __getitem__(self, index: int) -> None:
        raise IndexError(index)


_SAMPLES: tuple[Any, ...] = (
    iter([]), iter(()), iter(""), iter(range(0)), iter(range(1 << 70)), iter(b""), iter({}),
    iter({}.values()), iter({}.items()), iter(set()), reversed([]), reversed(()), enumerate(()),
    zip(), map(bool, ()), filter(None, ()), iter(collections.deque()), itertools.count(),
    itertools.cycle(()), itertools.chain(), itertools.islice((), 0), itertools.repeat(0),
    itertools.product(), itertools.permutations(()), itertools.combinations((), 0),
    itertools.accumulate(()), itertools.starmap(bool, ()), itertools.zip_longest(()),
    iter(_Indexed()), iter(int, 0),
)  # fmt: skip

ITERATORS: frozenset[type] = frozenset(type(sample) for sample in _SAMPLES)
_MAKERS: dict[str, Callable[..., Any]] = {
    **{type_name(kind): kind for kind in ITERATORS},
    "builtins:iter": iter,
    "builtins:reversed": reversed,
}


_COPYING: tuple[Any, ...] = (
    itertools.product, itertools.permutations, itertools.combinations,
)  # fmt: skip
"""They take all items at once: of a long range, all memory."""


class IteratorForm(Form):
    """Built-in iterators: what makes one that is as far as this one, as pickling would ask."""

    name = "iterator"
    mutable = False

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        maker, arguments, *state = obj.__reduce__()
        items = walk.refs(arguments, path)
        fields = walk.fields([("state", state[0])], path) if state else ()
        return Node("iterator", type_name(type(obj)), items, fields=fields, text=_maker_name(maker))

    def children(self, node: Node, live: Any) -> Pairs:
        _, arguments, *_ = live.__reduce__()
        return zip(node.items, arguments, strict=False)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        maker = _MAKERS.get(node.text)
        if maker is None:
            raise ResumeMismatch(path, "a built-in iterator", node.text, "Make it before the loop")
        for ref in (*node.items, *(ref for _, ref in node.fields)):
            restore.complete(ref)
        parts = [restore.get(ref) for ref in node.items]
        if maker in _COPYING and any(isinstance(part, range) for part in parts):
            raise ValueError(f"{node.text} of a range: it holds tuples")
        made = maker(*parts)
        for _, ref in node.fields:
            made.__setstate__(restore.get(ref))
        return made

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        _, arguments, *state = live.__reduce__()
        if len(arguments) != len(node.items) or len(state) != len(node.fields):
            return False
        items = [restore.get(ref) for ref in node.items]
        states = [restore.get(ref) for _, ref in node.fields]
        return identical(arguments, items) and identical(state, states)


def _maker_name(maker: Any) -> str:
    return f"{maker.__module__}:{maker.__qualname__}"


class PositionForm(Form):
    """Iterators over a framework's loaders: the loader, and where they are in it."""

    name = "position"

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        for framework in walk.frameworks:
            found = framework.iterator_state(obj)
            if found is not None:
                owner, state = found
                items = (walk.ref(owner, f"{path}.loader"), walk.ref(state, f"{path}.position"))
                return Node("position", type_name(type(obj)), items, text=framework.name)
        raise AssertionError(f"{path} was taken for a loader's iterator")

    def children(self, node: Node, live: Any) -> Pairs:
        return [(node.items[0], live.owner())]

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        owner, state = (restore.get(ref) for ref in node.items)
        for ref in node.items:
            restore.complete(ref)
        return restore.framework(node.text, path).new_iterator(owner, state)

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        state = restore.get(node.items[1])
        for ref in node.items:
            restore.complete(ref)
        restore.framework(node.text, path).set_iterator_state(live, state)


class HeldForm(Form):
    """Generators of the program's own: the call that made them, and how many items were taken."""

    name = "held"

    def describe(self, obj: HeldGenerator, path: str, walk: Walk) -> Node:
        if obj.is_finished():
            return Node("held", type_name(type(obj)), text="finished")
        if obj.given_away:
            raise UncapturableState(
                path,
                f"generator {obj.function.__qualname__}",
                "it was looped over, or sent to, and is not at its end",
                "Take its items with next(), or make it where it is looped over",
            )
        parts = (obj.function, obj.args, obj.kwargs, obj.count, obj.draws)
        return Node("held", type_name(type(obj)), walk.refs(parts, path))

    def children(self, node: Node, live: HeldGenerator) -> Pairs:
        return zip(node.items, (live.function, live.args, live.kwargs), strict=False)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        if node.text == "finished":
            empty = HeldGenerator(_nothing, (), {})
            next(iter(empty), None)
            return empty
        function, args, kwargs = (restore.get(ref) for ref in node.items[:3])
        restore.check_called(function, path)
        for ref in node.items[:3]:
            restore.complete(ref)
        return HeldGenerator(function, args, kwargs)

    def fill(self, node: Node, live: HeldGenerator, restore: Restore, path: str) -> None:
        if node.text == "finished":
            for _ in live:
                pass
            return
        for ref in node.items:
            restore.complete(ref)
        live.take_again(restore.get(node.items[3]), restore.get(node.items[4]))


def _nothing() -> Any:
    yield from ()
