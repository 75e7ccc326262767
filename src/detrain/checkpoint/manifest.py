"""The manifest: what a checkpoint is. Without a manifest that names it, a data file is nothing.

Canonical JSON under a version and a digest of its own, so that a flipped bit in it is found as one
in the data is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from detrain.checkpoint.sound import check_manifest
from detrain.errors import DamagedCheckpoint, NewerFormat
from detrain.state import Ref, Scalar, StateTree
from detrain.trace.digest import digest_text
from detrain.trace.log import TraceMark

__all__ = [
    "VERSION",
    "Borrowed",
    "Manifest",
    "Packed",
    "SavedLevel",
    "SavedLoop",
    "SavedState",
    "decode_manifest",
    "encode_manifest",
]

VERSION = 3
"""1 had no borrowed arrays, 2 no packed ones."""


class Borrowed(msgspec.Struct, frozen=True):
    """An array that lies in the data file of another state, under the name that it has there."""

    file: str
    bytes: int
    name: str


class Packed(msgspec.Struct, frozen=True):
    """An array that was compacted: its bytes are the exclusive or of what lies in these places.

    Each place has `size` bytes when it is unpacked (see `packing`); `width` is the size of an
    element. All places that are needed stand here, so that a file which is needed is named.
    """

    size: int
    width: int
    layers: tuple[Borrowed, ...]


class SavedState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A snapshot that is durable: its structure, and the data file with its arrays' digests.

    `rebuilt` are digests of arrays that are not in the file: the program makes them again.
    `borrowed` are arrays whose bytes lie in another file: that of another state of the same
    checkpoint, or of an earlier one. They have digests as all others. `packed` are arrays of a
    checkpoint that was compacted.
    """

    tree: StateTree
    positions: dict[str, dict[str, str]]
    file: str
    bytes: int
    digests: dict[str, str]
    rebuilt: dict[str, str] = {}
    gradients: bool = True
    left_out: int = 0
    borrowed: dict[str, Borrowed] = {}
    packed: dict[str, Packed] = {}

    def place(self, name: str) -> Borrowed:
        """Where an array that is not packed lies."""
        return self.borrowed.get(name) or Borrowed(self.file, self.bytes, name)

    def lends(self) -> dict[str, Borrowed]:
        """Where its arrays lie as they are, by their digests."""
        return {
            digest: self.place(name)
            for name, digest in self.digests.items()
            if name not in self.packed
        }

    def elsewhere(self) -> Iterator[Borrowed]:
        """What it names besides the arrays of its own file."""
        yield from self.borrowed.values()
        for each in self.packed.values():
            yield from each.layers

    def files(self) -> frozenset[str]:
        """The files that its arrays lie in."""
        return frozenset({self.file, *(each.file for each in self.elsewhere())})


class SavedLoop(msgspec.Struct, frozen=True):
    """A loop that was finished before the cut: the state that it left, or None to run it again."""

    site: str
    entry: str
    exit: SavedState | None


class SavedLevel(msgspec.Struct, frozen=True):
    """An active loop: where it is, what was finished in its iteration, the state at its head.

    `entry` is the digest of the generators' positions when the loop was entered, `origin` and
    `order` are the iterable's own account of itself (see `frameworks.base.Positioned`).
    """

    site: str
    iteration: int
    entry: str
    origin: str
    order: str
    finished: tuple[SavedLoop, ...]
    state: SavedState
    observed: tuple[tuple[str, Scalar], ...] = ()


