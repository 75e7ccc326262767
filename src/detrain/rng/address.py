"""What random numbers are for, as five words."""

from __future__ import annotations

import hashlib
import struct

import msgspec

__all__ = ["ENTROPY", "GENERATORS", "HELD", "Address", "address_of"]

GENERATORS, ENTROPY, HELD = 0, 1, 2
"""Lanes: the global generators, seeds for generators that are made unseeded, objects' own."""


class Address(msgspec.Struct, frozen=True, gc=False):
    """Five words, each from 0 to 2^64 - 1; one that is out of range is refused when it is used."""

    seed: int
    stream: int
    epoch: int = 0
    sample: int = 0
    draw: int = 0


_WORDS = struct.Struct("<5Q")


def address_of(*words: int | str | bytes) -> Address:
    """The address that any number of whole numbers and texts stand for.

    They are hashed to all 320 bits of an address; `1`, `"1"` and `b"1"` are three different words.
    """
    digest = hashlib.blake2b(digest_size=_WORDS.size, person=b"detrain key")
    for word in words:
        data = _word_bytes(word)
        digest.update(len(data).to_bytes(8, "little") + data)
    return Address(*_WORDS.unpack(digest.digest()))


def _word_bytes(word: int | str | bytes) -> bytes:
    if isinstance(word, str):
        return b"s" + word.encode()
    if isinstance(word, bytes):
        return b"b" + word
    try:
        number = int(word.__index__())
    except AttributeError:
        found = type(word).__name__
        raise TypeError(f"a key is made of whole numbers and texts, not of {found}") from None
    return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
