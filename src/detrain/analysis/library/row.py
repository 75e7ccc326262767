"""A row: what is known of one function, method or class of a library.

Rows are the only thing that the analysis knows about libraries; what has no row gets a conservative
answer. Names are absolute and spelled as the library documents them (`torch.randn`,
`torch.Tensor.add_`, `numpy.random.Generator.normal`); a class's row speaks of calling the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Generator", "Kind", "Parallel", "Row", "World"]

Generator = Literal["", "torch", "numpy", "python", "tensorflow", "self", "argument"]
"""The global generator of a framework; the receiver itself; or one that is given as argument."""

World = Literal[
    "", "clock", "entropy", "environment", "directory", "hash order", "network", "memory", "host"
]
"""What an answer depends on; "memory" is the content of memory that nobody has written."""

Parallel = Literal["", "loader", "threads", "processes", "map"]

Kind = Literal[
    "", "model", "optimizer", "scheduler", "scaler", "average", "generator", "loader", "dataset",
    "sampler", "array", "writer", "environment", "handle",
]  # fmt: skip
"""What calling a class or a factory gives."""


@dataclass(frozen=True)
class Row:
    """What a call does. A row with nothing set says: pure, its result depends on its arguments.

    `draws` moves a sequential generator; if an argument named `by` is given, that one instead.
    `keyed` draws are a pure function of their key or seed argument. `mutates` are the arguments
    that change in place: "self", a position as text, a keyword, or "gradients" and "parameters" of
    what the receiver owns. `makes` says what kind of object comes back; `wraps` that it keeps hold
    of its arguments. `unordered` results come in the order in which work is done. `varies` is why
    the same arguments may give other bits. `state` are the methods that give and take state.
    """

    name: str
    draws: Generator = ""
    by: str = ""
    keyed: bool = False
    seeds: Generator = ""
    observes: World = ""
    emits: bool = False
    parallel: Parallel = ""
    unordered: bool = False
    mutates: tuple[str, ...] = ()
    makes: Kind = ""
    wraps: bool = False
    varies: str = ""
    state: tuple[str, str] | None = None
