"""What DETrain says while a program runs: one line at a time, on stderr, never in its log."""

from __future__ import annotations

import sys

__all__ = ["Notices"]


class Notices:
    """Says each thing once."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._said: set[str] = set()

    def say(self, text: str, *, always: bool = False) -> None:
        """Say something, unless it was said before; `always` also when the run is to be quiet."""
        if text in self._said or (self._quiet and not always):
            return
        self._said.add(text)
        stream = sys.__stderr__
        if stream is not None:
            dim = ("\x1b[2m", "\x1b[22m") if stream.isatty() else ("", "")
            stream.write(f"{dim[0]}detrain: {text}{dim[1]}\n")
            stream.flush()
