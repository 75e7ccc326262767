"""All generators of this process, made to give the numbers of a task's keys, and put back.

The global ones are the process's, so one thread at a time may draw so.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from detrain.frameworks import find, libraries
from detrain.frameworks.following import fast_fill
from detrain.rng import GENERATORS, Address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from detrain.frameworks import held
    from detrain.frameworks.base import Follower, Framework
    from detrain.frameworks.calls import Keys
    from detrain.rng import Fill

__all__ = ["Drawing", "drawing"]


class Drawing:
    """The generators at some keys, between `begin` and `end`; to be used again afterwards.

    `end` may be called by another thread, and more than once.
    """

    def __init__(self) -> None:
        self._followers: dict[str, Follower] = {}
        self._begun: list[Follower] = []
        self._held: list[tuple[held.Held, Any]] = []
        self._keys: Keys = {}
        self._watch = find.ImportWatch(self._arrived)
        self._lock = threading.Lock()
        self._at: list[bytes] = []

    def begin(self, keys: Keys, holding: Iterable[held.Held] = ()) -> None:
        """Draw by these keys from now on; from these generators as well."""
        self._keys, self._begun, self._held = keys, [], []
        frameworks, fill = find.loaded(), fast_fill()
        for framework in frameworks:
            self._follow(framework, fill)
        if len(frameworks) < len(find.NAMES):
            self._watch.start()
        for each in holding:
            self._hold(each, fill)
        seeds = libraries.seeds()
        if seeds:
            word = int.from_bytes(bytes(fill(keys[""], libraries.LANE, 1)), "little")
            for seed in seeds:
                seed(word)

    def end(self) -> None:
        """Put all generators back."""
        with self._lock:
            begun, self._begun = self._begun, []
            holding, self._held = self._held, []
            for each, before in holding:
                each.framework.set_generator_state(each.generator, before)
            for follower in reversed(begun):
                follower.end()
            self._watch.stop()

    def note(self) -> None:
        """Remember where the generators stand now, to tell later whether they `moved`."""
        self._at = [each.stand() for each in find.loaded()]

    def moved(self) -> bool:
        """Whether anything was drawn since."""
        now = [each.stand() for each in find.loaded()]
        return now != self._at or any(follower.asked for follower in self._begun)

    def _follow(self, framework: Framework, fill: Fill) -> None:
        name = framework.name
        follower = self._followers.get(name) or framework.follower()
        self._followers[name] = follower
        address = self._keys.get(name, self._keys[""])
        follower.begin()
        self._begun.append(follower)
        # Each has its place among the words: two may go by one key.
        start = find.place_of(name) * find.FOLLOWER_WORDS
        words = memoryview(fill(address, GENERATORS, start + find.FOLLOWER_WORDS)).cast("B")
        follower.follow(address, words[8 * start :])

    def _hold(self, each: held.Held, fill: Fill) -> None:
        self._held.append((each, each.framework.generator_state(each.generator)))
        key = self._keys.get(each.framework.name, self._keys[""])
        own = Address(key.seed ^ each.word, key.stream, key.epoch, key.sample, key.draw)
        each.framework.rekey(each.generator, own, fill)

    def _arrived(self, framework: Framework) -> None:
        """The task has imported a framework."""
        if self._begun:
            self._follow(framework, fast_fill())


_FREE: list[Drawing] = []
"""Those that are not in use: making one takes longer than most tasks."""


@contextlib.contextmanager
def drawing(keys: Keys, holding: Iterable[held.Held] = ()) -> Iterator[Drawing]:
    """Draw by keys; generators are put back in the end."""
    try:
        found = _FREE.pop()
    except IndexError:
        found = Drawing()
    found.begin(keys, holding)
    try:
        yield found
    finally:
        found.end()
        _FREE.append(found)
