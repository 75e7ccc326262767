"""Tasks of thread pools that draw: one at a time, in the order of submission.

Threads share the generators of the process. So a task that draws is done, by a thread of its pool,
while the one who submitted it waits: as if workers were infinitely fast. During the task the
generators follow its key, and are put back before anyone else draws.

A task may submit others: they are done in the same way, inside its turn; in its own thread if the
pool is one whose thread waits for it already, so that a small pool does not stand still. A task
that waits for what the main thread has yet to do would stand still, too: that is seen, its turn is
over then, and it is said.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from detrain.frameworks import find
from detrain.world.pools.drawing import Drawing, drawing
from detrain.world.pools.judge import Judge, name_of, place_of
from detrain.world.pools.task import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from detrain.frameworks.calls import Keys

__all__ = ["Handle", "Turns"]

_PATIENCE = 10.0
"""Seconds that a task which draws may wait for something before its turn is over."""
_ON_TRIAL = 0.2
"""The same, for a task that is not known to draw."""
_LOOK = 0.02

_WAITS = frozenset({threading.__file__, queue.__file__})
_POOLS = (f"{os.sep}concurrent{os.sep}futures{os.sep}", f"{os.sep}multiprocessing{os.sep}pool.py")


class Handle(Protocol):
    """What tells when a task is done."""

    of: Any
    """A future, or a result."""

    def wait(self, timeout: float) -> bool:
        """Wait so long; whether it is done."""


class _Local(threading.local):
    chain: tuple[int, ...] = ()


class _Turn:
    """A task in its turn; `chain` are the pools whose threads wait for it."""

    def __init__(self, turns: Turns, function: Any, keys: Keys, chain: tuple[int, ...]) -> None:
        self._turns, self._function, self._keys, self._chain = turns, function, keys, chain
        self.thread = 0
        self.drawn: Drawing | None = None
        self.watched = self.drew = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do it, in a thread of the pool."""
        local = self._turns.local
        before, local.chain = local.chain, self._chain
        self.thread = threading.get_ident()
        try:
            with running(self._keys), drawing(self._keys) as self.drawn:
                if not self.watched:
                    return self._function(*args, **kwargs)
                self.drawn.note()
                try:
                    return self._function(*args, **kwargs)
                finally:
                    self.drew = self.drawn.moved()
        finally:
            local.chain, self.thread = before, 0


class _Free:
    """A task that does not draw: calls of pools in it are keyed all the same."""

    def __init__(self, function: Any, keys: Keys, judge: Judge) -> None:
        self._function, self._keys, self._judge = function, keys, judge

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do it."""
        before = [each.stand() for each in find.loaded()]
        try:
            with running(self._keys):
                return self._function(*args, **kwargs)
        finally:
            if before != [each.stand() for each in find.loaded()]:
                self._judge.suspect(self._function)


class Turns:
    """Who draws now. There is one in a process."""

    def __init__(self, judge: Judge, say: Callable[[str], None]) -> None:
        self._judge, self._say = judge, say
        self._lock = threading.Lock()
        self.local = _Local()

    def is_free(self, function: Any) -> bool:
        """Whether tasks with a function are done side by side."""
        return self._judge.judge(function) == "free"

    def free(self, function: Any, keys: Keys) -> Callable[..., Any]:
        """A task that is done side by side with others."""
        return _Free(function, keys, self._judge)

    def take(
        self, pool: Any, function: Any, keys: Keys, start: Callable[[Any, bool], Handle]
    ) -> Any:
        """Have a task done in its turn, and wait for it; gives its future or result.

        `start` is given the work and whether to do it here rather than in a thread of the pool.
        """
        chain = self.local.chain
        turn = _Turn(self, function, keys, (*chain, id(pool)))
        verdict = self._judge.judge(function)
        turn.watched = verdict == "trial"
        if chain:
            handle = self._attend(turn, start(turn, id(pool) in chain), function, verdict)
        else:
            with self._lock:
                handle = self._attend(turn, start(turn, False), function, verdict)
        if verdict == "trial" and self._judge.tried(function, drew=turn.drew):
            self._say(
                f"{name_of(function)} ({place_of(function)}) is a task of a thread pool that draws "
                "random numbers, though its first tasks did not. What it drew until now was not "
                "keyed, and was mixed with what other threads drew. From now on its tasks take "
                "turns. Draw in the first tasks too, or from generators that detrain.key gives"
            )
        return handle.of

    def _attend(self, turn: _Turn, handle: Handle, function: Any, verdict: str) -> Handle:
        """Wait for a task, as long as it does not wait itself."""
        patience = _PATIENCE if verdict == "turn" else _ON_TRIAL
        since = time.monotonic()
        while not handle.wait(_LOOK):
            now = time.monotonic()
            if not _is_waiting(turn.thread):
                since = now
            elif now - since > patience:
                self._give_up(turn, function, verdict)
                break
        return handle

    def _give_up(self, turn: _Turn, function: Any, verdict: str) -> None:
        """A task waits for something: let the others go on."""
        if turn.drawn is not None:
            turn.drawn.end()
        if verdict == "trial":
            self._judge.acquit(function)
            return
        self._say(
            f"{name_of(function)} is a task of a thread pool that may draw random numbers, and it "
            "waits for something that other threads have to do. It goes on beside them: what it "
            "draws from now on is not keyed and may be mixed with what they draw. Draw in tasks "
            "that end by themselves, or from generators that detrain.key gives"
        )


def _is_waiting(thread: int) -> bool:
    """Whether a thread waits for another one, and not for a task or for a thread to end."""
    frame: FrameType | None = sys._current_frames().get(thread)
    if frame is None or frame.f_code.co_filename not in _WAITS or frame.f_code.co_name == "join":
        return False
    while frame is not None and frame.f_code.co_filename in _WAITS:
        frame = frame.f_back
    return frame is not None and not any(part in frame.f_code.co_filename for part in _POOLS)
