"""What the program does to files, done once.

While a run is live, what the program's own code does to files is noted in the journal, and what it
replaces or removes is moved aside. While it is being rebuilt, the world is shown as it was when the
run began: what the run made is invisible (to exists, stat, listdir, glob and open), what it removed
or replaced is there again, directories are made in appearance only, and what is written goes to a
scratch folder. When the run is live again, files are cut back to the checkpoint, and handles that
the program has opened meanwhile write to the real files.

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
import stat
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import msgspec

from detrain.world.appearance import Appearance
from detrain.world.journal import Entry, Journal
from detrain.world.observe import Observer
from detrain.world.seal import machine_key
from detrain.world.trackers import is_tracker

__all__ = ["Files"]

_DEPTH = 8
"""How far down the stack the program's own code may be for a file to be the program's."""

_PACKAGE = str(Path(__file__).parents[1]) + os.sep

_SYSTEM = ("/dev/", "/proc/", "/sys/")

_LOOKERS = ("stat", "lstat", "access", "chmod", "utime")
_CHANGERS = ("chmod", "utime")


class Files:
    """Stands before the file functions between `start` and `stop`.

    `root` is the folder of all runs, which is not the program's; `observer` keeps the order of
    directories.
    """

    def __init__(
        self,
        folder: Path,
        owns: Callable[[str], bool],
        root: Path,
        observer: Observer,
        *,
        rebuilding: bool,
        trusted: bool = False,
        looks_only: bool = False,
    ) -> None:
        """With `looks_only`, the program changes nothing, live or not."""
        self._owns, self._root, self._observer = owns, str(root) + os.sep, observer
        self._owner = os.getpid()
        self._scratch = folder / "scratch"
        self.journal = Journal(folder, machine_key(), trusted=trusted)
        self._rebuilding, self._setup = rebuilding, True
        self._appearance = Appearance(self.journal, self._scratch, looks_only=looks_only)
        if rebuilding:
            self._appearance.look_back(self.journal.entries)
        self._new: set[str] = set()
        """Paths whose content was made after the last cut, so that no checkpoint needs it."""
        self._open: dict[str, list[weakref.ref[Any]]] = {}
        self._plain: dict[tuple[Any, str], Any] = {}
        self._real_open = builtins.open
        self._stat = os.stat

    # ---------------------------------------------------------------- from outside

    def start(self) -> None:
        """Begin."""
        replaced: list[tuple[Any, str, Any]] = [
            (builtins, "open", self._opening),
            (io, "open", self._opening),
            (os, "mkdir", self._making(os.mkdir)),
            (os, "symlink", self._linking(os.symlink)),
            (os, "link", self._linking(os.link)),
            (os, "remove", self._removing(os.remove)),
            (os, "unlink", self._removing(os.unlink)),
            (os, "rmdir", self._removing(os.rmdir)),
            (shutil, "rmtree", self._removing(shutil.rmtree)),
            (os, "rename", self._renaming(os.rename)),
            (os, "replace", self._renaming(os.replace)),
            (os, "listdir", self._listing(os.listdir)),
            (os, "scandir", self._scanning(os.scandir)),
        ]
        if self._rebuilding:
            shutil.rmtree(self._scratch, ignore_errors=True)
            replaced += [(os, name, self._looking(getattr(os, name))) for name in _LOOKERS]
        for owner, name, new in replaced:
            self._replace(owner, name, new)

    def watch(self, writers: Iterable[tuple[Any, str]]) -> None:
        """Also look at functions of a framework that write to a path past Python's `open`."""
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

    def first_loop(self) -> None:
        """The program is set up; what comes now is not executed again at every resume."""
        self._setup = False

    def lengths(self) -> dict[str, int]:
        """At a cut: how long each file that the program wrote is, its buffers written out."""
        for handles in self._open.values():
            for handle in [ref() for ref in handles]:
                if handle is not None and not handle.closed:
                    handle.flush()
        self._new.clear()
        found = {}
        paths = [e.path for e in self.journal.entries if not (e.folder or e.removed)]
        for path in dict.fromkeys(paths):
            try:
                facts = self._stat(path)
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode):
                found[path] = facts.st_size
        return found

    def begin_again(self) -> list[str]:
        """There is no checkpoint: undo all that the run has done to files."""
        return self.journal.cut(0, {})

    def go_live(self, count: int, lengths: dict[str, int]) -> list[str]:
        """The program is rebuilt: cut files back, and let open handles write to the real ones."""
        rebuilt = {path: self._handles(path) for path in self._open}
        for handles in rebuilt.values():
            for handle in handles:
                handle.flush()
        for name in _LOOKERS:
            setattr(os, name, self._plain.pop((os, name)))
        troubles = self.journal.cut(count, lengths)
        self._rebuilding = False
        for path, handles in rebuilt.items():
            for handle in handles:
                appending = "a" in getattr(handle, "mode", "")
                flags = os.O_RDWR | os.O_CREAT | (os.O_APPEND if appending else 0)
                real = os.open(path, flags, 0o644)
                os.lseek(real, 0, os.SEEK_END)
                os.dup2(real, handle.fileno())
                os.close(real)
        self._appearance.forget()
        return troubles

    def show_at(self, count: int, lengths: dict[str, int]) -> None:
        """The program is rebuilt, to be looked at: show files as they were at a checkpoint.

        What is written goes on going to the scratch folder.
        """
        self._appearance.show_at(self.journal.entries[count:], lengths, self._handles)

    def _handles(self, path: str) -> list[Any]:
        """Those that the program has open to write to a path."""
        found = [ref() for ref in self._open.get(path, ())]
        return [handle for handle in found if handle is not None and not handle.closed]

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
            filename = frame.f_code.co_filename
            if self._owns(filename) or is_tracker(filename):
                return name
            if filename.startswith(_PACKAGE):
                break
            frame = frame.f_back
        return None

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
            if self._appearance.is_hidden(name):
                _missing(file)
            place = self._appearance.now_at(name)
            return file if place == name else place
        return file

    def _target(self, name: str, mode: str) -> str:
        """Where a file is written to."""
        emptied = "w" in mode or "x" in mode
        if self._rebuilding:
            return self._appearance.target(name, mode)
        try:
            facts = self._stat(name)
        except OSError:
            self._note(Entry(name, born=True, emptied=emptied))
            self._new.add(name)
            return name
        if "x" in mode:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        if not emptied:
            self._note(Entry(name, length=facts.st_size))
        elif name in self._new:
            self._note(Entry(name))
        else:
            self._start_anew(name, facts)
        return name

    def _start_anew(self, name: str, facts: os.stat_result) -> None:
        """A file is about to be emptied: move what it has aside, and leave an empty one."""
        real = os.path.realpath(name)
        may = all(os.access(each, os.W_OK) for each in (real, os.path.dirname(real)))
        if not may or not stat.S_ISREG(facts.st_mode):
            self._note(Entry(name, emptied=True))
            return
        number = self.journal.next_aside()
        self._note(Entry(real, emptied=True, aside=number))
        self.journal.move(real, number)
        os.close(os.open(real, os.O_WRONLY | os.O_CREAT, stat.S_IMODE(facts.st_mode)))
        self._new |= {name, real}

    def _note(self, entry: Entry) -> None:
        self.journal.add(msgspec.structs.replace(entry, setup=self._setup))

    def _writing(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def writing(path: Any, *args: Any, **kwargs: Any) -> Any:
            name = self._is_ours(path)
            return plain(path if name is None else self._target(name, "wb"), *args, **kwargs)

        return writing

    def _making(self, plain: Callable[..., None]) -> Callable[..., None]:
        def making(path: Any, *args: Any, **kwargs: Any) -> None:
            name = self._is_ours(path)
            if name is not None and self._rebuilding and self._appearance.takes(name):
                self._appearance.make_folder(name)
                return
            plain(path, *args, **kwargs)
            if name is not None and not self._rebuilding:
                self._note(Entry(name, born=True, folder=True))

        return making

    def _linking(self, plain: Callable[..., None]) -> Callable[..., None]:
        symbolic = plain is os.symlink

        def linking(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
            name = self._is_ours(target)
            if name is not None and self._rebuilding and self._appearance.takes(name):
                start = os.path.dirname(name) if symbolic else os.getcwd()
                aim = os.path.abspath(os.path.join(start, os.fsdecode(source)))
                self._appearance.stand_for(name, aim)
                return
            if name is not None and not self._rebuilding and not os.path.lexists(name):
                self._note(Entry(name, born=True))
            plain(source, target, *args, **kwargs)

        return linking

    def _removing(self, plain: Callable[..., None]) -> Callable[..., None]:
        kind = plain.__name__

        def removing(path: Any, *args: Any, **kwargs: Any) -> None:
            name = None if kwargs.get("dir_fd") is not None else self._is_ours(path)
            if name is None:
                plain(path, *args, **kwargs)
            elif not self._rebuilding:
                if name in self._new or not _may_remove(kind, name):
                    plain(path, *args, **kwargs)  # which may be an error
                    return
                number = self.journal.next_aside()
                self._note(Entry(name, removed=True, folder=os.path.isdir(name), aside=number))
                self.journal.move(name, number)
            elif not self._appearance.is_hidden(name):
                self._appearance.hide(name)
            elif kind != "rmtree" or not (args or kwargs):  # which may be told to ignore errors
                _missing(path)

        return removing

    def _renaming(self, plain: Callable[..., None]) -> Callable[..., None]:
        def renaming(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
            name, new = self._is_ours(source), self._is_ours(target)
            if name is None or new is None or not (self._rebuilding or os.path.lexists(name)):
                plain(source, target, *args, **kwargs)  # which may be an error
            elif self._rebuilding:
                if self._appearance.is_hidden(name):
                    _missing(source)
                self._appearance.stand_for(new, name)
                self._appearance.hide(name)
            else:
                number = 0
                if os.path.isfile(new) and new not in self._new:
                    number = self.journal.next_aside()
                self._note(Entry(new, source=name, aside=number))
                if number:
                    self.journal.keep(new, number)
                plain(source, target, *args, **kwargs)
                (self._new.add if name in self._new else self._new.discard)(new)
                self._new.discard(name)

        return renaming

    def _looking(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def looking(path: Any, *args: Any, **kwargs: Any) -> Any:
            name = self._is_ours(path)
            if name is None:
                return plain(path, *args, **kwargs)
            if self._appearance.is_hidden(name):
                if plain is self._plain[os, "access"]:
                    return False
                _missing(path)
            place = self._appearance.now_at(name)
            if self._appearance.looks_only and plain.__name__ in _CHANGERS:
                return None
            return plain(path if place == name else place, *args, **kwargs)

        return looking

    def _listing(self, plain: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def listing(path: Any = ".") -> list[Any]:
            name = self._is_ours(path)
            if name is None:
                return plain(path)
            names = self._observer.listing(name, lambda: self._names(plain, name, path))
            return [os.fsencode(each) for each in names] if isinstance(path, bytes) else names

        return listing

    def _names(self, plain: Callable[..., list[Any]], name: str, path: Any) -> list[str]:
        """What is in a directory, as the program is to see it."""
        if not self._rebuilding:
            return [os.fsdecode(each) for each in plain(path)]
        if self._appearance.is_hidden(name):
            _missing(path)
        found = [os.fsdecode(each) for each in plain(self._appearance.now_at(name))]
        return self._appearance.names_in(name, found)

    def _scanning(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def scanning(path: Any = ".") -> Any:
            name = self._is_ours(path)
            if name is None:
                return plain(path)
            appearance = self._appearance
            if self._rebuilding and appearance.is_hidden(name):
                _missing(path)
            with plain(appearance.now_at(name) if self._rebuilding else path) as found:
                entries = {os.fsdecode(entry.name): entry for entry in found}
            names = self._observer.listing(
                name,
                lambda: [
                    each
                    for each in entries
                    if not self._rebuilding or not appearance.is_hidden(os.path.join(name, each))
                ],
            )
            return _Scan([entries[each] for each in names if each in entries])

        return scanning


class _Scan:
    """What `os.scandir` gives, in the order of the first attempt and without what is hidden."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def _may_remove(kind: str, name: str) -> bool:
    """Whether a function that removes would succeed, as far as can be told before."""
    if not os.path.lexists(name) or not os.access(os.path.dirname(name), os.W_OK):
        return False
    is_folder = os.path.isdir(name) and not os.path.islink(name)
    if kind == "rmdir":
        return is_folder and not os.listdir(name)
    return is_folder == (kind == "rmtree")


def _missing(path: Any) -> NoReturn:
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
