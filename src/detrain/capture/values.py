"""Immutable values of the standard library, as text and back.

Each kind has one row: how it is written and how it is read. Reading builds only these kinds.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["decode", "encode"]


def _span(text: str) -> datetime.timedelta:
    days, seconds, microseconds = map(int, text.split())
    return datetime.timedelta(days, seconds, microseconds)


def _ratio(text: str) -> fractions.Fraction:
    # Read in parts: of "1e999999999", Fraction itself would make a number of that many digits.
    above, _, below = text.partition("/")
    return fractions.Fraction(int(above), int(below or "1"))


def _bounds(text: str) -> list[int | None]:
    return [None if part == "None" else int(part) for part in text.split()]


_ROWS: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    type(...): (lambda _: "", lambda _: ...),
    type(NotImplemented): (lambda _: "", lambda _: NotImplemented),
    range: (lambda r: f"{r.start} {r.stop} {r.step}", lambda t: range(*map(int, t.split()))),
    datetime.timedelta: (lambda d: f"{d.days} {d.seconds} {d.microseconds}", _span),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: (datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    decimal.Decimal: (str, decimal.Decimal),
    fractions.Fraction: (str, _ratio),
    uuid.UUID: (str, uuid.UUID),
    pathlib.PurePosixPath: (str, pathlib.PurePosixPath),
    pathlib.PosixPath: (str, pathlib.PosixPath),
    slice: (lambda s: f"{s.start} {s.stop} {s.step}", lambda t: slice(*_bounds(t))),
}

_BY_NAME = {f"{kind.__module__}:{kind.__qualname__}": read for kind, (_, read) in _ROWS.items()}


def encode(value: Any) -> str | None:
    """A value as text; None if it is of none of these kinds."""
    row = _ROWS.get(type(value))
    if row is None:
        return None
    if isinstance(value, slice) and not all(
        isinstance(part, int | None) for part in (value.start, value.stop, value.step)
    ):
        return None
    return row[0](value)


def decode(kind: str, text: str) -> Any:
    """The value that `encode` wrote; `ValueError` for an unknown kind or a malformed text."""
    if kind not in _BY_NAME:
        raise ValueError(f"{kind} is not a value that DETrain knows")
    return _BY_NAME[kind](text)
