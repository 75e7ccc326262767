"""Whether a manifest can be what DETrain wrote. Nothing in one is believed before this was asked.

A manifest's digest says that no bit was lost, not who wrote it: a hostile one has a right digest,
too. So every name is checked to be a plain one, every number to be possible, every reference to
lead somewhere, before anything is opened, made or cut by it. How objects of the program come out of
a tree is fenced in `capture.sound`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from detrain.errors import DamagedCheckpoint
from detrain.state import decode_answer, decode_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from detrain.checkpoint.manifest import Manifest, SavedState
    from detrain.state import ArrayFacts, Node, Ref, StateTree

__all__ = ["MOST_LAYERS", "MOST_TIMES", "WIDTHS", "check_manifest", "is_data_name"]

MOST_LAYERS = 4
"""Layers of an array that was compacted: each has to be unpacked to read it."""
MOST_TIMES = 64
"""How many times the room that it takes in a file a packed array is, at the most."""
WIDTHS = (1, 2, 4, 8, 16)
"""Bytes of an element."""

_DATA_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.safetensors", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{32}", re.ASCII)
_STREAMS = frozenset({"stdout", "stderr"})

_LARGEST = 1 << 62
"""Bytes, and steps: no file and no run has more."""

_END_OF_TIME = 1e11
"""Seconds: no clock goes so far, however wrong it is."""

_WITHOUT_STEP = 1_000_000
"""Iterations that did no step: of a loop around others that had nothing to loop over."""


def is_data_name(name: str) -> bool:
    """Whether a name is that of a data file, in the store itself and nowhere else."""
    return _DATA_NAME.fullmatch(name) is not None


def check_manifest(manifest: Manifest, file: str) -> None:
    """`DamagedCheckpoint`, which names the file, if a manifest says what none can."""
    for trouble in _troubles(manifest):
        raise DamagedCheckpoint(file, f"is not a manifest that DETrain wrote: {trouble}")


def _troubles(manifest: Manifest) -> Iterator[str]:
    """What is wrong; the first one is enough."""
    counts = {
        "step": manifest.step,
        "journal": manifest.journal,
        "answers": manifest.answers,
        "trace.length": manifest.trace.length,
        **{f"output of {name}": length for name, length in manifest.output.items()},
        **{f"length of {name!r}": length for name, length in manifest.files.items()},
    }
    yield from _bad_counts(counts)
    if not abs(manifest.created) < _END_OF_TIME:
        yield f"it was created at {manifest.created}"
    if manifest.output.keys() - _STREAMS:
        yield f"output: expected stdout and stderr, found {sorted(manifest.output)}"
    if not manifest.levels:
        yield "it has no loop"
    for level in manifest.levels:
        if level.iteration > manifest.step + _WITHOUT_STEP:
            yield f"loop {level.site!r}: {level.iteration} iterations in {manifest.step} steps"
    for name in manifest.files:
        if "\0" in name or not name.startswith("/") or {"..", ".", ""} & {*name.split("/")[1:]}:
            yield f"{name!r}, a file of the program, is not an absolute path"
    answers = (*manifest.observed, *(each for lv in manifest.levels for each in lv.observed))
    for name, answer in answers:
        try:
            decode_answer(answer)
        except (ValueError, OverflowError) as error:
            yield f"the world's answer to {name!r} is {answer[1][:40]!r}: {error}"
    yield from _bad_counts({f"iteration of {lv.site!r}": lv.iteration for lv in manifest.levels})
    sizes: dict[str, int] = {}
    contents: dict[str, object] = {}
    for state in manifest.states():
        content = (state.digests, state.borrowed, state.packed)
        if contents.setdefault(state.file, content) != content:
            yield f"{state.file} is the file of two states"
        yield from _state_troubles(state)
        for name, size in (
            (state.file, state.bytes),
            *((each.file, each.bytes) for each in state.elsewhere()),
        ):
            if sizes.setdefault(name, size) != size:
                yield f"{name} has {size} bytes in one place and {sizes[name]} in another"


def _bad_counts(counts: dict[str, int]) -> Iterator[str]:
    for name, count in counts.items():
        if not 0 <= count < _LARGEST:
            yield f"{name}: expected a count, found {count}"


def _state_troubles(state: SavedState) -> Iterator[str]:
    for name in (state.file, *(each.file for each in state.elsewhere())):
        if not is_data_name(name):
            yield f"{name!r} is not the name of a data file of the run"
    for each in state.elsewhere():
        yield from _bad_counts({f"size of {each.file}": each.bytes})
    yield from _bad_counts({f"size of {state.file}": state.bytes, "left out": state.left_out})
    for name, digest in (*state.digests.items(), *state.rebuilt.items()):
        if not _DIGEST.fullmatch(digest):
            yield f"the digest of {name!r}: expected 32 hexadecimal digits, found {digest[:40]!r}"
    missing = (state.borrowed.keys() | state.packed.keys()) - state.digests.keys()
    if missing:
        yield f"{min(missing)!r} is borrowed or packed and has no digest"
    yield from _packed_troubles(state)
    yield from _tree_troubles(state.tree)


def _packed_troubles(state: SavedState) -> Iterator[str]:
    """Unpacking takes memory that no file shows: it stays in proportion to the files."""
    both = state.borrowed.keys() & state.packed.keys()
    if both:
        yield f"{min(both)!r} is borrowed and packed"
    for name, each in state.packed.items():
        yield from _bad_counts({f"size of {name!r}": each.size})
        if each.width not in WIDTHS:
            yield f"{name!r} has elements of {each.width} bytes"
        if not 1 <= len(each.layers) <= MOST_LAYERS:
            yield f"{name!r} lies in {len(each.layers)} layers, expected 1 to {MOST_LAYERS}"
        for layer in each.layers:
            if each.size > MOST_TIMES * layer.bytes:
                yield f"{name!r} is {each.size} bytes in {layer.file}, which has {layer.bytes}"
    files = {each.file: each.bytes for pack in state.packed.values() for each in pack.layers}
    claimed = sum(each.size for each in set(state.packed.values()))
    if claimed > MOST_TIMES * sum(files.values()):
        yield f"{claimed} bytes are packed in files of {sum(files.values())}"


def _tree_troubles(tree: StateTree) -> Iterator[str]:
    count = len(tree.nodes)
    if len(tree.paths) != count:
        yield f"{count} objects with {len(tree.paths)} paths"
        return
    for roots in (tree.roots, tree.rebuilt, tree.dead):
        if len({name for name, _ in roots}) != len(roots):
            yield "two roots of one name"
        yield from _bad_refs((ref for _, ref in roots), count, "a root")
    # Constants are looked at once, however many objects hold them: most are a few.
    seen = {ref for node in tree.nodes for ref in _refs(node)}
    any_bad = any(True for _ in _bad_refs(seen, count, ""))
    for node, path in zip(tree.nodes, tree.paths, strict=True):
        if any_bad:
            yield from _bad_refs(_refs(node), count, path)
        if node.fields and len({name for name, _ in node.fields}) != len(node.fields):
            yield f"{path} has two fields of one name"
        if node.array is not None:
            yield from _array_troubles(node.array, path)


def _refs(node: Node) -> Iterable[Ref]:
    if not node.fields:
        return (*node.items, *node.keys)
    return (*node.items, *node.keys, *[ref for _, ref in node.fields])


def _bad_refs(refs: Iterable[Ref], count: int, path: str) -> Iterator[str]:
    for ref in refs:
        if isinstance(ref, int):
            if not 0 <= ref < count:
                yield f"{path} refers to object {ref} of {count}"
        elif ref[0] != "-":  # stands for what is not saved
            try:
                decode_scalar(ref)
            except (ValueError, OverflowError) as error:
                yield f"{path} holds {ref[0]!r} {ref[1][:40]!r}, which is no constant: {error}"


def _array_troubles(facts: ArrayFacts, path: str) -> Iterator[str]:
    sizes = (facts.storage, facts.offset, facts.storage_bytes)
    if min(sizes) < 0 or max(sizes) >= _LARGEST:
        names = ("storage", "offset", "memory")
        each = zip(names, sizes, strict=True)
        yield from _bad_counts({f"{path}, {name}": size for name, size in each})
    if facts.shape and not 0 <= min(facts.shape) <= max(facts.shape) < _LARGEST:
        yield f"{path} has the shape {facts.shape}"
    if facts.strides is not None and (
        len(facts.strides) != len(facts.shape)
        or any(not -_LARGEST < step < _LARGEST for step in facts.strides)
    ):
        yield f"{path} has the shape {facts.shape} with the strides {facts.strides}"
