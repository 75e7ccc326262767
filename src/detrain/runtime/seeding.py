"""`--seed`: what the program seeds its generators with depends on the seed that was typed.

A program that seeds with 1 and with 2 goes on to get two streams, and one that seeds anew in every
epoch different ones: its own seeds are mixed with the typed one, not replaced by it.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Seeding", "mixed"]


def mixed(typed: int, given: Any) -> int:
    """A seed of 32 bits, which every generator takes, made of the typed one and the program's."""
    digest = hashlib.blake2b(f"{typed} {given!r}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")


class Seeding:
    """Stands before the functions that seed global generators, until `stop`."""

    def __init__(self, typed: int) -> None:
        self._typed, self._inside = typed, False
        self._plain: list[tuple[Any, str, Any]] = []

    def watch(self, seeders: Iterable[tuple[Any, str]]) -> None:
        """Mix the seeds that some functions, as (owner, name), are given first."""
        for owner, name in seeders:
            plain = getattr(owner, name)
            self._plain.append((owner, name, plain))
            setattr(owner, name, self._standing_before(plain))

    def stop(self) -> None:
        """Let the program seed as it likes."""
        for owner, name, plain in reversed(self._plain):
            setattr(owner, name, plain)
        self._plain = []

    def _standing_before(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def seeds(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # one of them calls another
                return plain(*args, **kwargs)
            first, rest = (args[:1], args[1:]) if args else ((), ())
            name = next(iter(kwargs), None) if not args else None
            self._inside = True
            try:
                if first and first[0] is not None:
                    return plain(mixed(self._typed, first[0]), *rest, **kwargs)
                if name is not None and kwargs[name] is not None:
                    return plain(**{**kwargs, name: mixed(self._typed, kwargs[name])})
                return plain(*args, **kwargs)
            finally:
                self._inside = False

        return seeds
