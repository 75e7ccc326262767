"""The answers of what has no loaders, no graphs and no arrays in parts: numpy and Python itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from detrain.frameworks.base import Filled, Glance, LiveLeaf, Mapped, Still
    from detrain.rng import Fill
    from detrain.state import ArrayFacts

__all__ = ["Bare"]


class Bare:
    """Half an adapter: it says no to every question of `base.Framework` that can be denied."""

    transparent: frozenset[str] = frozenset()

    @property
    def fast_words(self) -> Fill | None:
        """None faster than Python's."""
        return None

    @property
    def gradient(self) -> str:
        """There are no gradients."""
        return ""

    def prepare(self) -> None:
        """There are no algorithms to choose from."""

    def have_one_stream(self) -> None:
        """There are no streams."""

    def release(self) -> None:
        """Nothing to undo."""

    def pin(self, fingerprint: Mapping[str, str]) -> None:
        """Nothing can be set."""

    def decompose(self, obj: Any) -> dict[str, Any] | None:
        """There are no arrays in parts."""
        return None

    def compose(self, parts: Mapping[str, Any], live: Any | None) -> Any:
        """There are no arrays in parts."""
        raise TypeError("no such arrays")

    def writers(self) -> list[tuple[Any, str]]:
        """Files are opened as Python opens them."""
        return []

    def workers(self) -> set[int]:
        """Nothing loads data."""
        return set()

    def is_standing(self, obj: Any) -> bool:
        """No object of its own is a part of the process."""
        return False

    def iterator_state(self, obj: Any) -> tuple[Any, dict[str, Any]] | None:
        """There are no loaders."""
        return None

    def set_iterator_state(self, obj: Any, state: Mapping[str, Any]) -> None:
        """There are no loaders."""
        raise TypeError(type(obj))

    def new_iterator(self, owner: Any, state: Mapping[str, Any]) -> Any:
        """There are no loaders."""
        raise TypeError(type(owner))

    def watch_graph(self, obj: Any, used: Callable[[], None]) -> Callable[[], bool] | None:
        """There are no graphs."""
        return None

    def watch_gradients(self, arrays: Iterable[Any], *, may_stay: bool) -> Callable[[], str]:
        """There are no gradients."""
        return lambda: ""

    def still(self, leaves: Iterable[LiveLeaf], objects: Sequence[Any]) -> Still | None:
        """An array may be changed at any time, and nobody is told."""
        return None

    def computes(self, obj: Any) -> bool:
        """Nothing of its own needs to be named by a checkpoint."""
        return False

    def glance(self, arrays: Sequence[Any]) -> Glance | None:
        """There is no quicker way."""
        return None

    def fill(self, obj: Any, facts: ArrayFacts, data: memoryview) -> None:
        """There are no arrays."""
        raise TypeError(type(obj))

    def fill_all(self, arrays: Sequence[Filled]) -> None:
        """One after the other."""
        for each in arrays:
            self.fill(*each)

    def new_with(self, kind: type[Any], facts: ArrayFacts, data: memoryview) -> Any | None:
        """Arrays are created, then filled."""
        return None

    def lodge(self, kind: type[Any], facts: ArrayFacts, mapped: Mapped) -> Any | None:
        """All arrays have memory of their own."""
        return None

    def move_in(self, objects: Iterable[Any]) -> list[Callable[[], None]]:
        """Nothing is lodged."""
        return []

    def settle(self) -> None:
        """Nothing moves."""

    def set_field(self, obj: Any, name: str, value: Any) -> None:
        """Arrays have no fields."""
        raise AttributeError(name)
