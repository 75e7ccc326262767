"""What the program asks the world: clocks, entropy, names of things, variables. Answered once.

While a run is being rebuilt, questions that the program's own code asks get the answers of the
first attempt, in order; afterwards they are asked anew. Only calls from the program's own files,
and from trackers, on the thread that runs the program, are looked at. Secrets are never kept.
"""

from __future__ import annotations

import datetime
import os
import re
import secrets
import socket
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import xxhash

from detrain.state import Scalar, decode_answer, encode_answer
from detrain.world.trackers import is_tracker

__all__ = ["Observation", "Observer"]

Observation = tuple[str, Scalar]
"""The name of a question and its answer."""

_ASKED: tuple[tuple[Any, str], ...] = (
    (time, "time"), (time, "time_ns"), (time, "perf_counter"), (time, "perf_counter_ns"),
    (time, "monotonic"), (time, "monotonic_ns"), (time, "process_time"), (time, "strftime"),
    (time, "ctime"), (time, "asctime"), (os, "urandom"), (os, "getpid"), (os, "cpu_count"),
    (socket, "gethostname"), (uuid, "uuid1"), (uuid, "uuid4"),
    (secrets, "token_hex"), (secrets, "token_bytes"), (secrets, "randbits"), (secrets, "randbelow"),
)  # fmt: skip

_SECRET = re.compile("KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
"""Variables of the environment whose values must not be written anywhere."""

_MAPPINGS = frozenset({os.getenv.__code__.co_filename, Mapping.get.__code__.co_filename})
"""Where `os.getenv`, `os.environ.get` and the like stand between the program and a variable."""

_getpid = os.getpid

_LONG = 4096
"""Characters: a listing that is longer is not kept in every checkpoint."""


class Observer:
    """Stands before the functions that ask, between `start` and `stop`.

    `note` takes each answer while the run is live; `feed` holds answers that are given back. Long
    listings of directories are kept in a folder of the run, each once.
    """

    def __init__(
        self, folder: Path, owns: Callable[[str], bool], note: Callable[[Observation], None]
    ) -> None:
        self._listings, self._owns, self._note = folder / "listings", owns, note
        self._plain: list[tuple[Any, str, Any]] = []
        self._feed: deque[Observation] = deque()
        self._rebuilding = False
        self._place = self._here()

    def start(self, *, rebuilding: bool) -> None:
        """Begin."""
        self._rebuilding = rebuilding
        for module, name in _ASKED:
            self._replace(module, name, self._asking(f"{module.__name__}.{name}"))
        environ = type(os.environ)
        self._replace(environ, "__getitem__", self._reading(environ.__getitem__))
        self._replace(environ, "__contains__", self._holding())

    def stop(self) -> None:
        """Put the plain functions back."""
        for owner, name, plain in self._plain:
            setattr(owner, name, plain)
        self._plain.clear()

    def feed(self, answers: Iterable[Observation]) -> None:
        """Give these answers next."""
        self._feed = deque(answers)

    def go_live(self, again: Iterable[Observation] = ()) -> None:
        """Ask anew from now on, or once the answers that were given before are used up."""
        self._feed = deque(again)
        self._rebuilding = False

    def ask(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call what may be `datetime.now` or the like, which can't be replaced."""
        owner = getattr(function, "__self__", None)
        if owner not in (datetime.datetime, datetime.date):
            return function(*args, **kwargs)
        name = f"datetime.{function.__name__}"
        return self._answer(name, lambda: function(*args, **kwargs))

    def listing(self, path: str, ask: Callable[[], list[str]]) -> list[str]:
        """The names in a directory, in the order in which they were given the first time."""
        if self._here() != self._place:
            return ask()
        question = f"names in {path}"
        text: str = self._answer(question, lambda: self._keep("\0".join(ask())))
        found = self._kept(text)
        names = ask() if found is None else found.split("\0")
        return [name for name in names if name]

    def _keep(self, text: str) -> str:
        """Text as an answer: a long one is put into a file."""
        if len(text) <= _LONG:
            return text
        data = text.encode(errors="surrogateescape")
        digest = xxhash.xxh3_128_hexdigest(data)
        place = self._listings / digest
        if not place.exists():
            self._listings.mkdir(exist_ok=True)
            place.write_bytes(data)
        return "\0" + digest

    def _kept(self, text: str) -> str | None:
        """The text of an answer; None if its file is not what it was."""
        if not text.startswith("\0"):
            return text
        place = self._listings / re.sub("[^0-9a-f]", "", text)
        data = place.read_bytes() if place.is_file() else b""
        if xxhash.xxh3_128_hexdigest(data) != place.name:
            return None
        return data.decode(errors="surrogateescape")

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        self._plain.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    def _asking(self, name: str) -> Callable[..., Any]:
        module, _, function = name.partition(".")
        plain: Callable[..., Any] = getattr(sys.modules[module], function)

        def asking(*args: Any, **kwargs: Any) -> Any:
            if self._is_the_program(sys._getframe(1)):
                return self._answer(name, lambda: plain(*args, **kwargs))
            return plain(*args, **kwargs)

        asking.__name__ = asking.__qualname__ = plain.__name__
        asking.__doc__ = plain.__doc__
        return asking

    def _reading(self, plain: Callable[[Any, str], str]) -> Callable[[Any, str], str]:
        """What stands before reading a variable of the environment."""

        def reading(environ: Any, key: str) -> str:
            if environ is not os.environ or not self._asks_for(key):
                return plain(environ, key)
            value = self._answer(f"environ {key}", lambda: _or_none(plain, environ, key))
            if value is None:
                raise KeyError(key) from None
            return str(value)

        return reading

    def _holding(self) -> Callable[[Any, str], bool]:
        """What stands before asking whether there is a variable of the environment."""
        plain = type(os.environ).__contains__

        def holding(environ: Any, key: str) -> bool:
            if environ is not os.environ or not self._asks_for(key):
                return plain(environ, key)
            return bool(self._answer(f"environ has {key}", lambda: plain(environ, key)))

        return holding

    def _asks_for(self, key: Any) -> bool:
        if not isinstance(key, str) or _SECRET.search(key):
            return False
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename in _MAPPINGS:
            frame = frame.f_back
        return frame is not None and self._is_the_program(frame)

    def _is_the_program(self, frame: FrameType) -> bool:
        filename = frame.f_code.co_filename
        return (self._owns(filename) or is_tracker(filename)) and self._here() == self._place

    @staticmethod
    def _here() -> tuple[int, int]:
        """The process and the thread: loader workers are forked with all of this."""
        return _getpid(), threading.get_ident()

    def _answer(self, name: str, ask: Callable[[], Any]) -> Any:
        if self._feed and self._feed[0][0] == name:
            observation = self._feed.popleft()
            value = decode_answer(observation[1])
        else:
            if not self._rebuilding:
                self._feed.clear()  # it asks something else than before: it goes another way
            value = ask()
            observation = (name, encode_answer(value))
        self._note(observation)
        return value


def _or_none(plain: Callable[[Any, str], str], environ: Any, key: str) -> str | None:
    try:
        return plain(environ, key)
    except KeyError:
        return None
