"""Where checkpoints lie. `Store` is the protocol; `LocalStore` is a directory."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Protocol

from detrain.checkpoint.durable import (
    PACKING,
    STAGED,
    ignore,
    is_spare,
    sync_directory,
    write_durably,
)
from detrain.checkpoint.format import ArrayBytes, encode_header, read_arrays
from detrain.checkpoint.protected import protected, protecting
from detrain.checkpoint.regular import read_regular, regular_size
from detrain.checkpoint.sound import is_data_name
from detrain.errors import DamagedCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["LocalStore", "Store"]

_LARGEST_READ = 1 << 30
"""Bytes of a manifest, at the most: what is read whole is in memory whole."""


class Store(Protocol):
    """Files by flat names. A name, once there, stands for a whole and durable file.

    Seven methods and no more, so that an object store can be one: it has no directories, no
    appending, and its uploads are atomic, as `put` is here.
    """

    def put(self, name: str, chunks: Iterable[bytes | bytearray | memoryview], kind: str) -> int:
        """Write a file; gives its size. It is durable when this returns, and absent before."""

    def put_arrays(self, name: str, arrays: Sequence[ArrayBytes], kind: str = "data") -> int:
        """Write a data file; gives its size. As durable as `put`."""

    def read(self, name: str) -> bytes:
        """The content of a small file."""

    def arrays(self, name: str, size: int) -> dict[str, memoryview]:
        """The arrays of a data file, which must have that size."""

    def names(self) -> list[str]:
        """All names, sorted."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; names that are gone already are passed over."""

    def protecting(self) -> AbstractContextManager[Mapping[str, int]]:
        """The checkpoints that are protected, by name; nobody protects others meanwhile."""


class LocalStore:
    """A directory."""

    def __init__(self, folder: Path, reached: Callable[[str], None] = ignore) -> None:
        self.folder, self._reached = folder, reached
        self._spare: Path | None = None
        """A file that nobody needs any more: to free a large one takes as long as to write it."""
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, chunks: Iterable[bytes | bytearray | memoryview], kind: str) -> int:
        """Write beside the target, sync, rename, sync the directory."""
        spare = None
        if kind == "data":
            spare, self._spare = self._spare, None
        return write_durably(self.folder / name, chunks, kind, self._reached, spare)

    def put_arrays(self, name: str, arrays: Sequence[ArrayBytes], kind: str = "data") -> int:
        """Write a header, then the arrays."""
        return self.put(name, [encode_header(arrays), *(each.data for each in arrays)], kind)

    def read(self, name: str) -> bytes:
        """Read a file whole."""
        return read_regular(self.folder / name, _LARGEST_READ)

    def arrays(self, name: str, size: int) -> dict[str, memoryview]:
        """Map a data file. A name that leaves the directory is refused."""
        path = self.folder / name
        if not is_data_name(name):
            raise DamagedCheckpoint(name, "expected the name of a data file of the run")
        found = regular_size(path)
        if found != size:
            raise DamagedCheckpoint(str(path), f"is {found} bytes long, {size} were written")
        return read_arrays(path)

    def names(self) -> list[str]:
        """All files but those that are still being written."""
        with os.scandir(self.folder) as found:
            return sorted(each.name for each in found if not each.name.endswith(STAGED))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files. A large one is kept to be written over.

        Manifests are gone for good when this returns. Data that comes back after the machine has
        crashed is garbage as before.
        """
        is_final = False
        for name in names:
            path = self.folder / name
            if self._spare is None and is_spare(path):
                self._spare = path.replace(self.folder / f"spare{STAGED}")
            else:
                path.unlink(missing_ok=True)
            is_final = is_final or not is_data_name(name)
        if is_final:
            sync_directory(self.folder)

    @contextlib.contextmanager
    def protecting(self) -> Iterator[Mapping[str, int]]:
        """Hold the lock that `detrain keep` takes."""
        with protecting(self.folder):
            yield protected(self.folder)

    def sweep(self) -> None:
        """Remove what a killed process left half written, and the file that is kept to be written
        over. Only the owner of the run may call it, when nothing is being written.
        """
        self._spare = None
        for ending in (STAGED, PACKING):
            for path in self.folder.glob(f"*{ending}"):
                path.unlink(missing_ok=True)
