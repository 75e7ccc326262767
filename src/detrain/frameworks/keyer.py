"""All random numbers that some work may draw, made to follow addresses.

That is the global generators (`following`), those that the work's own objects hold (`held`) and
those of libraries (`libraries`).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from detrain.frameworks import held, libraries
from detrain.frameworks.following import Following, fast_fill
from detrain.rng import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Keyer"]

_WATCHED = 3
_AHEAD = 16
"""Of how many addresses the words are made at once: 7 KiB each."""


class Keyer:
    """Goes from address to address, between `begin` and `end`, for work with `roots`."""

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self._roots = roots
        self._following = Following()
        self._fill = fast_fill()
        self._seeds = libraries.seeds()
        self._holdings = self._look()
        self._done = 0
        self._before: list[Any] = []

    def begin(self) -> None:
        """Remember where all generators stand."""
        self._following.begin()
        self._before = [_state_of(each) for each in self._holdings.held]

    def at(self, address: Address) -> None:
        """Give the numbers of an address, from its first."""
        self._following.at(address)
        self._key_own(address)

    def _key_own(self, address: Address) -> None:
        """Likewise, for the generators that are not global."""
        if self._holdings.held:
            seed, rest = address.seed, (address.epoch, address.sample, address.draw)
            for each in self._holdings.held:
                own = Address(seed ^ each.word, address.stream, *rest)
                each.framework.rekey(each.generator, own, self._fill)
        if self._seeds:
            word = int.from_bytes(bytes(self._fill(address, libraries.LANE, 1)), "little")
            for seed_library in self._seeds:
                seed_library(word)

    def end(self) -> None:
        """Put all generators back."""
        for each, before in zip(self._holdings.held, self._before, strict=True):
            each.framework.set_generator_state(each.generator, before)
        self._following.end()

    def do(self, address: Address, work: Callable[[Any], Any], item: Any) -> Any:
        """Do work with an item at an address."""
        return self.do_each((address,), work, (item,))[0]

    def do_each(
        self, addresses: Sequence[Address], work: Callable[[Any], Any], items: Iterable[Any]
    ) -> list[Any]:
        """Do work with each of some items, at its address.

        Work may make a generator and keep it, to draw from it next time as well. That is looked
        for the first times and then ever more rarely. If one turns up, the work is done again with
        it, so that it makes no difference which work came first.
        """
        put, results, rest = self._following.put, [], iter(items)
        for start in range(0, len(addresses), _AHEAD):
            some = addresses[start : start + _AHEAD]
            # At once, as the work throws the way to words out of the processor's caches.
            words = list(map(self._following.words, some))
            for address, each, item in zip(some, words, rest, strict=False):
                put(address, each)
                if self._holdings.held or self._seeds:
                    self._key_own(address)
                result = work(item)
                self._done = done = self._done + 1
                if done <= _WATCHED or not done & done - 1:
                    while self._has_more():
                        self.at(address)
                        result = work(item)
                results.append(result)
        return results

    def _has_more(self) -> bool:
        if not self._holdings.may_have_changed():
            return False
        before, seen = self._holdings, self._before
        known = {id(each.generator): at for each, at in zip(before.held, seen, strict=True)}
        self._holdings = self._look()
        new = [each for each in self._holdings.held if id(each.generator) not in known]
        self._before = [
            known[id(each.generator)] if id(each.generator) in known else _state_of(each)
            for each in self._holdings.held
        ]
        if new and self._done > _WATCHED:
            warnings.warn(
                f"{new[0].path} is a generator of random numbers that was made while samples were "
                f"loaded; draws from it were not keyed until sample {self._done} of this process. "
                "Make it where the dataset is made",
                RuntimeWarning,
                stacklevel=2,
            )
        return bool(new)

    def _look(self) -> held.Holdings:
        holdings = held.look({**self._roots, **libraries.holders()})
        if not holdings.complete:
            warnings.warn(
                "a dataset holds too many objects to be searched for generators of random numbers; "
                "those deep inside it are not keyed. Keep its data in arrays, or draw from the "
                "global generators",
                RuntimeWarning,
                stacklevel=2,
            )
        return holdings


def _state_of(each: held.Held) -> Any:
    return each.framework.generator_state(each.generator)
