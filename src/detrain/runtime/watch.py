"""What is watched while a checkpoint waits to be confirmed.

What a checkpoint leaves out it leaves out on an assumption: that no autograd graph reaches across
it, that gradients are cleared before they are used, that dead names are not read. The iteration
that follows shows whether that holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from detrain.runtime.audit import Audit, Read

if TYPE_CHECKING:
    from detrain.capture.walk import Walked
    from detrain.checkpoint.copying import Overlap

__all__ = ["Verdict", "Watch"]


@dataclass(frozen=True)
class Verdict:
    """What turned out. A checkpoint of which anything is said here is not published."""

    graphs: tuple[str, ...] = ()
    """Arrays whose autograd graph was used across the checkpoint, or may be yet."""
    gradients: str = ""
    """What was done with a gradient that was left out."""
    reads: tuple[Read, ...] = ()
    """Names that were left out and read."""
    changed: tuple[str, ...] = ()
    """Arrays that were changed while they were being copied."""


class Watch:
    """Watches from a head to the next one, or to where the loop is left."""

    def __init__(
        self,
        walked: Walked,
        audit: Audit | None,
        overlap: Overlap | None = None,
        *,
        may_stay: bool = False,
    ) -> None:
        """`may_stay` are gradients that nothing touches: these are cleared later."""
        self._used: list[str] = []
        self._audit, self._overlap = audit, overlap
        self._ends: list[tuple[str, Callable[[], bool]]] = []
        self._carried = walked.carried
        for leaf in walked.graphs:
            end = leaf.framework.watch_graph(leaf.array, partial(self._used.append, leaf.name))
            if end is not None:
                self._ends.append((leaf.name, end))
        arrays: dict[str, list[Any]] = {}
        frameworks = {}
        for leaf in walked.gradients:
            frameworks[leaf.framework.name] = leaf.framework
            arrays.setdefault(leaf.framework.name, []).append(leaf.array)
        self._gradients = [
            framework.watch_gradients(arrays[name], may_stay=may_stay)
            for name, framework in frameworks.items()
        ]
        if overlap is not None:
            overlap.begin()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that the iteration does can speak against the checkpoint any more, once
        all is copied.
        """
        compared = self._overlap is not None and self._overlap.is_compared
        return self._audit is None and not (self._ends or self._gradients or compared)

    def end(self) -> Verdict:
        """No longer watch; what was seen."""
        reads = self._audit.stop() if self._audit is not None else ()
        # One that is still there may be used in an iteration to come.
        still = [name for name, end in self._ends if end() and name in self._carried]
        used = tuple(dict.fromkeys([*self._used, *still]))
        gradients = [end() for end in self._gradients]
        changed = self._overlap.end() if self._overlap is not None else ()
        self._audit, self._ends, self._gradients, self._overlap = None, [], [], None
        return Verdict(used, next(filter(None, gradients), ""), reads, changed)