class Manifest(msgspec.Struct, frozen=True):
    """A checkpoint: the stack of active loops, and how far files went.

    `observed` are the answers that the program got from the world, outside of loops here and since
    the head of a loop in a level. `journal` is how many entries the journal of the program's files
    had, `files` how long they were. `kept` are places, by the paths of loops, that the program was
    seen to use though its plan leaves them out: they are saved. `hasty` are arrays, by the same
    paths, that it was seen to change before its update: they are copied at once. `answers` is how
    long the file of answers was, where they decide how the program goes.
    """

    step: int
    created: float
    finished: tuple[SavedLoop, ...]
    levels: tuple[SavedLevel, ...]
    trace: TraceMark
    output: dict[str, int]
    observed: tuple[tuple[str, Scalar], ...] = ()
    journal: int = 0
    files: dict[str, int] = {}
    kept: dict[str, tuple[str, ...]] = {}
    answers: int = 0
    hasty: dict[str, tuple[str, ...]] = {}

    def states(self) -> list[SavedState]:
        """All states, each once for each place that names it."""
        levels = [level.state for level in self.levels]
        loops = [loop for level in self.levels for loop in level.finished]
        exits = [loop.exit for loop in (*self.finished, *loops)]
        return [*levels, *(state for state in exits if state is not None)]

    def data_files(self) -> dict[str, int]:
        """The data files, with their sizes."""
        states = self.states()
        lent = (each for state in states for each in state.elsewhere())
        return {
            **{state.file: state.bytes for state in states},
            **{each.file: each.bytes for each in lent},
        }


_encoder = msgspec.json.Encoder(order="deterministic")


class _Envelope(msgspec.Struct, frozen=True):
    version: int
    digest: str
    body: msgspec.Raw


class _WrittenTree(msgspec.Struct, frozen=True, omit_defaults=True):
    """A `StateTree` whose nodes and paths are text by now."""

    roots: tuple[tuple[str, Ref], ...]
    nodes: msgspec.Raw
    paths: msgspec.Raw
    rebuilt: tuple[tuple[str, Ref], ...] = ()
    dead: tuple[tuple[str, Ref], ...] = ()


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest."""
    levels = [
        msgspec.structs.replace(
            level, state=_with_text(level.state), finished=_with_texts(level.finished)
        )
        for level in manifest.levels
    ]
    written = msgspec.structs.replace(
        manifest, levels=tuple(levels), finished=_with_texts(manifest.finished)
    )
    body = _encoder.encode(written)
    envelope = _Envelope(VERSION, digest_text(body), msgspec.Raw(body))
    return msgspec.json.encode(envelope) + b"\n"


def _with_texts(loops: tuple[SavedLoop, ...]) -> tuple[SavedLoop, ...]:
    return tuple(
        loop if loop.exit is None else msgspec.structs.replace(loop, exit=_with_text(loop.exit))
        for loop in loops
    )


def _with_text(state: SavedState) -> SavedState:
    tree = state.tree
    nodes, paths = _text_of(tree.nodes), _text_of(tree.paths)
    written = _WrittenTree(tree.roots, nodes, paths, tree.rebuilt, tree.dead)
    return msgspec.structs.replace(state, tree=written)


def _text_of(part: tuple[Any, ...]) -> msgspec.Raw:
    """A part of a tree as text: that of the manifest before, if it is the same one."""
    for known, text in _texts:
        if known is part:
            return text
    text = msgspec.Raw(_encoder.encode(part))
    _texts[:] = [(part, text), *_texts[: _FEW - 1]]
    return text


_texts: list[tuple[tuple[Any, ...], msgspec.Raw]] = []
"""Parts of trees that were written last, with their text."""

_FEW = 4
"""How many are kept: those of two trees."""


def decode_manifest(raw: bytes, file: str) -> Manifest:
    """Read a manifest; `DamagedCheckpoint` names `file` if it can't be."""
    try:
        envelope = msgspec.json.decode(raw, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedCheckpoint(file, f"is not a whole manifest: {error}") from error
    if envelope.version > VERSION:
        raise NewerFormat(file, envelope.version, VERSION)
    found = digest_text(bytes(envelope.body))
    if found != envelope.digest:
        raise DamagedCheckpoint(
            file, f"was altered: its digest is {found}, {envelope.digest} was written"
        )
    try:
        manifest = msgspec.json.decode(envelope.body, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedCheckpoint(file, f"is not a manifest: {error}") from error
    check_manifest(manifest, file)
    return manifest
