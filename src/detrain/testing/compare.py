"""The first place in which two states differ."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from detrain.checkpoint.manifest import SavedState
from detrain.state import Node, Ref

__all__ = ["Difference", "first_difference"]


@dataclass(frozen=True)
class Difference:
    """A place, and what it is on each side."""

    path: str
    expected: str
    found: str


def first_difference(expected: SavedState, found: SavedState) -> Difference | None:
    """The first place that differs, from the roots down; Python's floats are left out.

    Texts that differ only in their digits, as names with the time in them do, come last.
    """
    return _first(expected, found, _without_digits) or _first(expected, found, str)


def _first(
    expected: SavedState, found: SavedState, read: Callable[[str], str]
) -> Difference | None:
    positions = expected.positions, found.positions
    for name in sorted(positions[0].keys() | positions[1].keys()):
        if positions[0].get(name) != positions[1].get(name):
            return Difference(f"the random generator of {name}", "at one position", "at another")
    left, right = dict(expected.tree.roots), dict(found.tree.roots)
    for name in [*left, *(name for name in right if name not in left)]:
        if read(_text(left.get(name))) != read(_text(right.get(name))):
            return Difference(name, _text(left.get(name)), _text(right.get(name)))
    nodes = dict(zip(found.tree.paths, found.tree.nodes, strict=True))
    for path, node in zip(expected.tree.paths, expected.tree.nodes, strict=True):
        if node.anchor:
            continue  # it is not saved
        other = nodes.get(path)
        if other is None:
            return Difference(path, node.type or node.form, "nothing")
        difference = _in_node(path, node, other, read)
        if difference is not None:
            return difference
        if node.array is not None and other.array is not None and not other.anchor:
            digests = expected.digests[node.array.leaf], found.digests[other.array.leaf]
            if digests[0] != digests[1]:
                return Difference(path, f"content {digests[0]}", f"content {digests[1]}")
    return None


def _in_node(path: str, node: Node, other: Node, read: Callable[[str], str]) -> Difference | None:
    if (node.form, node.type) != (other.form, other.type) or read(node.text) != read(other.text):
        return Difference(path, *(f"{each.type} {each.text[:80]}" for each in (node, other)))
    if len(node.items) != len(other.items):
        return Difference(path, f"{len(node.items)} items", f"{len(other.items)} items")
    pairs = [
        (f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(node.items, other.items, strict=True))
    ]
    fields = dict(other.fields)
    pairs += [
        (f"{path}.{name}", ref, fields.get(name, ("", "nothing"))) for name, ref in node.fields
    ]
    for where, a, b in pairs:
        if read(_text(a)) != read(_text(b)):
            return Difference(where, _text(a), _text(b))
    return None


def _without_digits(text: str) -> str:
    return text if text.isdigit() else re.sub("[0-9]", "", text)


def _text(ref: Ref | None) -> str:
    if ref is None:
        return "nothing"
    if isinstance(ref, int):
        return "an object"
    return "a float" if ref[0] == "f" else ref[1] or "None"
