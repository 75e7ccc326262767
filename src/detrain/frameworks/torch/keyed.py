"""What a loader's workers run: samples and batches whose draws are keyed.

An index goes to a worker as a `Task` that says what the draws are for: the seed of the epoch, the
number of the batch, and for each sample how often it came before. `KeyedDataset` loads and collates
it there. Without workers it does the same in the main process, and puts the program's own
generators back after each batch, so that loading does not disturb them.
"""

from __future__ import annotations

import functools
import operator
import threading
import warnings
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from torch.utils.data import Dataset, Subset, get_worker_info
from torch.utils.data._utils import worker as torch_worker

from detrain.frameworks.keyer import Keyer
from detrain.rng import Address

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "COLLATE", "STREAM", "KeyedDataset", "KeyedStart", "StandIn", "Task", "given_back",
    "sampler_address",
]  # fmt: skip

_SAMPLE, _PLACE, _BATCH, COLLATE, _SAMPLER, _START, STREAM = range(1, 8)
"""Streams: what is drawn for a sample, for the place of one that is no number, and so on."""

_WORD = (1 << 64) - 1


class Task(msgspec.Struct, frozen=True):
    """An index, or a batch of them, and what its draws are keyed by."""

    seed: int
    number: int
    first: int
    indices: Any
    repeats: list[int] | None


class Circumstances(msgspec.Struct, frozen=True):
    """Settings of the main process that decide bits; a worker that is not forked lacks them."""

    deterministic: bool
    warn_only: bool
    default_dtype: str

    @classmethod
    def now(cls) -> Circumstances:
        """Those of this process."""
        return cls(
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            str(torch.get_default_dtype()).removeprefix("torch."),
        )

    def apply(self) -> None:
        """Have them in this process too."""
        torch._C._set_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)
        torch.set_default_dtype(getattr(torch, self.default_dtype))


class StandIn:
    """What stands for a dataset and its `collate_fn`, here and in workers."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any]) -> None:
        self.dataset, self.collate = dataset, collate
        self._circumstances = Circumstances.now()
        self._keyer: Keyer | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_keyer": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._circumstances.apply()

    def __len__(self) -> int:
        return len(self.dataset)


class KeyedDataset(StandIn, Dataset[Any]):
    """A dataset and its `collate_fn`, as one thing that turns a `Task` into a batch."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], *, batched: bool) -> None:
        super().__init__(dataset, collate)
        self.batched = batched
        self._by_batch = batched and _loads_batches(dataset)

    def __getitem__(self, task: Task) -> Any:
        """The batch, collated."""
        keyer = self._keyer
        if get_worker_info() is not None:
            if keyer is None:
                keyer = self._new_keyer()
                keyer.begin()
            return self._load(keyer, task)
        if threading.current_thread() is not threading.main_thread():
            return self._load_plainly(task)
        keyer = keyer or self._new_keyer()
        keyer.begin()
        try:
            return self._load(keyer, task)
        finally:
            keyer.end()

    __getitems__ = __getitem__

    def _new_keyer(self) -> Keyer:
        self._keyer = Keyer({"dataset": self.dataset, "collate_fn": self.collate})
        return self._keyer

    def _load_plainly(self, task: Task) -> Any:
        """Without keys: meanwhile the main thread may draw from the same global generators."""
        warnings.warn(
            "a loader without workers is read by a thread: draws in it are not keyed, and mixed "
            "with those of the main thread. Use num_workers=1 or more",
            RuntimeWarning,
            stacklevel=2,
        )
        if self._by_batch:
            return self.collate(self.dataset.__getitems__(task.indices))
        if self.batched:
            return self.collate([self.dataset[index] for index in task.indices])
        return self.collate(self.dataset[task.indices])

    def _load(self, keyer: Keyer, task: Task) -> Any:
        seed, load = task.seed, functools.partial(operator.getitem, self.dataset)
        if self._by_batch:
            address = Address(seed, _BATCH, 0, task.number)
            data = keyer.do(address, self.dataset.__getitems__, task.indices)
        elif self.batched:
            addresses = [
                Address(seed, _SAMPLE, 0, index & _WORD)
                if type(index) is int and task.repeats is None
                else _sample_address(task, place, index)
                for place, index in enumerate(task.indices)
            ]
            data = keyer.do_each(addresses, load, task.indices)
        else:
            address = _sample_address(task, 0, task.indices)
            data = keyer.do(address, load, task.indices)
        keyer.at(Address(seed, COLLATE, 0, task.number))
        return self.collate(data)


def _sample_address(task: Task, place: int, index: Any) -> Address:
    """By the number of the sample; one that has none, by its place in the epoch."""
    if type(index) is not int:
        try:
            index = operator.index(index)
        except TypeError:
            return Address(task.seed, _PLACE, 0, task.first + place)
    repeat = task.repeats[place] if task.repeats is not None else 0
    return Address(task.seed, _SAMPLE, 0, index & _WORD, repeat)


def sampler_address(seed: int, number: int) -> Address:
    """For what a sampler of the program's own draws for a batch that is not the first."""
    return Address(seed, _SAMPLER, 0, number)


def _loads_batches(dataset: Any) -> bool:
    """Whether a dataset loads whole batches by a way of its own."""
    while type(dataset) is Subset:
        # Its way is that of what it is a part of, or one sample after the other.
        dataset = dataset.dataset
    return callable(getattr(dataset, "__getitems__", None))


def given_back(data: Any) -> Any:
    """A `collate_fn` for batches that are collated already."""
    return data


class KeyedStart:
    """The first thing that a worker does: the program's `worker_init_fn`, keyed.

    All workers draw the same in it. It sees the program's own dataset. If a stream is `whole`, each
    worker is told that it is the only one.
    """

    def __init__(
        self, start: Callable[[int], Any] | None, seed: int, *, whole: bool = False
    ) -> None:
        self.start, self.seed, self.whole = start, seed, whole

    def __call__(self, worker: int) -> None:
        info: Any = get_worker_info()
        wrapped = info.dataset
        told: dict[str, Any] = {"dataset": wrapped.dataset, "seed": self.seed}
        if self.whole:
            wrapped.worker, wrapped.workers = info.id, info.num_workers
            told |= {"id": 0, "num_workers": 1}
        torch_worker._worker_info = _info_with(info, told)
        if self.start is not None:
            keyer = Keyer({"dataset": wrapped.dataset, "worker_init_fn": self.start})
            keyer.begin()
            try:
                keyer.at(Address(self.seed, _START))
                self.start(0 if self.whole else worker)
            finally:
                keyer.end()


def _info_with(info: Any, told: dict[str, Any]) -> Any:
    """What a worker knows of itself, with some of it told otherwise."""
    fields = getattr(type(info), "__dataclass_fields__", None)
    names = fields if fields is not None else [n for n in vars(info) if not n.startswith("_")]
    return type(info)(**{**{name: getattr(info, name) for name in names}, **told})
