"""Object stores, through fsspec: `s3://bucket/prefix`, and whatever else fsspec speaks.

An upload is atomic there: an object is absent, the old one or the new one, never half of it. (Where
fsspec means a file system, it is written beside its target and renamed.) What fails for a moment is
tried again, with growing pauses; what fails for good is a `StoreUnavailable` with the address.
Nothing here is imported unless an address is used.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from detrain.checkpoint.format import ArrayBytes, encode_header, read_arrays
from detrain.checkpoint.protected import PROTECTED, decode_protected
from detrain.checkpoint.sound import is_data_name
from detrain.errors import DamagedCheckpoint, StoreUnavailable, UsageError

__all__ = ["Found", "ObjectStore", "Objects", "is_address"]

Value = TypeVar("Value")

_PAUSES = (0.5, 2.0)
"""Seconds between attempts; clients of stores try again by themselves, too."""

_FINAL = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, DamagedCheckpoint)
_LARGEST_READ = 1 << 30


def is_address(text: str) -> bool:
    """Whether a text is the address of a store rather than a path."""
    return "://" in text


class Found(NamedTuple):
    """What a store says of an object: its size, and a mark that changes with its content."""

    size: int
    mark: str


class Objects:
    """The objects below an address, by names that may have slashes in them."""

    def __init__(
        self,
        address: str,
        pauses: Sequence[float] = _PAUSES,
        sleep: Callable[[float], None] = time.sleep,
        files: Any = None,
    ) -> None:
        self.address = address.rstrip("/")
        self._pauses, self._sleep = pauses, sleep
        self._fs = _file_system(self.address) if files is None else files
        self._base: str = self._fs._strip_protocol(self.address).rstrip("/")
        protocols = self._fs.protocol
        self._renames = bool(
            {"file", "local"} & {*([protocols] if isinstance(protocols, str) else protocols)}
        )

    def _path(self, name: str) -> str:
        if name.startswith("/") or ".." in name.split("/"):
            raise UsageError(f"{name!r} is not the name of an object below {self.address}")
        return f"{self._base}/{name}"

    def put(self, name: str, source: Path) -> Found:
        """Upload a file; it is there, whole, when this returns."""
        size = source.stat().st_size
        path = self._path(name)

        def upload() -> Found:
            if self._renames:
                self._fs.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH120
                self._fs.put_file(str(source), f"{path}.staged")
                self._fs.mv(f"{path}.staged", path)
            else:
                self._fs.put_file(str(source), path)
            found = self._look(path)
            if found.size != size:
                raise OSError(f"{found.size} bytes arrived, {size} were sent")
            return found

        return self._trying(name, upload)

    def put_bytes(self, name: str, data: bytes, *, new: bool = False) -> None:
        """Upload a small object; `FileExistsError` if it is to be `new` and is not.

        Where the store can't promise that (it is known of S3), two who ask at once may both win.
        """
        path = self._path(name)

        def upload() -> None:
            if new and self._fs.exists(path):
                raise FileExistsError(path)
            if self._renames:
                self._fs.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH120
            self._fs.pipe_file(path, data, **({"mode": "create"} if new else {}))

        self._trying(name, upload)

    def read(self, name: str, most: int = _LARGEST_READ) -> bytes:
        """The content of an object of at most that size; `FileNotFoundError` if there is none."""
        path = self._path(name)

        def download() -> bytes:
            found = self._look(path)
            if found.size > most:
                raise DamagedCheckpoint(
                    f"{self.address}/{name}", f"is {found.size} bytes long, expected at most {most}"
                )
            content: bytes = self._fs.cat_file(path)
            return content

        return self._trying(name, download)

    def get(self, name: str, target: Path) -> None:
        """Download an object; the file is there, whole, when this returns."""
        path = self._path(name)
        staged = target.with_name(target.name + ".staged")

        def download() -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            size = self._look(path).size
            self._fs.get_file(path, str(staged))
            if staged.stat().st_size != size:
                raise OSError(f"{staged.stat().st_size} bytes arrived, {size} were expected")
            staged.replace(target)

        self._trying(name, download)

    def list(self, below: str = "") -> dict[str, Found]:
        """All objects whose names begin with a folder's, by name, sorted."""
        base = f"{self._base}/{below}".rstrip("/")

        def look() -> dict[str, Found]:
            self._fs.invalidate_cache()
            try:
                found: Mapping[str, Any] = self._fs.find(base, detail=True)
            except FileNotFoundError:
                return {}
            start = len(self._fs._strip_protocol(self._base)) + 1
            return {
                path[start:]: _facts(facts)
                for path, facts in sorted(found.items())
                if not path.endswith(".staged")
            }

        return self._trying(below or "*", look)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already are passed over."""
        for name in names:
            path = self._path(name)
            with contextlib.suppress(FileNotFoundError):
                self._trying(name, lambda path=path: self._fs.rm_file(path))  # type: ignore[misc]

    def _look(self, path: str) -> Found:
        self._fs.invalidate_cache(os.path.dirname(path))  # noqa: PTH120
        return _facts(self._fs.info(path))

    def _trying(self, name: str, action: Callable[[], Value]) -> Value:
        """Do it; again if it fails in a way that may pass."""
        for number in range(len(self._pauses) + 1):
            try:
                return action()
            except _FINAL as error:
                if isinstance(error, PermissionError):
                    raise StoreUnavailable(f"{self.address}/{name}", error, "") from error
                raise
            except Exception as error:
                lasting = "credential" in type(error).__name__.lower()
                if lasting or number == len(self._pauses):
                    tried = "" if lasting else f" after {number + 1} attempts"
                    raise StoreUnavailable(f"{self.address}/{name}", error, tried) from error
                self._sleep(self._pauses[number])
        raise AssertionError(name)


def _facts(info: Mapping[str, Any]) -> Found:
    mark = info.get("ETag") or info.get("etag") or info.get("mtime") or info.get("created") or ""
    if isinstance(mark, datetime.datetime):
        mark = mark.timestamp()
    return Found(int(info.get("size") or 0), str(mark).strip('"'))


def _file_system(address: str) -> Any:
    protocol = address.partition("://")[0]
    try:
        fsspec: Any = importlib.import_module("fsspec")
        return fsspec.filesystem(protocol, skip_instance_cache=True, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        extra = "detrain[s3]" if protocol in ("s3", "s3a") else "fsspec"
        raise UsageError(
            f"{address}: {error}. Stores are reached through fsspec: pip install '{extra}'"
        ) from error


class ObjectStore:
    """A `Store` of which every file is an object. Data files are mapped from copies in `cache`."""

    def __init__(self, objects: Objects, cache: Path) -> None:
        self._objects, self._cache = objects, cache

    def put(self, name: str, chunks: Iterable[bytes | bytearray | memoryview], kind: str) -> int:
        """Upload; gives the size."""
        with tempfile.NamedTemporaryFile(dir=_made(self._cache), suffix=".staged") as file:
            size = sum(file.write(chunk) for chunk in chunks)
            file.flush()
            self._objects.put(name, Path(file.name))
        return size

    def put_arrays(self, name: str, arrays: Sequence[ArrayBytes], kind: str = "data") -> int:
        """Upload a header and the arrays."""
        return self.put(name, [encode_header(arrays), *(each.data for each in arrays)], kind)

    def read(self, name: str) -> bytes:
        """Download a small object."""
        try:
            return self._objects.read(name)
        except FileNotFoundError:
            raise DamagedCheckpoint(f"{self._objects.address}/{name}", "is missing") from None

    def arrays(self, name: str, size: int) -> dict[str, memoryview]:
        """Download a data file, once for each content that it has, and map it."""
        if not is_data_name(name):
            raise DamagedCheckpoint(name, "expected the name of a data file of the run")
        found = self._objects.list(name).get(name)
        if found is None:
            raise DamagedCheckpoint(f"{self._objects.address}/{name}", "is missing")
        if found.size != size:
            raise DamagedCheckpoint(
                f"{self._objects.address}/{name}",
                f"is {found.size} bytes long, {size} were written",
            )
        mark = hashlib.blake2b(found.mark.encode(), digest_size=8).hexdigest()
        path = _made(self._cache) / f"{mark}-{name}"
        if not path.exists():
            self._objects.get(name, path)
        return read_arrays(path)

    def names(self) -> list[str]:
        """All names."""
        return sorted(name for name in self._objects.list() if "/" not in name)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects."""
        self._objects.remove(names)

    @contextlib.contextmanager
    def protecting(self) -> Iterator[Mapping[str, int]]:
        """Object stores have no locks: what is protected now."""
        try:
            yield decode_protected(self._objects.read(PROTECTED), PROTECTED)
        except FileNotFoundError:
            yield {}


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
