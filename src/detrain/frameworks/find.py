"""Which frameworks a program has imported, and their adapters.

DETrain never imports a framework of its own accord: `loaded` looks at what is there, `on_import`
says when another one arrives, so that it is seeded before the program first draws from it.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from detrain.frameworks import calls, stdlib

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from detrain.frameworks.base import Framework

__all__ = [
    "FOLLOWER_WORDS",
    "NAMES",
    "ImportWatch",
    "Positions",
    "by_name",
    "live_bytes",
    "loaded",
    "memory_at",
    "note_positions",
    "place_of",
    "positions_now",
    "reposition",
    "settle",
]

Positions = dict[str, dict[str, str]]
"""Where global generators stand, by framework and generator, as text."""

ADAPTERS = {"numpy": "detrain.frameworks.numpy", "torch": "detrain.frameworks.torch"}

NAMES = (stdlib.ADAPTER.name, *ADAPTERS)
"""All frameworks that there are adapters for."""

FOLLOWER_WORDS = 312
"""How many 64-bit words of an address each framework's global generators begin with."""


def place_of(name: str) -> int:
    """The number of a framework in a fixed order, whether it is imported or not."""
    return 0 if name == stdlib.ADAPTER.name else 1 + list(ADAPTERS).index(name)


@cache
def by_name(name: str) -> Framework:
    """The adapter of a framework, which must have been imported already."""
    if name == stdlib.ADAPTER.name:
        return stdlib.ADAPTER
    adapter: Framework = importlib.import_module(ADAPTERS[name]).ADAPTER
    return adapter


def loaded() -> tuple[Framework, ...]:
    """Adapters of what the program has imported, in a fixed order; Python's own is always first."""
    return (stdlib.ADAPTER, *[by_name(name) for name in ADAPTERS if _is_complete(name)])


def note_positions() -> Callable[[], Positions]:
    """Note where the global generators of all frameworks stand, and how often pools were called.

    What it gives puts that into text; any thread may ask it for that.
    """
    noted = {framework.name: framework.note_positions() for framework in loaded()}
    called = calls.CALLS.position()

    def positions() -> Positions:
        found = {name: note() for name, note in noted.items()}
        return {**found, calls.NAME: called} if called else found

    return positions


def positions_now() -> Positions:
    """Where the global generators of all frameworks stand, and how often pools were called."""
    return note_positions()()


def memory_at(address: int, nbytes: int) -> memoryview:
    """The memory at an address, without a copy."""
    return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")


def live_bytes(framework: Framework, array: Any, nbytes: int) -> memoryview:
    """The bytes of an array as it is now, in C order: where they lie, or a copy."""
    address = framework.address(array) if nbytes else None
    if address is not None:
        return memory_at(address, nbytes)
    buffer = memoryview(bytearray(nbytes))
    if nbytes:
        framework.copy_out(array, buffer)
    return buffer


def reposition(positions: Mapping[str, Mapping[str, str]]) -> None:
    """Put the global generators back."""
    for framework in loaded():
        if framework.name in positions:
            framework.reposition(positions[framework.name])
    calls.CALLS.put(positions.get(calls.NAME, {}))


def settle() -> None:
    """Have all arrays in memory of their own."""
    for framework in loaded():
        framework.settle()


_complete: set[str] = set()
"""Modules that were imported to their end: nothing undoes that, and to ask them takes time."""


def _is_complete(name: str) -> bool:
    module = sys.modules.get(name)
    if module is None or name in _complete:
        return module is not None
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        return False
    _complete.add(name)
    return True


class ImportWatch(importlib.abc.MetaPathFinder):
    """Calls `arrived(adapter)` right after a framework is imported for the first time.

    It stands first on `sys.meta_path` between `start` and `stop` and only lets the usual finders
    answer: what is imported, and from where, does not change.
    """

    def __init__(self, arrived: Callable[[Framework], None]) -> None:
        self._arrived = arrived

    def start(self) -> None:
        """Begin to watch."""
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """No longer watch."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find as the other finders do, with a loader that reports the end of the import."""
        if fullname not in ADAPTERS:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Reporting(spec.loader, lambda: self._arrived(by_name(fullname)))
                return spec
        return None


class _Reporting(importlib.abc.Loader):
    """A loader that does what another one does, then calls `done`."""

    def __init__(self, loader: importlib.abc.Loader, done: Callable[[], None]) -> None:
        self._loader, self._done = loader, done

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._done()
