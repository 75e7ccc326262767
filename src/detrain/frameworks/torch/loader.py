"""Data loaders whose bits depend on the program alone, and that can go on in mid-epoch.

While DETrain is at work, iterating over a `DataLoader` gives a `LoaderIterator`. All settings give
what `num_workers=0` gives: the sampler draws from the program's stream where it does there, one
seed is drawn from it for each epoch, and all that is drawn for a sample or a batch is keyed by that
seed and the sample (`keyed`). To pass over batches, the sampler alone is run again from where the
generators stood (`indices`); no sample is loaded.
"""

from __future__ import annotations

import json
import warnings
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset, IterDataPipe, MapDataPipe
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.hooks import RemovableHandle

from detrain.frameworks import held
from detrain.frameworks.find import positions_now, reposition
from detrain.frameworks.torch.indices import Indices
from detrain.frameworks.torch.keyed import KeyedDataset, KeyedStart, given_back
from detrain.frameworks.torch.streams import Judgement, KeyedStream, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["STANDING", "LoaderIterator", "install", "uninstall", "workers"]

_KEPT = 8
"""Of how many batches a stream's place is kept: a checkpoint is published a little later."""

STANDING = (_BaseDataLoaderIter, RemovableHandle)

_plain_iter: Callable[[DataLoader[Any]], Iterator[Any]] = DataLoader.__iter__


def install(*, one_stream: bool = False) -> None:
    """Make `iter(loader)` give a `LoaderIterator`, in the whole process."""

    def begin(loader: DataLoader[Any]) -> LoaderIterator:
        return LoaderIterator(loader, one_stream=one_stream)

    DataLoader.__iter__ = begin  # type: ignore[method-assign, assignment]


def uninstall() -> None:
    """Make `iter(loader)` give torch's iterator again."""
    DataLoader.__iter__ = _plain_iter  # type: ignore[method-assign, assignment]


