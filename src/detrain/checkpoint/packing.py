"""Packing the bytes of an array, for checkpoints that are kept for long.

A *layer* is one frame of zstd. In it, for each piece of the array, come the first bytes of all
elements, then all second bytes, and so on: of numbers that are alike, the first bytes are too. An
array is one layer, or the exclusive or of several: then the later ones hold only what is different
from another checkpoint's array, which is mostly zeros in the first bytes.

Nothing in a file is believed: how much memory is taken is known before anything is unpacked, and a
layer that holds less or more than it should is an error. A frame that is very small is followed by
one that is skipped, so that an array is never more than `MOST_TIMES` as large as its layers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from detrain.checkpoint.sound import MOST_TIMES
from detrain.errors import DamagedCheckpoint, UsageError

__all__ = ["pack", "pieces", "require_zstd", "unpack", "unpacked_pieces"]

_PIECE = 1 << 18
"""Bytes that are taken apart at once; a multiple of every width."""
_LEVEL = 1
"""Of zstd: higher ones take longer and give next to nothing, the rest being noise."""
_SKIPPED = b"\x50\x2a\x4d\x18"
"""How a frame begins that holds nothing; its length follows."""
_LARGEST_WINDOW = 8 << 20
"""Bytes that unpacking may have to remember."""


def require_zstd(why: str) -> Any:
    """The package that packs; `UsageError` if it is not there."""
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise UsageError(f"{why} takes zstandard: pip install 'detrain[compact]'") from None


def pieces(data: memoryview) -> Iterator[memoryview]:
    """An array, piece by piece."""
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


def pack(
    data: Iterable[memoryview | bytes | bytearray],
    size: int,
    width: int,
    base: Iterable[bytes] | None = None,
) -> Iterator[bytes]:
    """A layer for the pieces of an array; with a `base`, for what is different from its pieces."""
    zstd = require_zstd("to compact")
    frame = zstd.ZstdCompressor(level=_LEVEL).compressobj(size=size)
    room = 0
    different = (
        map(bytes, data)
        if base is None
        else (_different(bytes(piece), other) for piece, other in zip(data, base, strict=True))
    )
    for piece in different:
        for part in _shuffled(piece, width):
            # A block has one table of how often bytes come: each part gets its own.
            packed = frame.compress(part) + frame.flush(zstd.COMPRESSOBJ_FLUSH_BLOCK)
            room += len(packed)
            yield packed
    last = frame.flush()
    yield last
    missing = -(-size // MOST_TIMES) - room - len(last)
    if missing > 0:
        yield _SKIPPED + missing.to_bytes(4, "little") + bytes(missing)


def unpack(layers: Sequence[memoryview], size: int, width: int, file: str) -> memoryview:
    """An array from its layers; `DamagedCheckpoint` names the file if it can't be."""
    for layer in layers:
        if size > MOST_TIMES * len(layer):
            raise DamagedCheckpoint(file, f"{len(layer)} bytes claim to be {size} when unpacked")
    whole, at = bytearray(size), 0
    for piece in unpacked_pieces(layers, size, width, file):
        whole[at : at + len(piece)] = piece
        at += len(piece)
    return memoryview(whole)


def unpacked_pieces(
    layers: Sequence[memoryview], size: int, width: int, file: str
) -> Iterator[bytes]:
    """The pieces of an array, as they are unpacked."""
    zstd = require_zstd(f"{file} was compacted: to read it")
    opened = [
        zstd.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(
            layer, read_across_frames=True
        )
        for layer in layers
    ]
    try:
        for at in range(0, size, _PIECE):
            count = min(_PIECE, size - at)
            parts = [_exactly(frame, count, file) for frame in opened]
            yield _joined(_different(*parts), width)
        if any(frame.read(1) for frame in opened):
            raise DamagedCheckpoint(file, f"holds more than {size} bytes where it is unpacked")
    except zstd.ZstdError as error:
        raise DamagedCheckpoint(file, f"can't be unpacked: {error}") from error


def _exactly(frame: Any, count: int, file: str) -> bytes:
    part: bytes = frame.read(count)
    while len(part) < count:
        more = frame.read(count - len(part))
        if not more:
            raise DamagedCheckpoint(file, "a packed array in it was cut off")
        part += more
    return part


def _different(*parts: bytes) -> bytes:
    """The exclusive or of texts of one length."""
    if len(parts) == 1:
        return parts[0]
    found = 0
    for part in parts:
        found ^= int.from_bytes(part, "little")
    return found.to_bytes(len(parts[0]), "little")


def _shuffled(data: bytes, width: int) -> list[bytes]:
    """All first bytes of the elements, all second ones, and so on; then what is no element."""
    if width == 1:
        return [data]
    whole = len(data) // width * width
    return [*(data[at:whole:width] for at in range(width)), data[whole:]]


def _joined(parted: bytes, width: int) -> bytes:
    """What `_shuffled` took apart."""
    if width == 1:
        return parted
    count = len(parted) // width
    data = bytearray(parted)
    for at in range(width):
        data[at : count * width : width] = parted[at * count : (at + 1) * count]
    return bytes(data)
