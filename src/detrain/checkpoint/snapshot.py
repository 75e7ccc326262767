"""The snapshot: a consistent copy, in memory, of the state at a cut.

Taken between two iterations, on the thread that runs the loop; after that the program may change
its arrays at will.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from detrain.checkpoint.format import ArrayBytes
from detrain.frameworks.find import Positions, positions_now
from detrain.trace.digest import digest_array, digest_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from detrain.frameworks.base import LiveLeaf
    from detrain.state import Scalar, StateTree
    from detrain.trace.digest import Places

__all__ = ["Snapshot", "digest_snapshot", "take"]


@dataclass(frozen=True)
class Snapshot:
    """A tree, the bytes of its arrays, and where the global generators stood."""

    tree: StateTree
    arrays: tuple[ArrayBytes, ...]
    positions: Positions
    rebuilt: dict[str, str] = field(default_factory=dict)
    """Digests of arrays that are not in it, because the program makes them again."""
    gradients: bool = True
    """Whether gradients are in it."""
    left_out: int = 0
    """How many bytes of arrays are reachable and not in it."""


def take(
    tree: StateTree,
    leaves: Iterable[LiveLeaf],
    rebuilt: dict[str, str] | None = None,
    *,
    gradients: bool = True,
    left_out: int = 0,
) -> Snapshot:
    """Copy the arrays that a walk has just met."""
    arrays = []
    for leaf in leaves:
        buffer = bytearray(leaf.nbytes)
        if leaf.nbytes:
            leaf.framework.copy_out(leaf.array, memoryview(buffer))
        arrays.append(ArrayBytes(leaf.name, leaf.dtype, leaf.shape, buffer))
    return Snapshot(tree, tuple(arrays), positions_now(), rebuilt or {}, gradients, left_out)


def digest_snapshot(
    snapshot: Snapshot,
    left_out: Callable[[Scalar], bool] | None = None,
    places: Places | None = None,
) -> str:
    """The digest of the state that was copied, without constants and places that are left out."""
    digests = {array.name: digest_array(array.data) for array in snapshot.arrays}
    return digest_state(snapshot.tree.saved(), digests, snapshot.positions, left_out, places)
