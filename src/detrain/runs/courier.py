"""The courier: a process of its own that brings a run's files to a store and back.

It is another process because clients of stores draw random numbers, start threads and take time,
none of which may happen in the program's. It is told what to do line by line on its input, and
answers with a line each; if its input ends, because the program was killed, it still brings away
what was committed.

A checkpoint is uploaded from hard links, so that the run may give it up meanwhile: data files
first, then the run's own files, the manifest last.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from detrain.checkpoint.manifest import Manifest, decode_manifest
from detrain.checkpoint.objects import Found, Objects
from detrain.checkpoint.protected import PROTECTED, decode_protected, protect, protected, protecting
from detrain.errors import DetrainError, RunLocked
from detrain.runs import lease as leases
from detrain.runs.lease import Lease
from detrain.runs.remote import (
    LEASE,
    Synced,
    fetch,
    fetch_heads,
    present,
    step_of,
)

__all__ = ["Pusher", "main"]


class Pusher:
    """Uploads one run. `may_publish` is asked before a manifest is: is the run still ours?"""

    def __init__(self, objects: Objects, folder: Path, lease: Lease | None = None) -> None:
        self._objects, self._folder, self._run = objects, folder, folder.name
        self._lease = lease
        self._outbox = folder / "outbox"
        self._named: dict[int, set[str]] = {}

    def push(self) -> int | None:
        """Bring the newest checkpoint and the run's files away; gives its step."""
        shutil.rmtree(self._outbox, ignore_errors=True)
        self._outbox.mkdir(parents=True)
        try:
            return self._push()
        finally:
            shutil.rmtree(self._outbox, ignore_errors=True)

    def _push(self) -> int | None:
        synced = Synced(self._folder)
        there = {
            name.removeprefix(f"{self._run}/"): found
            for name, found in self._objects.list(self._run).items()
        }
        step, linked = self._link_newest()
        manifest = f"checkpoints/{step:010d}.json" if step is not None else ""
        for path in linked:
            if path != manifest:
                self._upload(path, self._outbox / Path(path).name, synced, there)
        for path in present(self._folder, lambda path: not path.startswith("checkpoints/")):
            self._upload_growing(path, synced, there)
        if self._lease is not None and not self._lease.is_held():
            raise RunLocked(self._run, "another process, which took it over from the store")
        if step is not None:
            self._upload(manifest, self._outbox / Path(manifest).name, synced, there)
        self._push_compacted(step, synced, there)
        self._exchange_protected(there)
        self._collect(there, step)
        synced.write()
        return step

    def _push_compacted(self, newest: int | None, synced: Synced, there: dict[str, Found]) -> None:
        """Older checkpoints that the store has as they were before they were compacted."""
        for path in present(self._folder, lambda p: step_of(p) in self._in(there) - {newest}):
            if synced.are_equal(path, there[path]):
                continue
            try:
                step, linked = self._link(path)
            except FileNotFoundError:
                continue  # it was given up, or compacted, just now
            for each in linked:
                self._upload(each, self._outbox / Path(each).name, synced, there)
            self._named[step] = {each for each in linked if each != path}

    def _in(self, there: dict[str, Found]) -> set[int | None]:
        """The steps that the store has."""
        return {step_of(path) for path in there} - {None}

    def _link(self, path: str) -> tuple[int, list[str]]:
        """Hold on to a checkpoint: links to its data files, and to its manifest, the last one.

        The manifest is read through its link, because another may take its place meanwhile.
        """
        held = self._outbox / Path(path).name
        held.unlink(missing_ok=True)
        os.link(self._folder / path, held)
        manifest = decode_manifest(held.read_bytes(), path)
        paths = [f"checkpoints/{file}" for file in manifest.data_files()]
        for each in paths:
            link = self._outbox / Path(each).name
            if not link.exists():
                os.link(self._folder / each, link)
        return manifest.step, [*paths, path]

    def _link_newest(self) -> tuple[int | None, list[str]]:
        """Hold on to the newest checkpoint: links that stay when the run gives it up."""
        while True:
            steps = [
                step_of(path) for path in present(self._folder, lambda p: step_of(p) is not None)
            ]
            if not steps:
                return None, []
            step = max(step for step in steps if step is not None)
            name = f"checkpoints/{step:010d}.json"
            try:
                _, paths = self._link(name)
            except FileNotFoundError:
                continue  # it was given up for a newer one
            self._named[step] = {path for path in paths if path != name}
            return step, paths

    def _upload(self, path: str, source: Path, synced: Synced, there: dict[str, Found]) -> None:
        facts = source.stat()
        stamp = (facts.st_size, facts.st_mtime_ns)
        if synced.are_equal(path, there.get(path)):
            return
        there[path] = self._objects.put(f"{self._run}/{path}", source)
        synced.note(path, there[path].mark, stamp)

    def _upload_growing(self, path: str, synced: Synced, there: dict[str, Found]) -> None:
        """Upload a file that the run may be writing to: what is in it now."""
        if synced.are_equal(path, there.get(path)):
            return
        copy = self._outbox / "growing"
        try:
            facts = (self._folder / path).stat()
            with (self._folder / path).open("rb") as source, copy.open("wb") as target:
                left = facts.st_size
                while left and (chunk := source.read(min(left, 1 << 20))):
                    target.write(chunk)
                    left -= len(chunk)
        except FileNotFoundError:
            return
        there[path] = self._objects.put(f"{self._run}/{path}", copy)
        synced.note(path, there[path].mark, (facts.st_size, facts.st_mtime_ns))

    def _exchange_protected(self, there: dict[str, Found]) -> None:
        """Names that were given in the store hold here, too; the store's list is the valid one."""
        folder, path = self._folder / "checkpoints", f"checkpoints/{PROTECTED}"
        if not folder.is_dir():
            return
        with protecting(folder):
            here = protected(folder)
            if path in there:
                raw = self._objects.read(f"{self._run}/{path}", 1 << 20)
                names = decode_protected(raw, path)
                if names != here:
                    protect(folder, names)
            elif here:
                there[path] = self._objects.put(f"{self._run}/{path}", folder / PROTECTED)

    def _collect(self, there: dict[str, Found], newest: int | None) -> None:
        """Remove what the run has given up: manifests first, then what none of the kept names."""
        here = set(present(self._folder, lambda _: True))
        names = protected(self._folder / "checkpoints")
        kept = {*names.values(), newest}
        gone = [
            p for p in there if step_of(p) is not None and p not in here and step_of(p) not in kept
        ]
        self._objects.remove(f"{self._run}/{path}" for path in gone)
        named: set[str] = set()
        for path in there:
            step = step_of(path)
            if step is not None and path not in gone:
                if step not in self._named:
                    self._named[step] = _names(self._objects, self._run, path)
                named |= self._named[step]
        unnamed = [
            path
            for path in there
            if step_of(path) is None
            and path not in named
            and path not in (LEASE, f"checkpoints/{PROTECTED}")
            and (path.endswith(".safetensors") or path not in here)
        ]
        self._objects.remove(f"{self._run}/{path}" for path in unnamed)


