"""What the program does to files, done once.

While a run is live, files that the program's own code opens for writing are noted in the journal.
While it is being rebuilt, the world is shown as it was when the run began: what the run made is
invisible (to exists, stat, listdir, glob and open), directories are made in appearance only, and
what is written goes to a scratch folder. When the run is live again, files are cut back to the
checkpoint, and handles that the program has opened meanwhile write to the real files.

Only the lowest functions are replaced (`open`, `os.stat` and the like), and only while DETrain is
at work; classes stay what they are. Paths are handled as text, because `pathlib` itself calls the
functions that are replaced here.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from detrain.world.journal import Entry, Journal, cut_back

__all__ = ["Files"]

_DEPTH = 8
"""How far down the stack the program's own code may be for a file to be the program's."""

_SYSTEM = ("/dev/", "/proc/", "/sys/")


class Files:
    """Stands before the file functions between `start` and `stop`.

    `writers` are functions of frameworks that take a path and write to it past Python's `open`.
    """

    def __init__(
        self, folder: Path, owns: Callable[[str], bool], root: Path, *, rebuilding: bool
    ) -> None:
        self._owns, self._root = owns, str(root) + os.sep
        self._owner = os.getpid()
        self._scratch = folder / "scratch"
        self.journal = Journal(folder / "files.jsonl")
        self._rebuilding = rebuilding
        self._born = {entry.path for entry in self.journal.entries if entry.born}
        self._shown: dict[str, str] = {}
        """Paths that the rebuilt program made again, and where their content is; "" for folders."""
        self._open: dict[str, list[weakref.ref[Any]]] = {}
        self._plain: dict[tuple[Any, str], Any] = {}
        self._real = {name: getattr(os, name) for name in ("stat", "listdir", "mkdir")}
        self._real_open = builtins.open

    # ---------------------------------------------------------------- from outside

    def start(self) -> None:
        """Begin."""
        replaced: list[tuple[Any, str, Any]] = [
            (builtins, "open", self._opening),
            (io, "open", self._opening),
            (os, "mkdir", self._making),
        ]
        if self._rebuilding:
            shutil.rmtree(self._scratch, ignore_errors=True)
            replaced += [
                (os, name, self._looking(getattr(os, name), name == "access"))
                for name in ("stat", "lstat", "access", "chmod", "utime")
            ]
            replaced += [
                (os, "listdir", self._listing),
                (os, "scandir", self._scanning),
                (os, "remove", self._removing(os.remove)),
                (os, "unlink", self._removing(os.unlink)),
                (os, "rmdir", self._removing(os.rmdir)),
                (os, "rename", self._renaming(os.rename)),
                (os, "replace", self._renaming(os.replace)),
            ]
        for owner, name, new in replaced:
            self._replace(owner, name, new)

    def watch(self, writers: Iterable[tuple[Any, str]]) -> None:
        """Also look at functions of a framework that write to a path."""
        for owner, name in writers:
            if (owner, name) not in self._plain:
                self._replace(owner, name, self._writing(getattr(owner, name)))

    def stop(self) -> None:
        """Put the plain functions back."""
        for (owner, name), plain in self._plain.items():
            setattr(owner, name, plain)
        self._plain.clear()

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def lengths(self) -> dict[str, int]:
        """How long each file that the program wrote is now, its buffers written out."""
        for handles in self._open.values():
            for handle in [ref() for ref in handles]:
                if handle is not None and not handle.closed:
                    handle.flush()
        found = {}
        for path in dict.fromkeys(entry.path for entry in self.journal.entries if not entry.folder):
            try:
                found[path] = self._real["stat"](path).st_size
            except OSError:
                continue
        return found

    def begin_again(self) -> list[str]:
        """There is no checkpoint: undo all that the run has done to files."""
        troubles = cut_back(self.journal.entries, 0, {})
        self.journal.cut(0)
        self._born = set()
        return troubles

    def go_live(self, count: int, lengths: dict[str, int]) -> list[str]:
        """The program is rebuilt: cut files back, and let open handles write to the real ones."""
        rebuilt = {
            path: [handle for ref in refs if (handle := ref()) is not None and not handle.closed]
            for path, refs in self._open.items()
        }
        for handles in rebuilt.values():
            for handle in handles:
                handle.flush()
        lookers = [key for key in self._plain if key[0] is os and key[1] != "mkdir"]
        for owner, name in lookers:
            setattr(owner, name, self._plain.pop((owner, name)))
        troubles = cut_back(self.journal.entries, count, lengths)
        self.journal.cut(count)
        self._rebuilding = False
        for path, handles in rebuilt.items():
            for handle in handles:
                appending = "a" in getattr(handle, "mode", "")
                flags = os.O_RDWR | os.O_CREAT | (os.O_APPEND if appending else 0)
                real = os.open(path, flags, 0o644)
                os.lseek(real, 0, os.SEEK_END)
                os.dup2(real, handle.fileno())
                os.close(real)
        self._shown.clear()
        shutil.rmtree(self._scratch, ignore_errors=True)
        return troubles

    # ---------------------------------------------------------------- what is whose

    def _is_ours(self, path: Any) -> str | None:
        """The absolute path, if it is one that the program's own code means."""
        if not isinstance(path, str | bytes | os.PathLike) or os.getpid() != self._owner:
            return None  # a handle's number, or a loader worker, which was forked with all of this
        name = os.path.abspath(os.fsdecode(path))
        if name.startswith(_SYSTEM) or name.startswith(self._root):
            return None
        frame: FrameType | None = sys._getframe(2)
        for _ in range(_DEPTH):
            if frame is None:
                break
            if self._owns(frame.f_code.co_filename):
                return name
            frame = frame.f_back
        return None

    def _is_hidden(self, name: str) -> bool:
        """Whether the run made this, or a folder above it, and the rebuilt program did not yet."""
        while True:
            if name in self._shown:
                return False
            if name in self._born:
                return True
            parent = os.path.dirname(name)
            if parent == name:
                return False
            name = parent

    def _exists(self, name: str) -> bool:
        try:
            self._real["stat"](name)
        except OSError:
            return False
        return True

    # ---------------------------------------------------------------- the functions

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        self._plain[owner, name] = getattr(owner, name)
        setattr(owner, name, new)

    def _opening(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        name = self._is_ours(file)
        if name is None:
            return self._real_open(file, mode, *args, **kwargs)
        writes = any(letter in mode for letter in "wax+")
        target = self._target(name, mode) if writes else self._source(name, file)
        handle = self._real_open(target, mode, *args, **kwargs)
        if writes:
            self._open.setdefault(name, []).append(weakref.ref(handle))
        return handle

    def _source(self, name: str, file: Any) -> Any:
        """Where a file is read from."""
        if self._rebuilding:
            if self._shown.get(name):
                return self._shown[name]
            if self._is_hidden(name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(file))
        return file

    def _target(self, name: str, mode: str) -> str:
        """Where a file is written to."""
        if not self._rebuilding:
            born = not self._exists(name)
            emptied = "w" in mode or "x" in mode
            length = 0 if born or emptied else self._real["stat"](name).st_size
            self.journal.add(Entry(name, born=born, emptied=emptied, length=length))
            return name
        if name in self._shown:
            return self._shown[name]
        self._scratch.mkdir(parents=True, exist_ok=True)
        scratch = str(self._scratch / f"{len(self._shown)}-{os.path.basename(name)}")
        if not self._is_hidden(name) and self._exists(name):
            if "x" in mode:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            shutil.copyfile(name, scratch)
        self._shown[name] = scratch
        return scratch

    def _writing(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def writing(path: Any, *args: Any, **kwargs: Any) -> Any:
            name = self._is_ours(path)
            return plain(path if name is None else self._target(name, "wb"), *args, **kwargs)

        return writing

    def _making(self, path: Any, *args: Any, **kwargs: Any) -> None:
        name = self._is_ours(path)
        if name is not None and self._rebuilding and self._is_hidden(name):
            self._shown[name] = ""
            return
        self._real["mkdir"](path, *args, **kwargs)
        if name is not None and not self._rebuilding:
            self.journal.add(Entry(name, born=True, folder=True))

    def _looking(self, plain: Callable[..., Any], is_access: bool) -> Callable[..., Any]:
        def looking(path: Any, *args: Any, **kwargs: Any) -> Any:
            name = self._is_ours(path)
            if name is not None:
                if self._shown.get(name):
                    return plain(self._shown[name], *args, **kwargs)
                if self._is_hidden(name):
                    if is_access:
                        return False
                    missing = os.strerror(errno.ENOENT)
                    raise FileNotFoundError(errno.ENOENT, missing, os.fspath(path))
            return plain(path, *args, **kwargs)

        return looking

    def _listing(self, path: Any = ".") -> list[Any]:
        name = self._is_ours(path)
        if name is None:
            found: list[Any] = self._real["listdir"](path)
            return found
        if self._is_hidden(name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        return [
            each
            for each in self._real["listdir"](path)
            if not self._is_hidden(os.path.join(name, os.fsdecode(each)))
        ]

    def _scanning(self, path: Any = ".") -> Any:
        plain = self._plain[os, "scandir"]
        name = self._is_ours(path)
        if name is None:
            return plain(path)
        if self._is_hidden(name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        return _Scan(plain(path), lambda entry: not self._is_hidden(os.path.join(name, entry)))

    def _removing(self, plain: Callable[..., None]) -> Callable[..., None]:
        def removing(path: Any, *args: Any, **kwargs: Any) -> None:
            name = self._is_ours(path)
            if name is None:
                plain(path, *args, **kwargs)
            elif self._shown.pop(name, None) is None and self._is_hidden(name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
            # Otherwise the first attempt has removed it, or it is to be removed in appearance only.

        return removing

    def _renaming(self, plain: Callable[..., None]) -> Callable[..., None]:
        def renaming(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
            name, new = self._is_ours(source), self._is_ours(target)
            if name is None or new is None:
                plain(source, target, *args, **kwargs)
            elif name in self._shown:
                self._shown[new] = self._shown.pop(name)

        return renaming


class _Scan:
    """What `os.scandir` gives, without what is hidden."""

    def __init__(self, inner: Any, shown: Callable[[str], bool]) -> None:
        self._inner, self._shown = inner, shown

    def __iter__(self) -> Iterator[Any]:
        return (entry for entry in self._inner if self._shown(os.fsdecode(entry.name)))

    def __next__(self) -> Any:
        while True:
            entry = next(self._inner)
            if self._shown(os.fsdecode(entry.name)):
                return entry

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self._inner.close()

    def close(self) -> None:
        self._inner.close()
