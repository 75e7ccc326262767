"""Data loaders that can go on in the middle of an epoch without loading what came before.

While DETrain is at work, iterating over a `DataLoader` gives a `LoaderIterator`: torch's own
iterator, with the sampler's batches counted on their way. To pass over batches, the sampler alone
is run again from where the generators stood when the iterator was made; no sample is loaded.

The order of samples is the one that the program has without DETrain. Draws made *inside* loader
workers are not under DETrain's control yet: with `num_workers > 0`, random augmentation in workers
is outside the promise of equal bits. With `num_workers=0` such draws come from the program's own
generators and are exact.
"""

from __future__ import annotations

import copy
import itertools
import json
import weakref
from array import array
from typing import TYPE_CHECKING, Any

import torch
import xxhash
from torch.utils.data import BatchSampler, DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.hooks import RemovableHandle

from detrain.errors import ResumeMismatch
from detrain.frameworks.find import Positions, positions_now, reposition
from detrain.frameworks.torch import generators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["STANDING", "LoaderIterator", "install", "uninstall", "workers"]

STANDING = (_BaseDataLoaderIter, RemovableHandle)

_plain_iter: Callable[[DataLoader[Any]], Iterator[Any]] = DataLoader.__iter__


def install() -> None:
    """Make `iter(loader)` give a `LoaderIterator`, in the whole process."""
    DataLoader.__iter__ = _begin  # type: ignore[method-assign, assignment]


def uninstall() -> None:
    """Make `iter(loader)` give torch's iterator again."""
    DataLoader.__iter__ = _plain_iter  # type: ignore[method-assign, assignment]


def _begin(loader: DataLoader[Any]) -> LoaderIterator:
    return LoaderIterator(loader)


class LoaderIterator:
    """Torch's iterator over a loader, and the way to be further on in it.

    Made where the program makes its iterator, so that draws happen where they always did.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.produced = 0
        self.by_index = not isinstance(loader.dataset, IterableDataset)
        self._made_at = positions_now()
        self._own_made_at = _own_states(loader)
        self._sampler: _CountedSampler | None = None
        self._inner = self._open(skip=0)
        _ITERATORS.add(self)

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        item = next(self._inner)
        self.produced += 1
        return item

    def __getattr__(self, name: str) -> Any:
        # Programs reach into torch's iterator (`_dataset`, `_num_workers`).
        return getattr(object.__getattribute__(self, "_inner"), name)

    def workers(self) -> set[int]:
        """The process numbers of its workers."""
        return {worker.pid for worker in getattr(self._inner, "_workers", ())}

    def owner(self) -> DataLoader[Any]:
        """The loader."""
        return self.loader

    def state(self) -> dict[str, Any]:
        """Where the iterator is, and where all generators stood when it was made and begun."""
        begun = self._sampler.begun_at if self._sampler is not None else None
        return {
            "produced": self.produced,
            "made_at": self._made_at,
            "begun_at": begun,
            "own": list(self._own_made_at),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Be where `state` says; the global generators are left where they stand."""
        if state == self.state():
            return
        stand = positions_now()
        made_at, begun_at = state["made_at"], state["begun_at"]
        self.produced, self._made_at, self._own_made_at = 0, made_at, list(state["own"])
        _set_own_states(self.loader, self._own_made_at)
        reposition(made_at)
        try:
            self._reopen(state["produced"])
            if self._sampler is not None and (begun_at is not None or state["produced"]):
                # Torch begins a sampler when the first batch is asked for, or with its workers.
                reposition(stand if begun_at is None else begun_at)
                self._sampler.begin()
        finally:
            reposition(stand)
        self.produced = state["produced"]

    def _reopen(self, skip: int) -> None:
        if self.loader.persistent_workers:
            self.loader._iterator = None
        self._inner = self._open(skip)
        if not self.by_index:
            for _ in range(skip):
                next(self._inner)

    def origin(self) -> str:
        """Where all generators stood when the iterator was made, and when it was begun."""
        return json.dumps({**self.state(), "produced": 0})

    def order(self) -> str:
        """A digest of the sample indices of the batches produced so far."""
        return "" if self._sampler is None else self._sampler.digest_at(self.produced)

    def generators(self) -> list[torch.Generator]:
        """Generators of the loader's own, which move with it."""
        return _generators(self.loader)

    def advance(self, count: int, origin: str) -> None:
        """Pass over batches; the global generators are left where they stand."""
        if not self.by_index:
            for _ in range(count):
                next(self)
        else:
            self.set_state({**json.loads(origin), "produced": self.produced + count})

    def _open(self, skip: int) -> Iterator[Any]:
        loader = self.loader
        if not self.by_index:
            return _plain_iter(loader)
        if loader.persistent_workers and loader._iterator is not None:
            # Workers of an earlier epoch go on with the sampler that they were begun with.
            self._sampler = _SAMPLERS[loader]
            return _plain_iter(loader)
        attribute = "sampler" if loader.batch_sampler is None else "batch_sampler"
        plain = getattr(loader, attribute)
        self._sampler = sampler = _CountedSampler(plain, skip)
        if loader.persistent_workers:
            _SAMPLERS[loader] = sampler
        # The loader forbids another sampler once it is made, for its users' sake: it gets its own
        # one back as soon as the iterator has taken hold of the counted one.
        object.__setattr__(loader, attribute, sampler)
        try:
            return _plain_iter(loader)
        finally:
            object.__setattr__(loader, attribute, plain)


