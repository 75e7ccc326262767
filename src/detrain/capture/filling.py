"""Filling large arrays while restore goes on with the rest: that takes memory, not Python.

They are filled many at a time: a thread that comes back from each of them would have to wait
for the interpreter, which restore keeps busy.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from detrain.capture.told import checked
from detrain.frameworks.beside import Beside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detrain.frameworks.base import Filled, Framework

__all__ = ["Filling"]

_BATCH = 128 << 20
"""Bytes of arrays that are filled in one go."""


class Filling:
    """Arrays that are being filled. All methods are called by one thread."""

    def __init__(self) -> None:
        self._beside = Beside()
        self._batch: list[tuple[Framework, Filled, str]] = []
        self._waiting = 0
        """Bytes of the arrays in the batch."""

    def add(self, framework: Framework, filled: Filled, path: str) -> None:
        """Fill an array, sooner or later."""
        self._batch.append((framework, filled, path))
        self._waiting += len(filled.data)
        if self._waiting >= _BATCH:
            self.begin()

    def begin(self) -> None:
        """Fill what was added, from now on."""
        batch, self._batch, self._waiting = self._batch, [], 0
        for framework in {each.name: each for each, _, _ in batch}.values():
            own = [(filled, path) for each, filled, path in batch if each is framework]
            self._beside.add(partial(self._fill, framework, own))

    def finish(self) -> None:
        """All that was added is filled when this returns; the first error is raised."""
        self.begin()
        self._beside.finish()

    def stop(self) -> None:
        """Fill nothing more, and wait until nothing is being filled."""
        self._beside.stop()

    def _fill(self, framework: Framework, arrays: Iterable[tuple[Filled, str]]) -> None:
        try:
            framework.fill_all([filled for filled, _ in arrays])
        except Exception:  # which of them it was is told by filling them one by one
            for filled, path in arrays:
                checked(path, partial(framework.fill, *filled))
