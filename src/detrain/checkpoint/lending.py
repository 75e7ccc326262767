"""Which arrays of a state need not be written, because their bytes lie in a file already.

A file is kept as long as a kept checkpoint borrows from it. So that a large old file is not kept
for a few small arrays, one lends only if at least half of it is borrowed, or if the checkpoint
names it anyway. What is unchanged and would be written again for that reason gets a file of its
own: that one lends from then on. Pure functions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from detrain.checkpoint.manifest import Borrowed

__all__ = ["WORTH_A_FILE", "WORTH_BORROWING", "Parted", "part"]

WORTH_BORROWING = 1024
"""Bytes: to say where an array lies takes some, too."""

WORTH_A_FILE = 1 << 20
"""Bytes of unchanged arrays from which on they get a file of their own."""


@dataclass(frozen=True)
class Parted:
    """The arrays of a state: those that lie elsewhere, those for a file that lasts, all others."""

    borrowed: dict[str, Borrowed]
    lasting: frozenset[str]


def part(
    digests: Mapping[str, str],
    sizes: Mapping[str, int],
    lent: Mapping[str, Borrowed],
    named: Collection[str] = (),
) -> Parted:
    """Part the arrays whose digests are known before they are written.

    `lent` are arrays by digest, `named` the files that the checkpoint names in any case.
    """
    found = {
        name: lent[digest]
        for name, digest in digests.items()
        if digest in lent and sizes[name] >= WORTH_BORROWING
    }
    each_once = {digests[name]: name for name in found}
    used: Counter[str] = Counter()
    for name in each_once.values():
        used[found[name].file] += sizes[name]
    whole = {each.file: each.bytes for each in found.values()}
    lenders = {file for file in used if file in named or 2 * used[file] >= whole[file]}
    borrowed = {name: each for name, each in found.items() if each.file in lenders}
    left = found.keys() - borrowed.keys()
    lasts = sum(sizes[name] for name in left) >= WORTH_A_FILE
    return Parted(borrowed, frozenset(left) if lasts else frozenset())