class LoaderIterator:
    """Torch's iterator over a loader, and the way to be further on in it.

    Torch's is made when the first batch is asked for: with workers, it asks the sampler at once.
    With `one_stream`, a stream gives what it gives without workers, however many there are.
    """

    def __init__(self, loader: DataLoader[Any], *, one_stream: bool = False) -> None:
        self.loader = loader
        self.produced = 0
        self.by_index = not isinstance(loader.dataset, IterableDataset)
        self._own = _held_by(loader)
        self._made_at = positions_now()
        self._own_made_at = [held.text_of(each) for each in self._own]
        self._inner: Iterator[Any] | None = None
        self._indices: Indices | None = None
        self._stream: KeyedStream | None = None
        self._saved: dict[int, str] = {}
        pipe = isinstance(loader.dataset, IterDataPipe)
        self._judgement = (
            Judgement(whole=False, indexed=False)
            if self.by_index or pipe
            else judge(loader, one_stream=one_stream)
        )
        self._make()
        _ITERATORS.add(self)

    def _make(self) -> None:
        """Do what is done when the program makes an iterator: start the sampler, draw a seed."""
        self._inner, self._stream, self._start = None, None, (0, 0)
        if self.by_index:
            sampler, batched = self.loader._index_sampler, self.loader._auto_collation
            ahead = self.loader.num_workers > 0
            self._indices = Indices(sampler, self._own, batched=batched, ahead=ahead)
            self._indices.start()
        generator = self._generator()
        self._before_seed = generator.get_state()
        seed = torch.empty((), dtype=torch.int64).random_(generator=generator).item()
        self._seed = int(seed)
        if self._indices is not None:
            self._indices.seed = self._seed

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        inner = self._inner if self._inner is not None else self._open()
        try:
            item = next(inner)
        except StopIteration:
            if self._indices is not None:
                self._indices.finish()
            raise
        self.produced += 1
        if self._indices is not None:
            self._indices.delivered(self.produced)
        else:
            self._note_stream()
        return item

    def __getattr__(self, name: str) -> Any:
        # Programs reach into torch's iterator (`_dataset`, `_num_workers`).
        if name == "_dataset":
            return self.loader.dataset
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(name)
        plain = name.removeprefix("_")
        if self._inner is None and plain in vars(self.loader):
            return getattr(self.loader, plain)
        return getattr(self._inner if self._inner is not None else self._open(), name)

    def workers(self) -> set[int]:
        """The process numbers of its workers."""
        return {worker.pid for worker in getattr(self._inner, "_workers", ())}

    def owner(self) -> DataLoader[Any]:
        """The loader."""
        return self.loader

    def state(self) -> dict[str, Any]:
        """Where the iterator is, and where all generators stood when it was made and begun."""
        return {
            "produced": self.produced,
            "made_at": self._made_at,
            "begun_at": self._indices.begun_at if self._indices is not None else None,
            "own": list(self._own_made_at),
            "streams": {str(at): text for at, text in self._saved.items()},
            "shared": [self._judgement.whole, self._judgement.indexed],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Be where `state` says; the global generators are left where they stand."""
        if state == self.state():
            return
        stand = positions_now()
        made_at, begun_at, skip = state["made_at"], state["begun_at"], state["produced"]
        self.produced, self._made_at, self._own_made_at = 0, made_at, list(state["own"])
        for each, text in zip(self._own, self._own_made_at, strict=True):
            held.put_text(each, text)
        if self.loader.persistent_workers:
            self.loader._iterator = None
        self._judgement = self._judgement.agreeing_with(*state["shared"])
        reposition(made_at)
        try:
            self._make()
            if self._indices is None:
                self._pass_over(skip, state.get("streams", {}))
            elif skip:
                # Before the first batch there is nothing to begin: asking for it will.
                reposition(stand if begun_at is None else begun_at)
                self._indices.begin(skip)
        finally:
            reposition(stand)
        self.produced = skip

    def _note_stream(self) -> None:
        """Keep what a stream says of where it is, if it does, for the last batches."""
        save = getattr(self.loader.dataset, "state_dict", None)
        if self._stream is None or self.loader.num_workers or not callable(save):
            return
        place = {"at": save(), "start": (self._stream.given, self._stream.collations)}
        try:
            self._saved[self.produced] = json.dumps(place)
        except TypeError:
            return  # more than plain data: its elements are consumed again instead
        self._saved.pop(self.produced - _KEPT, None)

    def _pass_over(self, skip: int, saved: Mapping[str, str]) -> None:
        """Be further on in a stream: by its own account of that place, or by consuming it."""
        load = getattr(self.loader.dataset, "load_state_dict", None)
        text, self._saved = saved.get(str(skip)), {}
        if text is None or self.loader.num_workers or not callable(load):
            if self._judgement.whole:
                self._start = 0, skip  # its workers begin there
                return
            for _ in range(skip):
                next(self)
            return
        place = json.loads(text)
        load(place["at"])
        self._start, self._saved = tuple(place["start"]), {skip: text}

    def origin(self) -> str:
        """Where all generators stood when the iterator was made, and when it was begun."""
        return json.dumps({**self.state(), "produced": 0})

    def order(self) -> str:
        """A digest of the sample indices of the batches produced so far."""
        return "" if self._indices is None else self._indices.digest_at(self.produced)

    def generators(self) -> list[Any]:
        """Generators of the loader's own and its sampler's, which move with it."""
        return [each.generator for each in self._own]

    def advance(self, count: int, origin: str) -> None:
        """Pass over batches; the global generators are left where they stand."""
        self.set_state({**json.loads(origin), "produced": self.produced + count})

    def _generator(self) -> torch.Generator:
        generator = self.loader.generator
        return torch.default_generator if generator is None else generator

    def _open(self) -> Iterator[Any]:
        """Make torch's iterator, with ours in the place of sampler, dataset and `collate_fn`."""
        loader, generator = self.loader, self._generator()
        if self._indices is not None:
            self._indices.begin()
        if loader.persistent_workers and not _takes_up(loader._iterator, self._indices):
            loader._iterator = None
        stand = generator.get_state()
        # Torch draws its seed once more, for what it tells its workers.
        generator.set_state(self._before_seed)
        try:
            with _instead(loader, self._replacements()):
                self._inner = _plain_iter(loader)
        finally:
            generator.set_state(stand)
        return self._inner

    def _replacements(self) -> dict[str, Any]:
        loader = self.loader
        if isinstance(loader.dataset, IterDataPipe | MapDataPipe):
            _say_once(
                "draws inside data pipes are not keyed: with workers, their bits depend on the "
                "schedule. Use a Dataset or an IterableDataset"
            )
            return {}
        start = KeyedStart(loader.worker_init_fn, self._seed)
        # Batches that come as they are ready would come in another order each time.
        replaced = {"worker_init_fn": start, "in_order": True}
        if self._indices is None:
            return {**replaced, **self._stream_replacements()}
        batched = loader._auto_collation
        return {
            **replaced,
            "batch_sampler" if batched else "sampler": self._indices,
            "dataset": KeyedDataset(loader.dataset, loader.collate_fn, batched=batched),
            "collate_fn": given_back,
        }

    def _stream_replacements(self) -> dict[str, Any]:
        loader, judgement = self.loader, self._judgement
        if judgement.notice:
            _say_once(judgement.notice)
        size = loader.batch_size if loader._auto_collation else None
        self._stream = stream = KeyedStream(
            loader.dataset, loader.collate_fn, self._seed, judgement, size or 1, self._start
        )
        start = KeyedStart(loader.worker_init_fn, self._seed, whole=judgement.whole)
        return {"dataset": stream, "collate_fn": stream.collated, "worker_init_fn": start}


def _takes_up(iterator: Any, indices: Indices | None) -> bool:
    """Have workers of an earlier epoch go on with these indices.

    Workers of streams begin anew in each epoch: what they hold could not be restored.
    """
    if iterator is None or indices is None or not isinstance(iterator._index_sampler, Indices):
        return False
    iterator._index_sampler = indices
    return True


@contextmanager
def _instead(loader: DataLoader[Any], replacements: dict[str, Any]) -> Iterator[None]:
    """Let a loader have other parts for a moment.

    It forbids that once it is made, for its users' sake: it gets its own ones back.
    """
    present = {name: new for name, new in replacements.items() if name in vars(loader)}
    plain = {name: vars(loader)[name] for name in present}
    for name, new in present.items():
        object.__setattr__(loader, name, new)
    try:
        yield
    finally:
        for name, old in plain.items():
            object.__setattr__(loader, name, old)


_ITERATORS: weakref.WeakSet[LoaderIterator] = weakref.WeakSet()
_SAID: set[str] = set()


def workers() -> set[int]:
    """The process numbers of all workers of loaders."""
    return set().union(*(iterator.workers() for iterator in _ITERATORS))


def _say_once(text: str) -> None:
    if text not in _SAID:
        _SAID.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _held_by(loader: DataLoader[Any]) -> tuple[held.Held, ...]:
    roots = {"generator": loader.generator, "sampler": loader._index_sampler}
    return held.look(roots, without=(loader.dataset,)).held
