"""Anchors: objects that are not saved, kept in a tree because the way to a saved one leads here.

An object that the loop reaches by one name may lie, in the rebuilt program, where only another name
leads to: `current` is one of `nets`, and nothing reads `nets` any more. So the structure below
names that are not saved is kept, without a constant and without the bytes of an array, as far as it
leads to a saved object. Of what the program makes again the arrays are kept too, as digests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

from detrain.state import LEFT_OUT, PLAIN, Node, Ref, StateTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

__all__ = [
    "DEAD",
    "FULL",
    "REBUILT",
    "Numbering",
    "content_of",
    "is_addressed",
    "is_field",
    "number_objects",
    "root_of",
    "variable_of",
    "with_anchors",
]

FULL, REBUILT, DEAD = 0, 1, 2
"""How an object is walked; what is reached in two ways, in the first of them."""

# Forms whose children restore finds by their place in the live object. A running iterator, a
# generator of random numbers, a set are not among them: below a rebuilt name, they are saved.
_ADDRESSED = frozenset(
    {
        "array", "deque", "dict", "enum", "list", "method", "named", "object", "partial",
        "outcome", "standing", "tuple", "value",
    }
)  # fmt: skip

_POSITIONAL = frozenset({"deque", "list", "method", "outcome", "partial", "tuple"})


def is_addressed(form: str, obj: Any) -> bool:
    """Whether what an object holds can be found by its place, so that it can be an anchor.

    A class is not: its objects lead to what it keeps, though no path shows it.
    """
    if form == "dict":
        return all(type(key) in PLAIN for key in dict.keys(obj))
    return form in _ADDRESSED and not isinstance(obj, type)


def variable_of(path: str) -> str:
    """The variable that a path begins with: `__main__/data` of `__main__/data.train[3]`."""
    found = re.match(r"[^/]*/[^.\['(]*", path)
    return found[0] if found is not None else path


def is_field(place: str) -> bool:
    """Whether a place is not a variable but a field below one: `__main__/data.train`."""
    return variable_of(place) != place


def root_of(path: str, roots: Iterable[str]) -> str:
    """The innermost of some places that a path lies at or below; its variable if there is none."""
    found = [r for r in roots if path == r or (path.startswith(r) and path[len(r)] in ".['(")]
    return max(found, key=len, default=variable_of(path))


def content_of(nodes: Sequence[Node], paths: Sequence[str], modes: Sequence[int]) -> dict[str, str]:
    """Digests, by path, of what only rebuilt names reach: structure and constants."""
    return {
        path: xxhash.xxh3_64_hexdigest(msgspec.json.encode(_without_numbers(node)))
        for node, path, mode in zip(nodes, paths, modes, strict=True)
        if mode == REBUILT and node.form
    }


def _without_numbers(node: Node) -> tuple[object, ...]:
    """A node without the numbers of its children, which change when the program grows elsewhere."""
    items = [ref for ref in node.items if not isinstance(ref, int)]
    keys = [ref for ref in node.keys if not isinstance(ref, int)]
    fields = [(name, "" if isinstance(ref, int) else ref) for name, ref in node.fields]
    return node.form, node.type, node.text, len(node.items), items, keys, fields


@dataclass(frozen=True)
class Numbering:
    """Where the objects of a walk come to lie in a tree: what is saved first, then anchors.

    It depends on structure alone, and on nothing that is dead: that is walked last.
    """

    number: Mapping[int, int]
    """New numbers by old ones."""
    unmoved: frozenset[int]
    """Saved objects whose nodes stay as they are."""
    held: frozenset[int]
    """Rebuilt arrays that a saved object holds."""
    count: int
    """How many objects were walked."""


def number_objects(refs: Iterable[Ref], nodes: Sequence[Node], modes: Sequence[int]) -> Numbering:
    """Number what was walked from these roots, before any dead one."""
    held = _held(refs, nodes, modes)
    leading = _leading(nodes, modes)
    order = [i for i, mode in enumerate(modes) if mode == FULL]
    order += sorted(held)
    order += [i for i in sorted(leading - held) if modes[i] == REBUILT]
    # Mostly what is saved was walked first, and keeps its numbers.
    same = next((new for new, old in enumerate(order) if new != old), len(order))
    unmoved = [i for i in order[:same] if modes[i] == FULL and _refers_below(nodes[i], same)]
    number = {old: new for new, old in enumerate(order)}
    return Numbering(number, frozenset(unmoved), frozenset(held), len(nodes))


def with_anchors(tree: StateTree, modes: Sequence[int], known: Numbering) -> StateTree:
    """A walked tree with what is not saved cut down to anchors, behind all that is."""
    number = dict(known.number)
    for i in sorted(_dead_leading(tree.nodes, known)):
        number[i] = len(number)
    nodes = []
    for i in number:
        node = tree.nodes[i]
        if i in known.unmoved:
            nodes.append(node)
            continue
        if modes[i] != FULL:
            rebuilt = "held" if i in known.held else "rebuilt"
            node = _anchor(node, "dead" if modes[i] == DEAD else rebuilt)
        nodes.append(_renumbered(node, number))
    return StateTree(
        _roots(tree.roots, number),
        tuple(nodes),
        tuple([tree.paths[i] for i in number]),
        tuple((name, ref) for name, ref in _roots(tree.rebuilt, number) if isinstance(ref, int)),
        tuple((name, ref) for name, ref in _roots(tree.dead, number) if isinstance(ref, int)),
    )


def _held(refs: Iterable[Ref], nodes: Sequence[Node], modes: Sequence[int]) -> set[int]:
    """Rebuilt arrays that a saved object holds."""
    found = list(refs)
    for node, mode in zip(nodes, modes, strict=True):
        if mode == FULL:
            found += _children(node)
    return {ref for ref in found if isinstance(ref, int) and modes[ref] != FULL}


def _leading(nodes: Sequence[Node], modes: Sequence[int]) -> set[int]:
    """What is rebuilt and leads to what is saved, or to a rebuilt array."""
    rebuilt = [i for i, mode in enumerate(modes) if mode != FULL]
    ends = {i for i in rebuilt if modes[i] == REBUILT and nodes[i].array is not None}
    ends |= {i for i, mode in enumerate(modes) if mode == FULL} if rebuilt else set()
    return {i for i in _leading_to(ends, rebuilt, nodes) | ends if modes[i] != FULL}


def _dead_leading(nodes: Sequence[Node], known: Numbering) -> set[int]:
    """What is dead and leads to anything that has a number."""
    dead = range(known.count, len(nodes))
    return _leading_to(known.number.keys(), dead, nodes) if dead else set()


def _leading_to(ends: Set[int], among: Iterable[int], nodes: Sequence[Node]) -> set[int]:
    """Which of some objects lead to one of the ends."""
    parents: dict[int, list[int]] = {}
    todo = []
    for i in among:
        for ref in _children(nodes[i]):
            if isinstance(ref, int):
                parents.setdefault(ref, []).append(i)
                if ref in ends:
                    todo.append(i)
    found: set[int] = set()
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += parents.get(at, ())
    return found


def _refers_below(node: Node, end: int) -> bool:
    """Whether all objects that a node refers to have numbers below `end`."""
    for ref in node.items:
        if type(ref) is int and ref >= end:
            return False
    for ref in node.keys:
        if type(ref) is int and ref >= end:
            return False
    return all(type(ref) is not int or ref < end for _, ref in node.fields)


def _children(node: Node) -> list[Ref]:
    return [*node.items, *node.keys, *(ref for _, ref in node.fields)]


def _anchor(node: Node, kind: Any) -> Node:
    """A node without its constants, except those that are keys."""
    text = node.text if node.form == "deque" else ""
    return msgspec.structs.replace(
        node,
        items=tuple(ref if isinstance(ref, int) else LEFT_OUT for ref in node.items),
        text=text,
        anchor=kind,
    )


def _renumbered(node: Node, number: Mapping[int, int]) -> Node:
    """A node with the new numbers of its children."""

    def new(ref: Ref) -> Ref:
        return number.get(ref, LEFT_OUT) if isinstance(ref, int) else ref

    items, keys = tuple(map(new, node.items)), tuple(map(new, node.keys))
    fields = tuple((name, new(ref)) for name, ref in node.fields)
    if node.anchor:
        fields = tuple((name, ref) for name, ref in fields if isinstance(ref, int))
        if node.form == "dict":
            pairs = [pair for pair in zip(keys, items, strict=True) if isinstance(pair[1], int)]
            pairs = [pair for pair in pairs if pair[0] != LEFT_OUT]
            keys, items = tuple(k for k, _ in pairs), tuple(i for _, i in pairs)
        elif node.form not in _POSITIONAL:
            items = ()
    return msgspec.structs.replace(node, items=items, keys=keys, fields=fields)


def _roots(roots: tuple[tuple[str, Ref], ...], number: Mapping[int, int]) -> Any:
    return tuple(
        (name, number.get(ref, LEFT_OUT) if isinstance(ref, int) else ref) for name, ref in roots
    )
