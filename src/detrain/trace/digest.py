"""Digests of bytes and of state. Equal digests mean equal bits.

xxh3 for the bytes of arrays (it keeps up with memory), blake2b for texts.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import xxhash

if TYPE_CHECKING:
    from collections.abc import Mapping

    from detrain.state import Ref, StateTree

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
    *,
    floats: bool = True,
) -> str:
    """The digest of a state: its structure, its arrays' digests, its generators' positions.

    The order in which a set lists its elements is no part of its value. Without `floats`, Python's
    own floating-point numbers are left out: they are what clocks give.
    """
    nodes = [
        msgspec.structs.replace(node, items=tuple(sorted(node.items, key=_order)))
        if node.form in ("set", "frozenset")
        else node
        for node in tree.nodes
    ]
    roots = tree.roots
    if not floats:
        roots = tuple((name, _no_float(ref)) for name, ref in roots)
        nodes = [
            msgspec.structs.replace(
                node,
                items=tuple(map(_no_float, node.items)),
                keys=tuple(map(_no_float, node.keys)),
                fields=tuple((name, _no_float(ref)) for name, ref in node.fields),
            )
            for node in nodes
        ]
    return digest_text(_canonical.encode((roots, nodes, arrays, positions)))


def _no_float(ref: Ref) -> Ref:
    return ref if isinstance(ref, int) or ref[0] != "f" else ("f", "")


def _order(ref: Ref) -> tuple[str, str]:
    return ("", str(ref)) if isinstance(ref, int) else ref
