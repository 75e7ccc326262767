"""What the program asks the world: clocks, entropy, names of things. Answered once.

While a run is being rebuilt, questions that the program's own code asks get the answers of the
first attempt, in order; afterwards they are asked anew. Only calls from the program's own files
are looked at, and nothing but module functions is replaced: classes stay what they are.
"""

from __future__ import annotations

import datetime
import os
import secrets
import socket
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from detrain.state import PLAIN, Scalar, decode_scalar, encode_scalar

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


class Observer:
    """Stands before the functions that ask, between `start` and `stop`.

    `note` takes each answer while the run is live; `feed` holds answers that are given back.
    """

    def __init__(self, owns: Callable[[str], bool], note: Callable[[Observation], None]) -> None:
        self._owns, self._note = owns, note
        self._plain: list[tuple[Any, str, Any]] = []
        self._feed: deque[Observation] = deque()
        self._rebuilding = False

    def start(self, *, rebuilding: bool) -> None:
        """Begin."""
        self._rebuilding = rebuilding
        for module, name in _ASKED:
            plain = getattr(module, name)
            self._plain.append((module, name, plain))
            setattr(module, name, self._asking(f"{module.__name__}.{name}", plain))

    def stop(self) -> None:
        """Put the plain functions back."""
        for module, name, plain in self._plain:
            setattr(module, name, plain)
        self._plain.clear()

    def feed(self, answers: Iterable[Observation]) -> None:
        """Give these answers next."""
        self._feed = deque(answers)

    def go_live(self) -> None:
        """Ask anew from now on."""
        self._feed.clear()
        self._rebuilding = False

    def ask(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call what may be `datetime.now` or the like, which can't be replaced."""
        owner = getattr(function, "__self__", None)
        if owner not in (datetime.datetime, datetime.date):
            return function(*args, **kwargs)
        name = f"datetime.{function.__name__}"
        return self._answer(name, lambda: function(*args, **kwargs))

    def _asking(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        owns = self._owns

        def asking(*args: Any, **kwargs: Any) -> Any:
            if owns(sys._getframe(1).f_code.co_filename):
                return self._answer(name, lambda: plain(*args, **kwargs))
            return plain(*args, **kwargs)

        asking.__name__ = asking.__qualname__ = plain.__name__
        asking.__doc__ = plain.__doc__
        return asking

    def _answer(self, name: str, ask: Callable[[], Any]) -> Any:
        if self._rebuilding and self._feed and self._feed[0][0] == name:
            observation = self._feed.popleft()
            value = _read(observation[1])
        else:
            value = ask()
            observation = (name, _write(value))
        self._note(observation)
        return value


def _write(value: Any) -> Scalar:
    if type(value) in PLAIN:
        return encode_scalar(value)
    if isinstance(value, uuid.UUID):
        return ("uuid", str(value))
    if isinstance(value, datetime.datetime):
        return ("datetime", value.isoformat())
    return ("date", value.isoformat())


def _read(scalar: Scalar) -> Any:
    tag, text = scalar
    if tag == "uuid":
        return uuid.UUID(text)
    if tag == "datetime":
        return datetime.datetime.fromisoformat(text)
    if tag == "date":
        return datetime.date.fromisoformat(text)
    return decode_scalar(scalar)
