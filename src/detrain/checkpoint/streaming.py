"""Snapshots that are not copied: the program stands still until they are written.

For states that are larger than what a copy may take (`--snapshot-memory`). Arrays are written from
where they lie; those that lie in no order, or on another device, are copied one at a time, into
memory that is given back before the next. What is written is the state of the cut, because nothing
runs meanwhile: whoever takes such a snapshot waits until it is durable before the program goes on.
"""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.snapshot import Snapshot
from detrain.errors import UsageError
from detrain.frameworks.find import memory_at, positions_now
from detrain.trace.digest import digest_array

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from detrain.frameworks.base import LiveLeaf
    from detrain.state import StateTree

__all__ = ["LiveSnapshot", "parse_memory", "take_live"]

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def parse_memory(text: str) -> int | None:
    """Read `64MB`, `2GB`, `10%` (of this machine's memory) or `full`, which is None."""
    if text == "full":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]B|%|)", text)
    if found is None or (found[2] == "%" and float(found[1]) > 100):
        raise UsageError(
            "snapshot-memory: expected a size (64MB, 2GB), a share of this machine's memory (10%) "
            f"or full, found {text!r}"
        )
    if found[2] == "%":
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return int(whole * float(found[1]) / 100)
    return int(float(found[1]) * _UNITS[found[2]])


@dataclass(eq=False)
class LiveSnapshot(Snapshot):
    """A snapshot whose arrays are those of the program. Write it, then let the program go on."""

    scattered: dict[str, tuple[LiveLeaf, mmap.mmap]] = field(default_factory=dict)
    """Arrays that must be copied to be written, and where to."""

    def wait_for(self, array: ArrayBytes) -> memoryview | bytes | bytearray:
        """The bytes of an array. Those of another one that was copied are gone then."""
        if array.name in self.scattered:
            for _, memory in self.scattered.values():
                memory.madvise(mmap.MADV_DONTNEED)
            leaf, _ = self.scattered[array.name]
            leaf.framework.copy_out(leaf.array, memoryview(array.data))
        return array.data

    @property
    def under_way(self) -> Collection[str]:
        """Arrays that must be copied to be written."""
        return self.scattered

    def is_copied(self, array: ArrayBytes) -> bool:
        """Not before it is waited for: so one array is written before the next is copied."""
        return array.name not in self.scattered

    def digest(self, array: ArrayBytes) -> str:
        """The digest of an array."""
        return digest_array(self.wait_for(array))

    def release(self) -> None:
        """It is durable or given up: nothing of the program is looked at any more."""
        self.scattered = {}
        super().release()


def take_live(
    tree: StateTree,
    leaves: Iterable[LiveLeaf],
    rebuilt: dict[str, str] | None = None,
    *,
    gradients: bool = True,
    left_out: int = 0,
) -> LiveSnapshot:
    """The arrays that a walk has just met, where they lie."""
    arrays, scattered = [], {}
    for leaf in leaves:
        address = leaf.framework.address(leaf.array) if leaf.nbytes else None
        if address is not None:
            data = memory_at(address, leaf.nbytes)
        elif leaf.nbytes:
            memory = mmap.mmap(-1, leaf.nbytes)  # takes room only while there is something in it
            data = memoryview(memory)
            scattered[leaf.name] = leaf, memory
        else:
            data = memoryview(b"")
        arrays.append(ArrayBytes(leaf.name, leaf.dtype, leaf.shape, data))
    positions = positions_now()
    return LiveSnapshot(
        tree, tuple(arrays), positions, rebuilt or {}, gradients, left_out, scattered=scattered
    )