def _names(objects: Objects, run: str, path: str) -> set[str]:
    manifest: Manifest = decode_manifest(objects.read(f"{run}/{path}"), path)
    return {f"checkpoints/{file}" for file in manifest.data_files()}


class _Courier:
    """Does what it is told, one line at a time."""

    def __init__(self, address: str, root: Path, owner: int) -> None:
        self._address, self._root, self._owner = address, root, owner
        self._objects = Objects(address)
        self._pusher: Pusher | None = None
        self._lease: Lease | None = None
        self._ended = threading.Event()

    def do(self, line: str) -> dict[str, Any]:
        """One command; gives the answer."""
        command, _, name = line.strip().partition(" ")
        if command == "heads":
            fetch_heads(self._objects, self._root)
            return {"done": command}
        if command == "open":
            self._lease = Lease(self._objects, name, self._owner, _say)
            self._lease.take()
            threading.Thread(target=self._beat, args=[self._lease], daemon=True).start()
            fetch(self._objects, self._root / name, keep_newer=True)
            self._pusher = Pusher(self._objects, self._root / name, self._lease)
            return {"done": command}
        step = self._pusher.push() if self._pusher is not None else None
        return {"done": command, "step": step}

    def _beat(self, lease: Lease) -> None:
        """Say that the run is worked on, as long as it is."""
        while not self._ended.wait(leases.BEAT):
            try:
                if not lease.is_held():
                    return
                lease.beat()
            except DetrainError:
                continue  # it is tried again, and the upload will say it

    def end(self) -> None:
        """Let the run go."""
        self._ended.set()
        if self._lease is not None:
            self._lease.release()


def _commands() -> Iterator[str]:
    """Lines of the input until it ends; of several uploads that were asked for, one is done."""
    pending = b""
    while chunk := os.read(0, 1 << 16):
        *lines, pending = (pending + chunk).split(b"\n")
        pushes = [line for line in lines if line == b"push"]
        yield from (line.decode() for line in [*(x for x in lines if x != b"push"), *pushes[:1]])


def _say(text: str) -> None:
    _answer({"say": text})


def _answer(value: dict[str, Any]) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
        sys.stdout.buffer.flush()
    except (BrokenPipeError, ValueError):
        return  # nobody listens any more


def main(address: str, root: str, owner: str) -> None:
    """Serve until the input ends; then bring away what is left, whoever listens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        courier = _Courier(address, Path(root), int(owner))
    except DetrainError as error:
        _answer({"failed": str(error), "kind": type(error).__name__})
        return
    opened = False
    for line in _commands():
        try:
            _answer(courier.do(line))
            opened = opened or line.startswith("open")
        except RunLocked as error:
            _answer({"failed": str(error), "kind": "RunLocked", "owner": error.owner})
        except (DetrainError, OSError) as error:
            _answer({"failed": str(error), "kind": type(error).__name__})
    try:
        if opened:
            _answer(courier.do("push"))
    except (DetrainError, OSError) as error:
        _answer({"failed": str(error), "kind": type(error).__name__})
    finally:
        courier.end()
        _answer({"done": "end"})


if __name__ == "__main__":
    main(*sys.argv[1:])
