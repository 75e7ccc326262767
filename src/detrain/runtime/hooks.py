"""What rewritten loop headers call; see `instrument.rewrite`."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from typing import Any

from detrain.capture.held import held
from detrain.runtime.session import Entered, Session

__all__ = ["Hooks"]


class Hooks:
    """The name `__detrain__` in the program's modules, between `start` and `stop`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Called in every iteration, so without a step between.
        self.tick, self.begun = session.tick, session.begun

    def start(self) -> None:
        """Make the name known to all modules."""
        builtins.__dict__["__detrain__"] = self

    def stop(self) -> None:
        """Take it back."""
        builtins.__dict__.pop("__detrain__", None)

    held = staticmethod(held)
    """The decorator of generator functions."""

    def entering(self, site: str) -> Entered | None:
        """Before a for loop's iterable is evaluated."""
        return self._session.entering(site, sys._getframe(1))

    def loop(self, entered: Entered | None, iterable: Any) -> Iterator[Any]:
        """The items of a for loop."""
        return self._session.found_loop(entered, iterable)

    def ask(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """What may be a clock: `datetime.now` and the like."""
        return self._session.attempt.ask(function, args, kwargs)

    def done(self, site: str) -> None:
        """After a loop that was not left by return or an error."""
        self._session.done(site, sys._getframe(1))
