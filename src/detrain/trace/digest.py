"""Digests of bytes and of state. Equal digests mean equal bits.

xxh3 for the bytes of arrays (it keeps up with memory), blake2b for texts.
"""

from __future__ import annotations

import ctypes
import hashlib
from typing import TYPE_CHECKING, Protocol

import msgspec
import xxhash

from detrain.state import Node, decode_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from detrain.state import Ref, Scalar, StateTree

__all__ = [
    "Places",
    "digest_array",
    "digest_copy",
    "digest_pieces",
    "digest_positions",
    "digest_state",
    "digest_text",
]

_NEAR = 1000 << 10
"""Bytes that are still in the nearest caches when they are read again; libc copies more than a
megabyte in another, slower way."""

_canonical = msgspec.json.Encoder(order="deterministic")


class Places(Protocol):
    """Places of a program that are not compared."""

    def covers(self, path: str) -> bool:
        """Whether a path is such a place, or lies below one."""

    def reaches(self, path: str) -> bool:
        """Whether such a place lies below a path."""


def digest_array(data: memoryview | bytes | bytearray) -> str:
    """The digest of an array's bytes."""
    return xxhash.xxh3_128_hexdigest(data)


def digest_copy(running: xxhash.xxh3_128, into: memoryview, source: int) -> None:
    """Copy the bytes at an address, and add them to a digest while they are at hand."""
    start = ctypes.addressof(ctypes.c_char.from_buffer(into))
    for at in range(0, len(into), _NEAR):
        piece = into[at : at + _NEAR]
        ctypes.memmove(start + at, source + at, len(piece))
        running.update(piece)


def digest_pieces(pieces: Iterable[bytes]) -> str:
    """The digest of an array that comes in pieces."""
    running = xxhash.xxh3_128()
    for piece in pieces:
        running.update(piece)
    return running.hexdigest()


def digest_text(*parts: bytes) -> str:
    """The digest of a text, given in parts."""
    running = hashlib.blake2b(digest_size=16)
    for part in parts:
        running.update(part)
    return running.hexdigest()


def digest_positions(positions: Mapping[str, Mapping[str, str]]) -> str:
    """The digest of where all generators stand."""
    return digest_text(_canonical.encode(positions))


def digest_state(
    tree: StateTree,
    arrays: Mapping[str, str],
    positions: Mapping[str, Mapping[str, str]],
    left_out: Callable[[Scalar], bool] | None = None,
    places: Places | None = None,
) -> str:
    """The digest of a state: its structure, its arrays' digests, its generators' positions.

    The order in which a set lists its elements is no part of its value. `left_out` says which
    constants don't count, and which arrays, as ("array", name); nothing at `places` does.
    """
    if places is not None:
        tree = _without(tree, places)
        arrays = {name: digest for name, digest in arrays.items() if not places.covers(name)}
    nodes = [
        msgspec.structs.replace(node, items=tuple(sorted(node.items, key=_order)))
        if node.form in ("set", "frozenset")
        else node
        for node in tree.nodes
    ]
    roots = tree.roots
    if left_out is not None:

        def counted(ref: Ref) -> Ref:
            return (ref[0], "") if not isinstance(ref, int) and left_out(ref) else ref

        arrays = {n: d for n, d in arrays.items() if not left_out(("array", n))}
        roots = tuple((name, counted(ref)) for name, ref in roots)
        nodes = [
            msgspec.structs.replace(
                node,
                items=tuple(map(counted, node.items)),
                keys=tuple(map(counted, node.keys)),
                fields=tuple((name, counted(ref)) for name, ref in node.fields),
                text="" if node.form == "value" and left_out(("s", node.text)) else node.text,
            )
            for node in nodes
        ]
    return digest_text(_canonical.encode((roots, nodes, arrays, positions)))


def _without(tree: StateTree, places: Places) -> StateTree:
    """A tree without the constants at some places, and without the objects there."""
    nodes = []
    for node, path in zip(tree.nodes, tree.paths, strict=True):
        if places.covers(path):
            nodes.append(Node("left out"))
        elif places.reaches(path):
            nodes.append(_node_without(node, path, places))
        else:
            nodes.append(node)
    roots = tuple((name, _blank(ref, name, places)) for name, ref in tree.roots)
    return msgspec.structs.replace(tree, roots=roots, nodes=tuple(nodes))


def _node_without(node: Node, path: str, places: Places) -> Node:
    pairs = zip(node.items, _item_paths(node, path), strict=True)
    items = tuple(_blank(ref, where, places) for ref, where in pairs)
    fields = tuple((name, _blank(ref, f"{path}.{name}", places)) for name, ref in node.fields)
    text = "" if node.form == "list" and places.covers(f"{path}[0]") else node.text
    return msgspec.structs.replace(node, items=items, fields=fields, text=text)


def _item_paths(node: Node, path: str) -> Iterator[str]:
    for number in range(len(node.items)):
        key = node.keys[number] if node.keys else None
        if isinstance(key, tuple):
            yield f"{path}[{decode_scalar(key)!r}]"
        else:
            yield f"{path}[{number}]"


def _blank(ref: Ref, path: str, places: Places) -> Ref:
    return (ref[0], "") if not isinstance(ref, int) and places.covers(path) else ref


def _order(ref: Ref) -> tuple[str, str]:
    return ("", str(ref)) if isinstance(ref, int) else ref
