"""The snapshot: a consistent copy, in memory, of the state at a cut.

Taken between two iterations, on the thread that runs the loop. Arrays that the program may change
at any time are copied at once; those that only an update changes, by a thread (`copying`), until
the program is about to change them. The bytes of a snapshot are those of the cut in either case.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from detrain.checkpoint.arranged import Laid, in_file_order
from detrain.checkpoint.buffers import address_of
from detrain.checkpoint.copying import Copying, Overlap, Pace
from detrain.frameworks.find import Positions, live_bytes, note_positions, positions_now
from detrain.trace.digest import digest_array, digest_state

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from detrain.checkpoint.arranged import Arranged
    from detrain.checkpoint.buffers import Arena
    from detrain.checkpoint.format import ArrayBytes
    from detrain.checkpoint.manifest import SavedState
    from detrain.frameworks.base import LiveLeaf, Still
    from detrain.state import Scalar, StateTree
    from detrain.trace.digest import Places

__all__ = ["Snapshot", "digest_leaves", "digest_snapshot", "take", "take_overlapped"]

_LITTLE = 1 << 20
"""Bytes: what is copied at once and is less than this is copied into new memory."""

_MUCH = 64 << 20
"""Bytes: what is copied at once and is more than this lies in the block of the cut, too."""


@dataclass(eq=False)
class Snapshot:
    """A tree, the bytes of its arrays, and where the global generators stood."""

    tree: StateTree
    laid: tuple[ArrayBytes, ...] | Callable[[], tuple[ArrayBytes, ...]]
    """Its arrays, or what gives them: who writes has time for that, the program has none."""
    stood: Positions | Callable[[], Positions]
    """Where the generators stood, or what gives that as text."""
    rebuilt: dict[str, str] = field(default_factory=dict)
    """Digests of arrays that are not in it, because the program makes them again."""
    gradients: bool = True
    """Whether gradients are in it."""
    left_out: int = 0
    """How many bytes of arrays are reachable and not in it."""
    overlap: Overlap | None = None
    """The copy that is still under way."""
    at_once: memoryview | None = None
    """Where those lie, the last ones, that were copied at the cut; None if that is all of them."""
    saved: SavedState | None = None
    """Where it is, once it is durable. Its arrays are no longer here then."""
    given_up: bool = False
    """Whether it is not to be written any more."""
    _give_back: Callable[[], None] | None = None

    @property
    def arrays(self) -> tuple[ArrayBytes, ...]:
        """Its arrays, in the order of the file."""
        if not isinstance(self.laid, tuple):
            self.laid = self.laid()
        return self.laid

    @property
    def positions(self) -> Positions:
        """Where the global generators stood, as text."""
        if not isinstance(self.stood, dict):
            self.stood = self.stood()
        return self.stood

    def wait_for(self, array: ArrayBytes) -> memoryview | bytes | bytearray:
        """The bytes of an array, as soon as they are copied; `Abandoned` if they won't be."""
        if self.overlap is not None:
            self.overlap.copying.wait_for(array.name)
        return array.data

    @property
    def left(self) -> frozenset[str]:
        """Arrays, the first ones, that are left to who writes them."""
        return self.overlap.copying.left if self.overlap is not None else frozenset()

    @property
    def under_way(self) -> Collection[str]:
        """Arrays that must be waited for."""
        return self.overlap.copying.index if self.overlap is not None else ()

    def is_copied(self, array: ArrayBytes) -> bool:
        """Whether the bytes of an array are there by now."""
        return self.overlap is None or self.overlap.copying.is_copied(array.name)

    def digest(self, array: ArrayBytes) -> str:
        """The digest of an array; `Abandoned` if it won't be copied."""
        if self.overlap is not None and array.name in self.overlap.copying.index:
            return self.overlap.copying.digest(array.name)
        return digest_array(array.data)

    def digests(self, known: Mapping[str, str]) -> dict[str, str]:
        """The digests of all arrays; those that are `known` are not taken again."""
        found, under_way = dict(known), self.under_way
        if self.overlap is not None:
            found |= self.overlap.copying.digests
        rest = [array for array in self.arrays if array.name not in found]
        found |= {x.name: digest_array(x.data) for x in rest if x.name not in under_way}
        return found | {x.name: self.digest(x) for x in rest if x.name in under_way}

    def give_up(self) -> None:
        """It is not needed any more; who writes it will notice."""
        self.given_up = True
        if self.overlap is not None:
            self.overlap.copying.cancel()

    def release(self) -> None:
        """Give its memory back: it is durable, or given up. On the thread that writes."""
        give_back, self._give_back, self.laid = self._give_back, None, ()
        self.at_once = None
        if give_back is not None:
            give_back()


