"""The trace on disk: a line for each event, each committing to all lines before it.

Append-only. A process killed in the middle of a write leaves a torn last line, which readers leave
out. The chain value of the last line is the digest of the whole trace.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
import xxhash

from detrain.trace.append import append
from detrain.trace.event import Event

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["EMPTY", "LEAST_LINE", "TraceMark", "TraceWriter", "read_trace"]

_encoder = msgspec.json.Encoder(order="deterministic")

LEAST_LINE = 64
"""Bytes: no event takes fewer in the file, its chain value alone has 32."""

_SOON = 0.02
"""Seconds within which events come so fast that they are written together, more and more."""

_MANY = 256
"""Events that are written together at the most."""

Position = tuple[tuple[str, int], ...]


class TraceMark(msgspec.Struct, frozen=True):
    """A place in a trace: the length up to it and the chain value there."""

    length: int
    chain: str


EMPTY = TraceMark(0, "")


class _Line(msgspec.Struct, frozen=True):
    chain: str
    event: msgspec.Raw


@dataclass(frozen=True)
class Trace:
    """What was read: the events, each with its chain value, and where they end."""

    events: tuple[tuple[Event, str], ...]
    end: TraceMark


def read_trace(path: Path) -> Trace:
    """All whole lines whose chain holds; reading stops at the first that is torn or altered."""
    raw = path.read_bytes() if path.exists() else b""
    events, mark = [], EMPTY
    for line in raw.splitlines(keepends=True):
        try:
            parsed = msgspec.json.decode(line, type=_Line)
            event = msgspec.json.decode(parsed.event, type=Event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            break
        torn = not line.endswith(b"\n")
        if torn or parsed.chain.encode() != _chained(mark.chain.encode(), bytes(parsed.event)):
            break
        events.append((event, parsed.chain))
        mark = TraceMark(mark.length + len(line), parsed.chain)
    return Trace(tuple(events), mark)


def _chained(chain: bytes, body: bytes) -> bytes:
    """The chain value of an event that follows one with the given value."""
    return xxhash.xxh3_128_hexdigest(chain + body).encode()


class TraceWriter:
    """Appends events. They reach the operating system with `flush`, which comes often by itself,
    and the disk with `sync`.

    Adding an event costs a fraction of a microsecond: a loop of short steps writes many at once.
    """

    def __init__(self, path: Path, start: TraceMark) -> None:
        """Go on at `start`; what lies behind it is cut off."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, start.length)
        self._mark = start
        self._waiting: list[tuple[int, Position, str, int, dict[str, str], str]] = []
        self._enough, self._flushed = 1, 0.0
        self._outer: Position | None = None
        self._site, self._start = "", b""
        """The loop of the last event, and how its position is written."""

    def add(
        self,
        step: int,
        outer: Position,
        site: str,
        iteration: int,
        values: dict[str, str],
        state: str,
    ) -> None:
        """Append the event of a step of the loop at `site`, inside the `outer` ones."""
        self._waiting.append((step, outer, site, iteration, values, state))
        if len(self._waiting) >= self._enough:
            self.flush()

    @property
    def mark(self) -> TraceMark:
        """Where the trace ends."""
        if self._waiting:
            self.flush()
        return self._mark

    def flush(self) -> None:
        """Write what is waiting."""
        chain, lines = self._mark.chain.encode(), []
        for step, outer, site, iteration, values, state in self._waiting:
            if values or state:
                body = _encoder.encode(Event(step, (*outer, (site, iteration)), values, state))
            else:  # most steps: the same bytes, without the encoder
                if outer is not self._outer or site is not self._site:
                    self._outer, self._site = outer, site
                    self._start = _encoder.encode((*outer, (site, 0))).removesuffix(b"0]]")
                body = b'{"step":%d,"at":%s%d]]}' % (step, self._start, iteration)
            chain = _chained(chain, body)
            lines.append(b'{"chain":"%s","event":%s}\n' % (chain, body))
        if lines:
            written = b"".join(lines)
            append(self._file, written, "the run's trace.jsonl")
            self._waiting.clear()
            self._mark = TraceMark(self._mark.length + len(written), chain.decode())
        now = monotonic()
        self._enough = min(2 * self._enough, _MANY) if now - self._flushed < _SOON else 1
        self._flushed = now

    def sync(self) -> None:
        """Make all that was appended durable."""
        self.flush()
        os.fsync(self._file)

    def sync_written(self) -> None:
        """Make durable what was written so far. Any thread may call it."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        self.flush()
        os.close(self._file)
