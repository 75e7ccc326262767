"""Whether gradients of an iteration before can matter: not if each optimizer clears its own first.

A program may have many optimizers and clear the gradients of one at a time. Those of the others
stay, and are cleared in their turn. So for each step of an optimizer it is asked whether the same
optimizer has cleared its gradients since the cut: whichever optimizer that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from detrain.analysis.cells import Cells
from detrain.analysis.derive import Cut
from detrain.analysis.emit import GRADIENTS, OWN
from detrain.analysis.lowered import Lowered
from detrain.analysis.program import Branch, Loop, Op, Place, blocks_of, read_by, walk_ops

__all__ = ["Use", "each_clears_its_own", "uses_of_gradients"]


Use = tuple[str, tuple[Op, ...], Op]
"""An op that uses gradients, with the function that it stands in and its body."""


def uses_of_gradients(cells: Cells) -> list[Use]:
    """All that uses gradients, but to add to them or to clear them."""
    return [
        (scope, block, op)
        for scope, block in cells.scopes
        for op in walk_ops(block)
        if any(place[0] == GRADIENTS[0] for place in read_by(op))
    ]


def each_clears_its_own(cells: Cells, lowered: Lowered, uses: list[Use], cut: Cut) -> bool:
    """Whether each use of gradients after a cut is a step of an optimizer that has cleared its own
    since.
    """
    last = dict(cut.chain)
    for scope, block, op in uses:
        place = lowered.steps.get(op.site)
        if place is None or not _is_cleared(cells, lowered, scope, block, op, place, last):
            return False
    return True


def _is_cleared(
    cells: Cells,
    lowered: Lowered,
    scope: str,
    block: tuple[Op, ...],
    step: Op,
    place: Place,
    last: dict[str, Op],
) -> bool:
    """Whether a step is always after the clearing of the same place, with nothing in between that
    could make it another optimizer, or that leads to the cut.
    """
    bound, passed = cells.cells(scope, place)
    settings = (("object", str(site), OWN) for site in cells.sites(scope, place))
    kept = bound | passed | cells.set(settings)
    for op in _backwards(cells, block, step):
        if lowered.clears.get(op.site) == place:
            return True
        for each in walk_ops((op,)):
            is_block = isinstance(each, Branch | Loop)
            if each is last.get(scope):
                return False
            if each is step or is_block:
                continue
            if not cells.effects(scope, each).writes.isdisjoint(kept):
                return False
    return False


def _backwards(cells: Cells, block: tuple[Op, ...], target: Op) -> Iterator[Op]:
    """The ops before one in its block, nearest first, then what contains it, and those before
    that, and so on: what is not inside one of them has run whenever the target does.
    """
    for number, op in enumerate(block):
        is_target = op is target
        if not is_target and not cells.contains(op, target):
            continue
        if not is_target:
            for inner in blocks_of(op):
                if any(each is target or cells.contains(each, target) for each in inner):
                    yield from _backwards(cells, inner, target)
            yield op
        yield from reversed(block[:number])
        return