def take(
    tree: StateTree,
    leaves: Iterable[LiveLeaf],
    rebuilt: dict[str, str] | None = None,
    *,
    gradients: bool = True,
    left_out: int = 0,
    arena: Arena | None = None,
) -> Snapshot:
    """Copy the arrays that a walk has just met, at once."""
    laid = Laid(in_file_order(leaves))
    memory, give_back = (
        (memoryview(bytearray(laid.nbytes)), None) if arena is None else arena.block(laid.nbytes)
    )
    _copy(laid.leaves, memory)
    arrays = laid.within(memory)
    made = Snapshot(tree, arrays, note_positions(), rebuilt or {}, gradients, left_out)
    if give_back is not None:
        # Most are replaced by the next one and never written.
        made._give_back = weakref.finalize(made, give_back)
    return made


def take_overlapped(
    tree: StateTree,
    arranged: Arranged,
    rebuilt: dict[str, str],
    *,
    gradients: bool,
    left_out: int,
    arena: Arena,
    still: Sequence[Still],
    thorough: bool,
    pace: Pace | None = None,
) -> Snapshot:
    """Copy at once what may change at any time, and prepare to copy what is `still` later.

    That begins with `Snapshot.overlap.begin`, before the program goes on. If it is to be
    `thorough`, what is copied later is compared once more when it is finished. What is left to who
    writes is left to it as long as `pace` allows.
    """
    row, late, early = arranged.row, arranged.late, arranged.early
    much, rest, base = row.nbytes, early.nbytes, 0
    if not row.arrays and rest <= _MUCH:
        return take(
            tree, early.leaves, rebuilt, gradients=gradients, left_out=left_out, arena=arena
        )
    turn = arena.turn(much + rest if rest > _MUCH else much)
    give_back = turn.done
    if rest <= _LITTLE:
        at_once = arranged.gathered()
    elif rest <= _MUCH:
        at_once, its = arena.block(rest)
        _copy(early.leaves, at_once)

        def give_back() -> None:
            its()
            turn.done()
    else:
        turn.wait()
        at_once, base = turn.memory[much:], much
        _copy(early.leaves, at_once)

    made = Snapshot(
        tree,
        lambda: (*late.within(turn.memory), *early.within(at_once, base)),
        note_positions(),
        rebuilt,
        gradients,
        left_out,
        at_once=at_once,
        _give_back=give_back,
    )
    made.overlap = Overlap(Copying(row, turn, pace), still, compare=row.arrays if thorough else ())
    return made


def _copy(leaves: Sequence[LiveLeaf], memory: memoryview) -> None:
    """Copy arrays into a memory, one after the other."""
    start = address_of(memory) if len(memory) else 0
    at = 0
    for leaf in leaves:
        address = leaf.framework.address(leaf.array) if leaf.nbytes else None
        if address is not None:
            ctypes.memmove(start + at, address, leaf.nbytes)
        elif leaf.nbytes:
            leaf.framework.copy_out(leaf.array, memory[at : at + leaf.nbytes])
        at += leaf.nbytes


def digest_snapshot(
    snapshot: Snapshot,
    left_out: Callable[[Scalar], bool] | None = None,
    places: Places | None = None,
) -> str:
    """The digest of the state that was copied, without constants and places that are left out."""
    digests = {array.name: digest_array(array.data) for array in snapshot.arrays}
    return digest_state(snapshot.tree.saved(), digests, snapshot.positions, left_out, places)


def digest_leaves(
    tree: StateTree,
    leaves: Iterable[LiveLeaf],
    left_out: Callable[[Scalar], bool] | None = None,
    places: Places | None = None,
) -> str:
    """What `digest_snapshot` of a snapshot taken here would give; copies only what it must."""
    digests = {
        leaf.name: digest_array(live_bytes(leaf.framework, leaf.array, leaf.nbytes))
        for leaf in leaves
    }
    return digest_state(tree.saved(), digests, positions_now(), left_out, places)
