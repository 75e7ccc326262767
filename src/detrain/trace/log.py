"""The trace on disk: a line for each event, each committing to all lines before it.

Append-only. A process killed in the middle of a write leaves a torn last line, which readers leave
out. The chain value of the last line is the digest of the whole trace.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from detrain.trace.digest import digest_text
from detrain.trace.event import Event

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["EMPTY", "TraceMark", "TraceWriter", "read_trace"]

_encoder = msgspec.json.Encoder(order="deterministic")


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
        except (msgspec.DecodeError, UnicodeDecodeError):
            break
        torn = not line.endswith(b"\n")
        if torn or parsed.chain != digest_text(mark.chain.encode(), bytes(parsed.event)):
            break
        events.append((event, parsed.chain))
        mark = TraceMark(mark.length + len(line), parsed.chain)
    return Trace(tuple(events), mark)


class TraceWriter:
    """Appends events. Lines reach the operating system at once, the disk when `sync` is called."""

    def __init__(self, path: Path, start: TraceMark) -> None:
        """Go on at `start`; what lies behind it is cut off."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, start.length)
        self.mark = start

    def append(self, event: Event) -> str:
        """Write an event; gives its chain value."""
        body = _encoder.encode(event)
        chain = digest_text(self.mark.chain.encode(), body)
        line = b'{"chain":"%s","event":%s}\n' % (chain.encode(), body)
        os.write(self._file, line)
        self.mark = TraceMark(self.mark.length + len(line), chain)
        return chain

    def sync(self) -> None:
        """Make all that was appended durable."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
