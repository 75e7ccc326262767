"""The state of a program as a plain value: a graph of nodes whose leaves are arrays.

A `StateTree` says what was reachable from some named roots: which objects, of which types, which
of them are one and the same, and the constants among them. It holds no live object and no array
data; arrays are named by `ArrayFacts.leaf`. It is what a manifest stores and what restore fills a
rebuilt program from. How objects become nodes is decided in `capture`, never here.
"""

from __future__ import annotations

import base64
import datetime
import uuid
from typing import Literal

import msgspec

__all__ = [
    "LEFT_OUT",
    "PLAIN",
    "Anchor",
    "ArrayFacts",
    "Node",
    "Plain",
    "Ref",
    "Scalar",
    "StateTree",
    "decode_answer",
    "decode_scalar",
    "encode_answer",
    "encode_scalar",
]

Plain = None | bool | int | float | complex | str | bytes
PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})

Scalar = tuple[str, str]
"""A constant as (tag, text): exact for every float, of any size for integers."""

Ref = int | Scalar
"""A child: the index of a node, or a constant written in place."""

LEFT_OUT: Scalar = ("-", "")
"""Stands for a child that is not saved."""

Anchor = Literal["", "held", "rebuilt", "dead"]
"""How an object that is not saved comes to be in a tree.

*rebuilt*: setup, or the way to the loop, makes it again. *held*: a rebuilt array that an object
which is saved holds. *dead*: nothing reads it any more, but the way to a saved object may lead
through it.
"""


class ArrayFacts(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is known of an array besides its bytes.

    `leaf` names the bytes (in C order) in the data file. `storage` numbers the memory that the
    array looks into: arrays of one number are views of one memory, and stay so.
    """

    framework: str
    dtype: str
    shape: tuple[int, ...]
    leaf: str
    storage: int
    offset: int = 0
    strides: tuple[int, ...] | None = None
    storage_bytes: int = 0
    device: str = "cpu"
    requires_grad: bool = False


class Node(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One object. `form` says how the other fields are read; see `capture.forms`.

    There are thousands, and none can be part of a cycle: the garbage collector leaves them alone.
    """

    form: str
    type: str = ""
    items: tuple[Ref, ...] = ()
    keys: tuple[Ref, ...] = ()
    fields: tuple[tuple[str, Ref], ...] = ()
    text: str = ""
    array: ArrayFacts | None = None
    anchor: Anchor = ""


class StateTree(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes in breadth-first order from the roots; `paths[i]` is how a person names `nodes[i]`.

    `rebuilt` and `dead` are further roots, which are not saved: what they reach is there as
    anchors, after all other nodes, as far as it leads to an object that is saved.
    """

    roots: tuple[tuple[str, Ref], ...]
    nodes: tuple[Node, ...]
    paths: tuple[str, ...]
    rebuilt: tuple[tuple[str, Ref], ...] = ()
    dead: tuple[tuple[str, Ref], ...] = ()

    def saved(self) -> StateTree:
        """Without its anchors, except arrays that a saved object holds."""
        count = sum(not node.anchor or node.anchor == "held" for node in self.nodes)
        return StateTree(self.roots, self.nodes[:count], self.paths[:count])


def encode_scalar(value: Plain) -> Scalar:
    """Write a constant so that reading it gives the same bits."""
    if type(value) is str and value.isascii():
        return ("s", value)
    if value is None:
        return ("n", "")
    if value is True or value is False:
        return ("b", "1" if value else "0")
    if isinstance(value, int):
        # Hexadecimal has no length limit and costs linear time, unlike decimal.
        return ("i", str(value) if -(1 << 63) < value < (1 << 63) else hex(value))
    if isinstance(value, float):
        return ("f", repr(value))
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:  # a file name with bytes that are not text
            raw = value.encode("utf-16-le", "surrogatepass")
            return ("u", base64.b64encode(raw).decode())
        return ("s", value)
    if isinstance(value, bytes):
        return ("y", base64.b64encode(value).decode())
    return ("c", f"{value.real!r} {value.imag!r}")


def decode_scalar(scalar: Scalar) -> Plain:
    """Read what `encode_scalar` wrote; `ValueError` for anything else."""
    tag, text = scalar
    match tag:
        case "n":
            return None
        case "b":
            return text == "1"
        case "i":
            return int(text, 0)
        case "f":
            return float(text)
        case "s":
            return text
        case "u":
            return base64.b64decode(text, validate=True).decode("utf-16-le", "surrogatepass")
        case "y":
            return base64.b64decode(text, validate=True)
        case "c":
            real, imag = text.split(" ")
            return complex(float(real), float(imag))
        case _:
            raise ValueError(f"unknown constant tag {tag!r}")


def encode_answer(value: Plain | uuid.UUID | datetime.date) -> Scalar:
    """Write an answer of the world: a constant, a unique name or a date."""
    if isinstance(value, uuid.UUID):
        return ("uuid", str(value))
    if isinstance(value, datetime.datetime):
        return ("datetime", value.isoformat())
    if isinstance(value, datetime.date):
        return ("date", value.isoformat())
    return encode_scalar(value)


def decode_answer(scalar: Scalar) -> Plain | uuid.UUID | datetime.date:
    """Read what `encode_answer` wrote; `ValueError` for anything else."""
    tag, text = scalar
    match tag:
        case "uuid":
            return uuid.UUID(text)
        case "datetime":
            return datetime.datetime.fromisoformat(text)
        case "date":
            return datetime.date.fromisoformat(text)
    return decode_scalar(scalar)
