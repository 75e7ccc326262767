"""Packed arrays come out as they went in; what is no packed array is an error, and costs little."""

from __future__ import annotations

import random
import resource
import struct
import subprocess
import sys

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from detrain.checkpoint.packing import pack, pieces, unpack, unpacked_pieces
from detrain.checkpoint.sound import MOST_TIMES, WIDTHS
from detrain.errors import DamagedCheckpoint, UsageError


def packed(data, width=4, base=None):
    against = None if base is None else map(bytes, pieces(memoryview(base)))
    return b"".join(pack(pieces(memoryview(data)), len(data), width, against))


def unpacked(layers, size, width=4):
    return bytes(unpack([memoryview(each) for each in layers], size, width, "file"))


@given(st.binary(max_size=40), st.integers(0, 9000), st.sampled_from(WIDTHS), st.integers(0, 3))
def test_what_was_packed_comes_out(seed, times, width, tail):
    data = (seed or b"\1") * times + b"x" * tail
    other = bytes(byte ^ 3 for byte in data[::-1])
    alone = packed(data, width)
    assert unpacked([alone], len(data), width) == data
    delta = packed(other, width, data)
    assert unpacked([alone, delta], len(data), width) == other
    assert len(data) <= MOST_TIMES * len(alone)
    assert len(data) <= MOST_TIMES * len(delta)


def test_numbers_that_moved_a_little_take_less():
    draw = random.Random(1)
    values = [draw.gauss(0, 1) for _ in range(20000)]
    before = struct.pack("<20000f", *values)
    after = struct.pack("<20000f", *(value * (1 + 1e-5 * draw.random()) for value in values))
    assert len(packed(after, 4, before)) < 0.6 * len(packed(after))
    assert len(packed(after)) < len(zstandard.ZstdCompressor(level=1).compress(after))


DATA = random.Random(0).randbytes(1 << 16) * 16
GOOD = packed(DATA)
HUGE = zstandard.ZstdCompressor(level=1).compress(bytes(len(DATA)))
WINDOW = zstandard.ZstdCompressor(
    compression_params=zstandard.ZstdCompressionParameters(window_log=27)
)
HARM = {
    "cut off": (GOOD[: len(GOOD) // 2].ljust(len(GOOD), b"\0"), len(DATA), "cut off|unpacked"),
    "cut at its beginning": (GOOD[:3].ljust(len(GOOD), b"\0"), len(DATA), "cut off|unpacked"),
    "no frame": (b"x" * len(GOOD), len(DATA), "can't be unpacked"),
    "nothing": (b"\0" * len(GOOD), len(DATA), "can't be unpacked|cut off"),
    "more than it says": (GOOD, len(DATA) - 1, "holds more"),
    "less than it says": (GOOD, len(DATA) + 1, "cut off"),
    "a bomb": (HUGE, len(DATA), "claim to be"),
    "a window for gigabytes": (
        WINDOW.compress(DATA * 40)[: 1 << 16].ljust(1 << 20, b"\0"), 40 * len(DATA), "unpacked",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HARM)
def test_what_is_no_packed_array(what):
    layer, size, message = HARM[what]
    with pytest.raises(DamagedCheckpoint, match=message):
        unpacked([layer], size)


def test_a_flipped_bit_never_crashes():
    for at in range(0, len(GOOD), max(1, len(GOOD) // 300)):
        harmed = bytearray(GOOD)
        harmed[at] ^= 0x55
        try:
            unpacked([bytes(harmed)], len(DATA))
        except DamagedCheckpoint:
            continue


BOMB = """
import resource, zstandard
from detrain.checkpoint.packing import unpacked_pieces
from detrain.errors import DamagedCheckpoint
frame = zstandard.ZstdCompressor(level=1).compressobj()
bomb = b"".join(frame.compress(bytes(1 << 20)) for _ in range(4096)) + frame.flush()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    for piece in unpacked_pieces([memoryview(bomb)], 1 << 20, 4, "file"):
        pass
except DamagedCheckpoint as error:
    print(error, "|", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_bomb_takes_no_memory():
    """Four gigabytes in a few hundred kilobytes, of which one megabyte is asked for."""
    done = subprocess.run(
        [sys.executable, "-c", BOMB], capture_output=True, text=True, check=True
    ).stdout
    message, _, kilobytes = done.partition("|")
    assert "holds more than 1048576 bytes" in message
    assert int(kilobytes) < 32 << 10


def test_without_the_package_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match=r"pip install 'detrain\[compact\]'"):
        unpacked([GOOD], len(DATA))
    with pytest.raises(UsageError, match=r"detrain\[compact\]"):
        packed(DATA)


def test_pieces_are_unpacked_as_they_are_asked_for():
    first = next(iter(unpacked_pieces([memoryview(GOOD)], len(DATA), 4, "file")))
    assert first == DATA[: len(first)]
    assert resource.getpagesize() < len(first) < len(DATA)
