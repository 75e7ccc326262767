"""Anchors: objects that are not saved, kept in a tree because the way to a saved one leads here.

An object that the loop reaches by one name may lie, in the rebuilt program, where only another name
leads to: `current` is one of `nets`, and nothing reads `nets` any more. So the structure below
names that are not saved is kept, without a constant and without the bytes of an array, as far as it
leads to a saved object. Of what the program makes again the arrays are kept too, as digests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

from detrain.state import LEFT_OUT, PLAIN, Node, Ref, StateTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "DEAD",
    "FULL",
    "REBUILT",
    "content_of",
    "is_addressed",
    "is_field",
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


def with_anchors(tree: StateTree, modes: Sequence[int]) -> StateTree:
    """A walked tree with what is not saved cut down to anchors, behind all that is."""
    held = _held(tree, modes)
    leading = _leading(tree, modes)
    order = [i for i, mode in enumerate(modes) if mode == FULL]
    order += sorted(held)
    order += [i for i in sorted(leading - held) if modes[i] == REBUILT]
    order += [i for i in sorted(leading) if modes[i] == DEAD]
    number = {old: new for new, old in enumerate(order)}
    # Mostly what is saved was walked first, and keeps its numbers.
    same = next((new for new, old in enumerate(order) if new != old), len(order))
    nodes = []
    for i in order:
        node = tree.nodes[i]
        if modes[i] == FULL and i < same and _refers_below(node, same):
            nodes.append(node)
            continue
        if modes[i] != FULL:
            node = _anchor(node, "dead" if modes[i] == DEAD else "held" if i in held else "rebuilt")
        nodes.append(_renumbered(node, number))
    return StateTree(
        _roots(tree.roots, number),
        tuple(nodes),
        tuple(tree.paths[i] for i in order),
        tuple((name, ref) for name, ref in _roots(tree.rebuilt, number) if isinstance(ref, int)),
        tuple((name, ref) for name, ref in _roots(tree.dead, number) if isinstance(ref, int)),
    )


def _held(tree: StateTree, modes: Sequence[int]) -> set[int]:
    """Rebuilt arrays that a saved object holds."""
    refs = [ref for _, ref in tree.roots]
    for node, mode in zip(tree.nodes, modes, strict=True):
        if mode == FULL:
            refs += _children(node)
    return {ref for ref in refs if isinstance(ref, int) and modes[ref] != FULL}


def _leading(tree: StateTree, modes: Sequence[int]) -> set[int]:
    """What is not saved and leads to what is, or to a rebuilt array."""
    parents: dict[int, list[int]] = {}
    todo = []
    for i, (node, mode) in enumerate(zip(tree.nodes, modes, strict=True)):
        if mode == FULL:
            continue
        if mode == REBUILT and node.array is not None:
            todo.append(i)
        for ref in _children(node):
            if isinstance(ref, int):
                parents.setdefault(ref, []).append(i)
                if modes[ref] == FULL:
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


def _renumbered(node: Node, number: dict[int, int]) -> Node:
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


def _roots(roots: tuple[tuple[str, Ref], ...], number: dict[int, int]) -> Any:
    return tuple(
        (name, number.get(ref, LEFT_OUT) if isinstance(ref, int) else ref) for name, ref in roots
    )
