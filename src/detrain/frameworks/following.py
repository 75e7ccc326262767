"""All global generators of this process, made to give the numbers of an address.

    with following(Address(seed, stream, sample=7)):
        ...  # torch, numpy and `random` draw what sample 7 draws, wherever this runs

Afterwards they stand where they stood. Generators that are made unseeded in there take their seed
from the address too. The generators are the process's, so one thread at a time may follow.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from detrain import rng
from detrain.frameworks import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from detrain.rng import Address, Fill

__all__ = ["Following", "fast_fill", "following"]


class Following:
    """A way to go from address to address, between `begin` and `end`.

    The frameworks that count are those that are imported when it is made.
    """

    def __init__(self) -> None:
        self._followers = [framework.follower() for framework in find.loaded()]
        self._fill = fast_fill()
        self._steps: list[tuple[Callable[[Address, memoryview], None], int, int]] = []
        # Each framework has its place among the words, whether the others are imported or not.
        for follower in self._followers:
            start = find.place_of(follower.name) * find.FOLLOWER_WORDS
            self._steps.append((follower.follow, 8 * start, 8 * (start + find.FOLLOWER_WORDS)))
        self._count = max(end for _, _, end in self._steps) // 8

    def begin(self) -> None:
        """Remember where the global generators stand."""
        for follower in self._followers:
            follower.begin()

    def at(self, address: Address) -> None:
        """Give the numbers of an address, from its first."""
        self.put(address, self.words(address))

    def words(self, address: Address) -> memoryview:
        """What `put` takes for an address."""
        return memoryview(self._fill(address, rng.GENERATORS, self._count)).cast("B")

    def put(self, address: Address, words: memoryview) -> None:
        """Give the numbers of an address whose words are there already."""
        for follow, start, end in self._steps:
            follow(address, words[start:end])

    def end(self) -> None:
        """Put the global generators back."""
        for follower in reversed(self._followers):
            follower.end()


def fast_fill() -> Fill:
    """The fastest way to the numbers of an address that is there, for the calling thread."""
    ways = (framework.fast_words for framework in find.loaded())
    return next((way for way in ways if way is not None), rng.fill)


@contextmanager
def following(address: Address) -> Iterator[None]:
    """Have the global generators follow an address; they are put back in the end."""
    follower = Following()
    follower.begin()
    try:
        follower.at(address)
        yield
    finally:
        follower.end()
