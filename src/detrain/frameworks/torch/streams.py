"""Iterable datasets: what is drawn for an element is keyed by its number in the stream.

Torch leaves it to a stream to be split among workers, so its elements depend on their number. A
stream is *whole* if they don't: each worker goes through all of it, told that it is the only one,
and gives the elements of every W-th batch, which is what torch asks it for. Those of the others are
left out before they are made if the stream is `indexed`, and otherwise made in vain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from torch.utils.data import IterableDataset, get_worker_info

from detrain.errors import ResumeMismatch
from detrain.frameworks import effects, indexed
from detrain.frameworks.keyer import Keyer
from detrain.frameworks.torch.keyed import COLLATE, STREAM, StandIn
from detrain.rng import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch.utils.data import DataLoader

__all__ = ["Judgement", "KeyedStream", "judge"]

_KEYED_INSIDE = -1
"""Work that says itself what its draws are for."""


class Judgement(msgspec.Struct, frozen=True):
    """Whether a stream is whole, whether it is indexed, and what the user is to know."""

    whole: bool
    indexed: bool
    notice: str = ""

    def agreeing_with(self, whole: bool, is_indexed: bool) -> Judgement:
        """What the attempt before judged, as an epoch can't be both."""
        if is_indexed and not self.indexed:
            raise ResumeMismatch(
                "an iterable dataset",
                "a stream whose elements can be indexed, as in the first attempt",
                "one whose elements can't",
                "Have the same dataset in every attempt",
            )
        return Judgement(whole, is_indexed, self.notice)


def judge(loader: DataLoader[Any], *, one_stream: bool) -> Judgement:
    """How the stream of a loader is shared among its workers; `one_stream` is the user's wish.

    By itself, DETrain makes whole what the program splits: each element comes once, as before. A
    stream that is not split comes once from each worker. That may be meant, so it stays.
    """
    dataset: Any = loader.dataset
    can_go_on = callable(getattr(dataset, "load_state_dict", None))
    reach = effects.reach(dataset)
    is_indexed = not can_go_on and indexed.maker(dataset, reach) is not None
    if one_stream or loader.num_workers <= 1:
        return Judgement(one_stream or is_indexed, is_indexed)
    kind = type(dataset)
    methods = [code for each in kind.__mro__ for code in reach.functions.get(each.__name__, ())]
    init = effects.reach(loader.worker_init_fn, "worker_init_fn").functions.get("", ())
    splits = reach.uses("get_worker_info", *methods, *init)
    if is_indexed and splits:
        return Judgement(True, True)
    name, count = kind.__qualname__, loader.num_workers
    how = (
        f"how {name} is split depends on num_workers, which is {count}"
        if splits
        else f"{name} does not ask which worker it is in: if it is not split in another way, each "
        f"of the {count} workers gives all of its elements"
    )
    return Judgement(
        False,
        False,
        f"DT204: {how}. With another num_workers its elements come in another order, with other "
        "random numbers. `detrain run --one-stream` gives what num_workers=0 gives, for any number",
    )


class KeyedStream(StandIn, IterableDataset[Any]):
    """An iterable dataset, and its `collate_fn`, whose draws are keyed.

    `start` are the elements and batches that were given before, `size` the elements of a batch.
    """

    def __init__(
        self,
        dataset: Any,
        collate: Callable[[Any], Any],
        seed: int,
        judgement: Judgement,
        size: int,
        start: tuple[int, int],
    ) -> None:
        super().__init__(dataset, collate)
        self.seed = seed
        self.whole, self.indexed, self.size = judgement.whole, judgement.indexed, size
        self.worker, self.workers = 0, 1
        self.given, self.collations = start
        self._first = self.collations if self.whole else 0

    def __iter__(self) -> Iterator[Any]:
        return self._wanted_elements() if self.indexed else self._own_elements()

    def _own_elements(self) -> Iterator[Any]:
        """Make all elements, and give those of this worker."""
        # An iterator may be one that is watched, which is slow; it gives the plain one.
        elements = iter(self._keyed(0, iter, self.dataset))
        while True:
            try:
                element = self._keyed(self.given + 1, next, elements)
            except StopIteration:
                return
            self.given += 1
            if self._is_own(self.given - 1):
                yield element

    def _wanted_elements(self) -> Iterator[Any]:
        """Make those of this worker alone; what is drawn before the first has the number 0."""
        make, number = indexed.maker(self.dataset, effects.reach(self.dataset)), 0
        if make is None:
            kind = type(self.dataset).__qualname__
            raise RuntimeError(f"{kind} is not the same in a worker as in the main process")
        elements = self._keyed(0, make, self._is_wanted)
        while True:
            try:
                element = self._keyed(number, next, elements)
            except StopIteration:
                return
            number = _KEYED_INSIDE
            yield element

    def _is_own(self, number: int) -> bool:
        """Whether an element, by its number in the stream, is given by this worker."""
        batch = number // self.size - self._first
        return not self.whole or (batch >= 0 and batch % self.workers == self.worker)

    def _is_wanted(self) -> bool:
        """Asked before each element is made: if it is to be, its numbers are drawn from now on."""
        self.given += 1
        if not self._is_own(self.given - 1):
            return False
        assert self._keyer is not None
        self._keyer.at(Address(self.seed, STREAM, 0, self.given, 1))
        return True

    def collated(self, data: Any) -> Any:
        """The program's `collate_fn`, keyed by the number of the batch; of its worker's batches."""
        self.collations += 1
        number = self.collations
        if self.whole:
            number += (number - self._first - 1) * (self.workers - 1) + self.worker
        return self._keyed(number, self.collate, data, stream=COLLATE)

    def _keyed(
        self, number: int, work: Callable[..., Any], *given: Any, stream: int = STREAM
    ) -> Any:
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        keyer = self._keyer
        if keyer is None:
            self._keyer = keyer = Keyer({"dataset": self.dataset, "collate_fn": self.collate})
            if info is not None:
                keyer.begin()
        if info is None:
            keyer.begin()
        try:
            if number != _KEYED_INSIDE:
                keyer.at(Address(self.seed, stream, worker, number, workers))
            return work(*given)
        finally:
            if info is None:
                keyer.end()
