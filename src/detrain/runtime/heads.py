"""The head of a loop at which one checkpoint after the other is taken.

What was found at the one before stands as long as it is true: the walk, which arrays are still, how
they are arranged. What it all costs is looking whether it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detrain.capture.again import Again
from detrain.checkpoint.arranged import Arranged, arrange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.capture.walk import Aside, Walked
    from detrain.frameworks.base import LiveLeaf, Still
    from detrain.runtime.level import Habits

__all__ = ["Head"]


class Head:
    """One loop's head, by the path of the loop. On the thread of the loop only."""

    def __init__(self, path: tuple[str, ...], owns: Callable[[str], bool]) -> None:
        self.path = path
        self._again = Again(owns)
        self._leaves: tuple[LiveLeaf, ...] = ()
        self._still: list[Still] = []
        self._hasty: frozenset[str] | None = None
        self._changing: frozenset[str] | None = None
        self._arranged: Arranged | None = None

    def walk(self, roots: Mapping[str, Any], aside: Aside) -> Walked:
        """What there is now."""
        return self._again.walk(roots, aside)

    def arrange(
        self, walked: Walked, habits: Habits, changing: frozenset[str]
    ) -> tuple[Arranged, list[Still]]:
        """How the arrays of a walk are copied, and what keeps those still that are copied late.

        Those that are known to be `changing` will be written.
        """
        hasty = frozenset(habits.in_haste)
        stands = walked.firm is self._leaves and hasty == self._hasty
        if not stands or not all(still.prepare() for still in self._still):
            self._find_still(walked, habits)
            self._leaves, self._hasty, self._arranged = walked.firm, hasty, None
        if self._arranged is None or changing is not self._changing:
            addresses = {name: at for each in self._still for name, at in each.addresses.items()}
            self._arranged, self._changing = arrange(walked.firm, addresses, changing), changing
        return self._arranged.with_others(walked.loose), self._still

    def _find_still(self, walked: Walked, habits: Habits) -> None:
        """Which arrays are copied while the program goes on, by framework."""
        self._still = []
        if habits.torn > 1:
            return
        leaves = [leaf for leaf in walked.firm if leaf.name not in habits.hasty]
        frameworks = {leaf.framework.name: leaf.framework for leaf in leaves}
        for name, framework in frameworks.items():
            own = [leaf for leaf in leaves if leaf.framework.name == name]
            still = framework.still(own, walked.alive)
            if still is not None and still.prepare():
                self._still.append(still)
