"""Random numbers for one's own parallel code, with and without a run of DETrain.

    def work(task):
        rng = detrain.key("simulate", 7, task).numpy()   # the same in any process, thread, order

`key` gives generators; `keyed` makes a dataset draw by sample. Neither knows of a run: the words
that are given are all that counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detrain.frameworks import find
from detrain.frameworks.following import following
from detrain.frameworks.keyer import Keyer
from detrain.rng import Address, Permutation, address_of

if TYPE_CHECKING:
    import random
    from contextlib import AbstractContextManager

    from detrain.frameworks.base import Framework

__all__ = ["Key", "Keyed", "key", "keyed"]


class Key:
    """What random numbers are for. Equal words give equal numbers, in every process."""

    def __init__(self, *words: int | str | bytes) -> None:
        self.words = words
        self._address = address_of(*words)

    def key(self, *words: int | str | bytes) -> Key:
        """A key for a part of what this one is for."""
        return Key(*self.words, *words)

    def torch(self) -> Any:
        """A new `torch.Generator` at the key's first number."""
        return self._generator(find.by_name("torch"))

    def numpy(self) -> Any:
        """A new `numpy.random.Generator` at the key's first number."""
        return self._generator(find.by_name("numpy"))

    def python(self) -> random.Random:
        """A new `random.Random` at the key's first number."""
        generator: random.Random = self._generator(find.by_name("python"))
        return generator

    def permutation(self, length: int) -> Permutation:
        """The numbers below `length` in an order of the key's own, without a list of them."""
        return Permutation(length, self._address)

    def following(self) -> AbstractContextManager[None]:
        """Have the global generators of this process give the key's numbers, within a `with`."""
        return following(self._address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"Key({', '.join(map(repr, self.words))})"

    def _generator(self, framework: Framework) -> Any:
        # Each kind has numbers of its own: a program may draw from two of one key.
        return framework.generator_at(address_of(*self.words, framework.name))


def key(*words: int | str | bytes) -> Key:
    """The key that whole numbers and texts stand for; a seed is one of them, if there is one."""
    return Key(*words)


class Keyed:
    """A dataset whose samples draw by seed, epoch and index, whoever loads them, and when.

    That holds for torch, numpy, `random` and the generators that the dataset holds. `set_epoch` is
    to be called before each epoch, as that of a `DistributedSampler`; workers that outlive an epoch
    do not hear of it.
    """

    def __init__(self, dataset: Any, seed: int) -> None:
        self.dataset, self.seed, self.epoch = dataset, seed, 0
        self._keyer: Keyer | None = None

    def set_epoch(self, epoch: int) -> None:
        """Draw other numbers than in other epochs."""
        self.epoch = epoch

    def __getitem__(self, index: Any) -> Any:
        if self._keyer is None:
            self._keyer = Keyer({"dataset": self.dataset})
        self._keyer.begin()
        try:
            return self._keyer.do(self._address(index), self.dataset.__getitem__, index)
        finally:
            self._keyer.end()

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "dataset" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_keyer": None}

    def _address(self, index: Any) -> Address:
        word = index if isinstance(index, str | bytes) else int(index)
        return address_of("keyed", self.seed, self.epoch, word)


def keyed(dataset: Any, *, seed: int) -> Keyed:
    """Make the samples of a dataset draw by seed, epoch and index."""
    return Keyed(dataset, seed)
