"""The data file: arrays in the safetensors format, which any reader of that format opens.

A header (8 bytes of length, then JSON) gives each array's type, shape and place; the bytes follow.
Written here rather than by the safetensors package because that one takes a framework's arrays,
and this side of DETrain knows none. A dtype that the format does not have is stored as bytes; what
it really is stands in the manifest.

Reading trusts nothing: every number in the header is checked against the file before it is used.
"""

from __future__ import annotations

import math
import mmap
import struct
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detrain.errors import DamagedCheckpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["ArrayBytes", "encode_header", "encode_sizes", "item_size", "read_arrays"]

_MAX_HEADER = 100_000_000
_ALIGN = 64
_PAGE = 4096
_WORTH_PAGES = 1 << 20
"""Bytes of arrays from which on they begin at a page: then they can be written past the cache."""

_NAMES = {
    "BOOL": ("bool", "|b1"),
    "U8": ("uint8", "|u1", "B"),
    "I8": ("int8", "|i1", "b"),
    "U16": ("uint16", "<u2"),
    "I16": ("int16", "<i2"),
    "U32": ("uint32", "<u4"),
    "I32": ("int32", "<i4"),
    "U64": ("uint64", "<u8"),
    "I64": ("int64", "<i8"),
    "F16": ("float16", "<f2"),
    "BF16": ("bfloat16",),
    "F32": ("float32", "<f4", "f"),
    "F64": ("float64", "<f8", "d"),
    "F8_E4M3": ("float8_e4m3fn",),
    "F8_E5M2": ("float8_e5m2",),
}
_CODES = {name: code for code, names in _NAMES.items() for name in names}
_SIZES = {
    code: 1
    if code.endswith(("8", "BOOL")) or code.startswith("F8")
    else int(code.strip("UIBF")) // 8
    for code in _NAMES
}


class ArrayBytes(NamedTuple):
    """An array to be written: its name, dtype as its framework writes it, shape and bytes.

    `at` is where in the block that `data` is a view of it begins, if that is known.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes | bytearray | memoryview
    at: int = -1


_described, _data = attrgetter("name", "dtype", "shape"), attrgetter("data")


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def item_size(dtype: str) -> int:
    """Bytes of an element; 1 for a dtype that the format does not have."""
    code = _CODES.get(dtype)
    return 1 if code is None else _SIZES[code]


def encode_header(arrays: Sequence[ArrayBytes]) -> bytes:
    """The header for arrays whose bytes follow it, one after the other."""
    return _encoded(tuple(zip(map(_described, arrays), map(len, map(_data, arrays)), strict=True)))


@lru_cache(maxsize=4)  # one checkpoint has the arrays of the one before, nearly always
def _encoded(arrays: tuple[tuple[tuple[str, str, tuple[int, ...]], int], ...]) -> bytes:
    entries, offset = {}, 0
    for (name, dtype, shape), size in arrays:
        code = _CODES.get(dtype)
        known = code is not None and math.prod(shape) * _SIZES[code] == size
        entries[name] = _Entry(
            code if code is not None and known else "U8",
            shape if known else (size,),
            (offset, offset + size),
        )
        offset += size
    return _header(entries, _ALIGN if offset < _WORTH_PAGES else _PAGE)


def encode_sizes(sizes: Iterable[tuple[str, int]], room: int = 0) -> bytes:
    """The header for arrays of bytes that follow it, at least so long."""
    entries, offset = {}, 0
    for name, size in sizes:
        entries[name] = _Entry("U8", (size,), (offset, offset + size))
        offset += size
    return _header(entries, _ALIGN, room)


def _header(entries: dict[str, _Entry], align: int, room: int = 0) -> bytes:
    text = msgspec.json.encode(entries)
    text = text.ljust(room - 8)
    text += b" " * (-(8 + len(text)) % align)
    return struct.pack("<Q", len(text)) + text


def read_arrays(path: Path) -> dict[str, memoryview]:
    """The bytes of each array; `DamagedCheckpoint` if the file is not what it should be.

    The file is mapped, not read, and privately: writing to a view never reaches the file.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size < 8:
                raise DamagedCheckpoint(str(path), f"is {size} bytes long: it was cut off")
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(_MAX_HEADER, size - 8):
                raise DamagedCheckpoint(
                    str(path), f"its header claims {length} bytes, the file has {size}"
                )
            entries = msgspec.json.decode(file.read(length), type=dict[str, _Entry])
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise DamagedCheckpoint(str(path), f"can't be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedCheckpoint(str(path), f"its header is malformed: {error}") from error
    body = memoryview(mapped)[8 + length :]
    found, end = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        start, stop = entry.data_offsets
        expected = _count(entry.shape, len(body)) * _SIZES.get(entry.dtype, 0)
        if start != end or stop < start or stop > len(body) or stop - start != expected:
            raise DamagedCheckpoint(
                str(path),
                f"array {name!r} lies at {start}..{stop}, where {expected} bytes at {end} of "
                f"{len(body)} were expected: the file was cut off or altered",
            )
        found[name] = body[start:stop]
        end = stop
    if end != len(body):
        raise DamagedCheckpoint(str(path), f"{len(body) - end} bytes follow the last array")
    return found


def _count(shape: tuple[int, ...], most: int) -> int:
    """The number of elements; -1 if a size is negative or there are more than `most`."""
    if any(size < 0 for size in shape):
        return -1
    count = 0 if 0 in shape else 1
    for size in shape:
        count *= size
        if count > most:
            return -1
    return count
