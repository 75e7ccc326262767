"""Where checkpoints lie. `Store` is the protocol; `LocalStore` is a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from detrain.checkpoint.durable import (
    STAGED,
    ignore,
    is_spare,
    sync_directory,
    write_durably,
)
from detrain.checkpoint.format import read_arrays
from detrain.errors import DamagedCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

__all__ = ["LocalStore", "Store"]


class Store(Protocol):
    """Files by flat names. A name, once there, stands for a whole and durable file.

    Five methods and no more, so that an object store can be one: it has no directories, no
    appending, and its uploads are atomic, as `put` is here.
    """

    def put(self, name: str, chunks: Iterable[bytes | bytearray | memoryview], kind: str) -> int:
        """Write a file; gives its size. It is durable when this returns, and absent before."""

    def read(self, name: str) -> bytes:
        """The content of a small file."""

    def arrays(self, name: str, size: int) -> dict[str, memoryview]:
        """The arrays of a data file, which must have that size."""

    def names(self) -> list[str]:
        """All names, sorted."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; names that are gone already are passed over."""


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

    def read(self, name: str) -> bytes:
        """Read a file whole."""
        path = self.folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise DamagedCheckpoint(str(path), f"can't be read: {error.strerror}") from error

    def arrays(self, name: str, size: int) -> dict[str, memoryview]:
        """Map a data file. A name that leaves the directory is refused."""
        path = self.folder / name
        if path.parent != self.folder or path.name != name:
            raise DamagedCheckpoint(name, "names a file outside the run")
        if not path.exists():
            raise DamagedCheckpoint(str(path), "is missing")
        if path.stat().st_size != size:
            raise DamagedCheckpoint(
                str(path), f"is {path.stat().st_size} bytes long, {size} were written"
            )
        return read_arrays(path)

    def names(self) -> list[str]:
        """All files but those that are still being written."""
        return sorted(p.name for p in self.folder.iterdir() if not p.name.endswith(STAGED))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, then sync the directory. A large one is kept to be written over."""
        for name in names:
            path = self.folder / name
            if self._spare is None and is_spare(path):
                self._spare = path.replace(self.folder / f"spare{STAGED}")
            path.unlink(missing_ok=True)
        sync_directory(self.folder)

    def sweep(self) -> None:
        """Remove what a killed process left half written, and the file that is kept to be written
        over. Only the owner of the run may call it, when nothing is being written.
        """
        self._spare = None
        for path in self.folder.glob(f"*{STAGED}"):
            path.unlink()