class _Begun:
    """A sampler that is being iterated over already."""

    def __init__(self, indices: Iterator[Any]) -> None:
        self._indices = indices

    def __iter__(self) -> Iterator[Any]:
        return self._indices


class _CountedSampler:
    """A sampler that keeps a digest of what it gave, and passes over the first `skip` once."""

    def __init__(self, sampler: Any, skip: int) -> None:
        self._plain, self._skip = sampler, skip
        self._iterator: Iterator[Any] = iter(())
        self._running = xxhash.xxh3_64()
        self._digests = array("Q")
        self.begun_at: Positions | None = None

    def __len__(self) -> int:
        return len(self._plain)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_plain"), name)

    def __iter__(self) -> Iterator[Any]:
        # Torch begins a sampler once for each epoch and drops what is left of the one before.
        self._iterator = iter(self._plain)
        self._running = xxhash.xxh3_64()
        self._digests = array("Q", [0])
        self.begun_at = None
        return self._indices()

    def begin(self) -> None:
        """Do now what the first index would begin with: draw the order, pass over the skipped."""
        if self.begun_at is None:
            self.begun_at = positions_now()
            skip, self._skip = self._skip, 0
            passed = self._pass_over(skip) if type(self._plain) is BatchSampler else 0
            while passed < skip and self._take() is not _END:
                passed += 1
            if passed < skip:
                raise ResumeMismatch(
                    "the sampler of a data loader",
                    f"at least {skip} batches, as in the first attempt",
                    f"{passed}",
                    "Make the length of the sampler the same in every attempt",
                )

    def _pass_over(self, skip: int) -> int:
        """Pass over whole batches of torch's own batch sampler at once; gives how many.

        The samples are drawn as always, but not put into batches one by one.
        """
        size: int = self._plain.batch_size
        samples = iter(self._plain.sampler)
        indices = list(itertools.islice(samples, skip * size))
        passed = len(indices) // size
        try:
            # The digest of batches one after the other is that of their bytes together.
            self._running.update(array("q", indices[: passed * size]).tobytes())
        except (TypeError, OverflowError):
            for number in range(passed):
                self._running.update(_index_bytes(indices[number * size : (number + 1) * size]))
        self._digests.extend(itertools.repeat(0, passed))
        self._digests[-1] = self._running.intdigest() if passed else 0
        rest = copy.copy(self._plain)
        rest.sampler = _Begun(itertools.chain(indices[passed * size :], samples))
        self._iterator = iter(rest)
        return passed

    def digest_at(self, count: int) -> str:
        """The digest of the first `count` indices or batches."""
        return f"{self._digests[count]:016x}"

    def _indices(self) -> Iterator[Any]:
        self.begin()
        while (index := self._take()) is not _END:
            yield index

    def _take(self) -> Any:
        index = next(self._iterator, _END)
        if index is not _END:
            self._running.update(_index_bytes(index))
            self._digests.append(self._running.intdigest())
        return index


_END = object()

_ITERATORS: weakref.WeakSet[LoaderIterator] = weakref.WeakSet()


def workers() -> set[int]:
    """The process numbers of all workers of loaders."""
    return set().union(*(iterator.workers() for iterator in _ITERATORS))


_SAMPLERS: weakref.WeakKeyDictionary[DataLoader[Any], _CountedSampler] = weakref.WeakKeyDictionary()
"""The counted sampler that a loader's persistent workers were begun with."""


def _index_bytes(index: Any) -> bytes:
    try:
        return array("q", index).tobytes() if isinstance(index, list) else repr(index).encode()
    except (TypeError, OverflowError):
        return repr(index).encode()


def _generators(loader: DataLoader[Any]) -> list[torch.Generator]:
    found: list[torch.Generator] = []
    batches = loader.batch_sampler
    for owner in (loader, loader.sampler, batches, getattr(batches, "sampler", None)):
        generator = getattr(owner, "generator", None)
        if isinstance(generator, torch.Generator) and not any(generator is g for g in found):
            found.append(generator)
    return found


def _own_states(loader: DataLoader[Any]) -> list[str]:
    return [generators.state(generator).hex() for generator in _generators(loader)]


def _set_own_states(loader: DataLoader[Any], states: list[str]) -> None:
    for generator, state in zip(_generators(loader), states, strict=True):
        generators.set_state(generator, bytes.fromhex(state))
