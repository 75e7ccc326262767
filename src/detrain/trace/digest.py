"""Digests of bytes and of state. Equal digests mean equal bits.

xxh3 for the bytes of arrays (it keeps up with memory), blake2b for texts.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import xxhash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.state import Ref, Scalar, StateTree

__all__ = ["digest_array", "digest_positions", "digest_state", "digest_text"]

_canonical = msgspec.json.Encoder(order="deterministic")


def digest_array(data: memoryview | bytes | bytearray) -> str:
    """The digest of an array's bytes."""
    return xxhash.xxh3_128_hexdigest(data)


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
) -> str:
    """The digest of a state: its structure, its arrays' digests, its generators' positions.

    The order in which a set lists its elements is no part of its value. `left_out` says which
    constants don't count, and which arrays, as ("array", name).
    """
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


def _order(ref: Ref) -> tuple[str, str]:
    return ("", str(ref)) if isinstance(ref, int) else ref
