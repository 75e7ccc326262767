"""The indices that a sampler gives, as tasks, counted on their way to torch's loader.

The sampler is begun and ended where the program asks for its first and its last batch, as torch
does without workers, however many batches are prepared ahead. Torch's own samplers draw from the
program's stream, so that the order is the one that the program has without DETrain. A sampler of
the program's own may draw whenever it is asked: from its second batch on it is asked ahead of time,
so what it draws from the global generators is keyed, and generators that it holds are shown to the
program as they were when the batch was asked for.
"""

from __future__ import annotations

import itertools
import operator
from array import array
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import xxhash
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from detrain.errors import ResumeMismatch
from detrain.frameworks.find import Positions, positions_now
from detrain.frameworks.following import Following
from detrain.frameworks.torch.keyed import Task, sampler_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detrain.frameworks.held import Held

__all__ = ["Indices"]

_BUILT_IN = (
    RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler,
    DistributedSampler,
)  # fmt: skip
_END = object()


class Indices:
    """The batches of one epoch. `own` are the generators that the sampler holds."""

    def __init__(self, sampler: Any, own: tuple[Held, ...], *, batched: bool, ahead: bool) -> None:
        self._plain, self._batched = sampler, batched
        inner: Any = sampler.sampler if type(sampler) is BatchSampler else sampler
        self._built_in = type(inner) in _BUILT_IN
        # Torch's own are put into batches here: torch would run a sampler to its end, with what it
        # draws there, for the last batch, which may be prepared long before it is asked for.
        self._size = sampler.batch_size if self._built_in and inner is not sampler else 0
        self._length = len(sampler) if self._built_in else None
        self._total = len(inner) if self._built_in else 0
        self._counts: Counter[Any] | None = None if _gives_each_once(inner) else Counter()
        draws_on = not self._built_in or (type(inner) is RandomSampler and self._counts is not None)
        self._own = own if ahead and draws_on else ()
        self._latest: list[Any] = []
        self._moves: dict[int, list[tuple[Held, Any]]] = {}
        self._following: Following | None = None
        self._iterator: Iterator[Any] = iter(())
        self._ready: deque[Task] = deque()
        self._running = xxhash.xxh3_64()
        self._digests = array("Q", [0])
        self._samples = 0
        self.seed = 0
        self.begun_at: Positions | None = None

    def __len__(self) -> int:
        return len(self._plain)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_plain"), name)

    def start(self) -> None:
        """What is done when the program makes its iterator."""
        if not self._size:
            self._iterator = iter(self._plain)

    def begin(self, skip: int = 0) -> None:
        """What is done when it asks for the first batch: the order is drawn; pass over `skip`."""
        if self.begun_at is not None:
            return
        self.begun_at = positions_now()
        if self._size:
            self._iterator = iter(self._plain.sampler)
        passed = self._pass_over(skip) if self._size and skip else 0
        while passed < skip and self._take() is not None:
            passed += 1
        if passed < skip:
            raise ResumeMismatch(
                "the sampler of a data loader",
                f"at least {skip} batches, as in the first attempt",
                f"{passed}",
                "Make the length of the sampler the same in every attempt",
            )
        if not skip and (task := self._take()) is not None:
            self._ready.append(task)
        self._latest = [_state(each) for each in self._own]

    def delivered(self, count: int) -> None:
        """The program got its batch number `count`: show what the sampler drew for it."""
        for each, state in self._moves.pop(count, ()):
            each.framework.set_generator_state(each.generator, state)
        if count == self._length and self._size and self._samples % self._size:
            next(self._iterator, None)  # torch sees only at the end that a batch is not full

    def finish(self) -> None:
        """The program asked for more than there is: what the sampler does then is done now."""
        if self._built_in:
            next(self._iterator, None)
        else:
            self.delivered(len(self._digests))

    def digest_at(self, count: int) -> str:
        """The digest of the first `count` indices or batches."""
        return f"{self._digests[count]:016x}"

    def __iter__(self) -> Iterator[Task]:
        # Torch begins a sampler more than once with workers; all of it is one epoch.
        while True:
            task = self._ready.popleft() if self._ready else self._take_ahead()
            if task is None:
                return
            yield task

    def _take_ahead(self) -> Task | None:
        if self._length is not None and len(self._digests) > self._length:
            return None
        if not self._own:
            return self._take()
        shown = [_state(each) for each in self._own]
        for each, state in zip(self._own, self._latest, strict=True):
            each.framework.set_generator_state(each.generator, state)
        before = self._latest
        task = self._take()
        self._latest = [_state(each) for each in self._own]
        moved = zip(self._own, before, self._latest, strict=True)
        number = len(self._digests) - (1 if task is not None else 0)
        self._moves[number] = [(each, now) for each, then, now in moved if not _same(then, now)]
        for each, state in zip(self._own, shown, strict=True):
            each.framework.set_generator_state(each.generator, state)
        return task

    def _take(self) -> Task | None:
        number = len(self._digests) - 1
        index: Any
        if self._size:
            size = min(self._size, self._total - self._samples)
            index = list(itertools.islice(self._iterator, size))
            if not index or (len(index) < self._size and self._plain.drop_last):
                return None
        elif self._built_in or not number:
            index = next(self._iterator, _END)
        else:
            index = self._take_keyed(number)
        if index is _END:
            return None
        if self._batched and not hasattr(index, "__len__"):
            index = list(index)
        first, indices = self._samples, index if self._batched else (index,)
        self._samples += len(indices)
        self._running.update(_index_bytes(index))
        self._digests.append(self._running.intdigest())
        return Task(self.seed, number, first, index, self._repeats(indices))

    def _take_keyed(self, number: int) -> Any:
        if self._following is None:
            self._following = Following()
        self._following.begin()
        try:
            self._following.at(sampler_address(self.seed, number))
            return next(self._iterator, _END)
        finally:
            self._following.end()

    def _repeats(self, indices: Any) -> list[int] | None:
        """How often each sample came before; None if none did."""
        counts = self._counts
        if counts is None:
            return None
        found = []
        try:
            for each in indices:
                index = each if type(each) is int else operator.index(each)
                found.append(counts[index])
                counts[index] += 1
        except TypeError:
            return None  # samples without a number are told apart by their places
        return found if any(found) else None

    def _pass_over(self, skip: int) -> int:
        """Pass over full batches at once; gives how many.

        The samples are drawn as always, but not put into batches one by one.
        """
        size = self._size
        passed = min(skip, self._total // size)
        gone = list(itertools.islice(self._iterator, passed * size))
        passed = len(gone) // size
        try:
            # The digest of batches one after the other is that of their bytes together.
            self._running.update(array("q", gone).tobytes())
        except (TypeError, OverflowError):
            for number in range(passed):
                self._running.update(_index_bytes(gone[number * size : (number + 1) * size]))
        self._digests.extend(itertools.repeat(0, passed))
        self._digests[-1] = self._running.intdigest() if passed else 0
        self._samples = len(gone)
        if self._counts is not None:
            self._counts.update(gone)
        return passed


def _gives_each_once(sampler: Any) -> bool:
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    return type(sampler) is SequentialSampler


def _state(each: Held) -> Any:
    return each.framework.generator_state(each.generator)


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def _index_bytes(index: Any) -> bytes:
    try:
        return array("q", index).tobytes() if isinstance(index, list) else repr(index).encode()
    except (TypeError, OverflowError):
        return repr(index).encode()
