"""The randomness language: a program in which only state, randomness and parallelism are visible.

    def train(model, data)
      loop l0 batch in data
        draw noise from @torch
        bind out = pure(model.w, batch, noise)
        mutate model.w by out
        emit out
    main
      bind model = new()
      bind model.w = new()
      call train(model, data)

Values are scalars or objects. An object has a content, named fields and elements; a *place* is a
variable and a path of fields below it, `[]` being an element. To read a place is to read all that
is reachable from it. Variables of `main` are global: a function reads them, and binds those that it
names as global. Generators of frameworks are variables whose name begins with `@`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

__all__ = [
    "ELEMENT",
    "FORM",
    "Bind",
    "Branch",
    "Call",
    "Draw",
    "Emit",
    "Function",
    "Key",
    "Leave",
    "Loop",
    "Mutate",
    "Observe",
    "Op",
    "Place",
    "Program",
    "Span",
    "blocks_of",
    "locals_of",
    "numbered",
    "read_by",
    "targets_of",
    "walk_ops",
]

Place = tuple[str, ...]
"""A variable, and fields below it: `("model", "w")` is written `model.w`."""

ELEMENT = "[]"

FORM = "<form>"
"""Stands last in a place of which only is read which objects there are below it, and how they hold
each other: no contents and no scalars. Shapes and types of arrays are read so."""


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where something stands in a source file."""

    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    file: str = ""


class _Op(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What all ops have: a number that is theirs alone, and where they come from."""

    site: int = 0
    span: Span | None = None


class Bind(_Op, frozen=True, tag="bind", kw_only=False):
    """A name, or a field, for a value: a new object, the same object, or a scalar computed.

    An alias is one of its first read; the others are read to decide which object that is.
    """

    target: Place
    how: Literal["new", "alias", "pure"]
    reads: tuple[Place, ...] = ()


class Mutate(_Op, frozen=True, tag="mutate", kw_only=False):
    """An object's content changes in place, depending on what it was and on what is read.

    `deep` is what an opaque call may do: the contents of all objects that can be reached change,
    their scalar fields and their elements may; fields that hold objects go on holding them. With
    `contents` it is nothing but these.
    """

    place: Place
    reads: tuple[Place, ...] = ()
    deep: bool = False
    contents: bool = False


class Draw(_Op, frozen=True, tag="draw", kw_only=False):
    """A draw from a sequential generator, which moves it."""

    target: Place
    generator: Place


class Key(_Op, frozen=True, tag="key", kw_only=False):
    """A draw that is a pure function of its key."""

    target: Place
    reads: tuple[Place, ...] = ()


class Observe(_Op, frozen=True, tag="observe", kw_only=False):
    """An answer of the world: a clock, entropy, the order of a directory."""

    target: Place
    what: str


class Emit(_Op, frozen=True, tag="emit", kw_only=False):
    """An effect on the world: a print, a file, a logger."""

    reads: tuple[Place, ...] = ()


class Call(_Op, frozen=True, tag="call", kw_only=False):
    """A call of a function of the program; objects are passed as they are."""

    function: str
    arguments: tuple[Place, ...] = ()
    target: Place | None = None


class Branch(_Op, frozen=True, tag="branch", kw_only=False):
    """One of two ways, depending on what is read."""

    reads: tuple[Place, ...]
    then: tuple[Op, ...]
    otherwise: tuple[Op, ...] = ()


class Loop(_Op, frozen=True, tag="loop", kw_only=False):
    """Iteration. `for` takes the elements of an object, or as many scalars as the value says;
    `while` goes on as long as what it reads says, or until it is left if it reads nothing; `par`
    is a `for` whose iterations run in any order: the `result` of each is appended to `into`, in the
    order of the items unless `unordered`. A `for` that is `listed` takes the elements of the object
    in their order, and looks into none of them.
    """

    label: str
    how: Literal["for", "while", "par"]
    reads: tuple[Place, ...]
    body: tuple[Op, ...]
    target: Place | None = None
    result: Place | None = None
    into: Place | None = None
    unordered: bool = False
    listed: bool = False


class Leave(_Op, frozen=True, tag="leave", kw_only=False):
    """The end of a function, of a loop, or of an iteration."""

    how: Literal["return", "break", "continue"]
    value: Place | None = None


Op = Bind | Mutate | Draw | Key | Observe | Emit | Call | Branch | Loop | Leave


class Function(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function of the program. `globals` are the global variables that it binds."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Op, ...]
    globals: tuple[str, ...] = ()
    span: Span | None = None


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole program."""

    functions: tuple[Function, ...]
    main: tuple[Op, ...]

    def function(self, name: str) -> Function:
        """The function of that name."""
        return next(each for each in self.functions if each.name == name)


def blocks_of(op: Op) -> tuple[tuple[Op, ...], ...]:
    """The blocks inside an op."""
    if isinstance(op, Branch):
        return op.then, op.otherwise
    return (op.body,) if isinstance(op, Loop) else ()


def walk_ops(block: tuple[Op, ...]) -> Iterator[Op]:
    """All ops of a block, those inside others too, as they are written."""
    todo = [*reversed(block)]
    while todo:
        op = todo.pop()
        yield op
        if isinstance(op, Branch):
            todo += reversed(op.otherwise)
            todo += reversed(op.then)
        elif isinstance(op, Loop):
            todo += reversed(op.body)


def numbered(program: Program) -> Program:
    """The program with a number for each op, counted as they are written."""
    count = 0

    def block(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        nonlocal count
        made: list[Op] = []
        for op in ops:
            count += 1
            changes: dict[str, object] = {"site": count}
            if isinstance(op, Branch):
                changes |= {"then": block(op.then), "otherwise": block(op.otherwise)}
            elif isinstance(op, Loop):
                changes["body"] = block(op.body)
            made.append(msgspec.structs.replace(op, **changes))
        return tuple(made)

    functions = tuple(
        msgspec.structs.replace(each, body=block(each.body)) for each in program.functions
    )
    return Program(functions, block(program.main))


def targets_of(op: Op) -> tuple[Place, ...]:
    """The places that an op binds."""
    match op:
        case Bind(target) | Draw(target) | Key(target) | Observe(target):
            return (target,)
        case Call(target=target) if target is not None:
            return (target,)
        case Loop(target=target, into=into):
            return tuple(each for each in (target, into) if each is not None)
    return ()


def read_by(op: Op) -> tuple[Place, ...]:
    """The places that an op reads."""
    match op:
        case Bind(reads=reads) | Mutate(reads=reads) | Key(reads=reads) | Emit(reads):
            return reads
        case Branch(reads=reads) | Loop(reads=reads):
            return reads
        case Call(arguments=arguments):
            return arguments
        case Leave(value=value) if value is not None:
            return (value,)
    return ()


def locals_of(function: Function) -> frozenset[str]:
    """The variables that live in a function's own frame."""
    bound = {
        place[0] for op in walk_ops(function.body) for place in targets_of(op) if len(place) == 1
    }
    names = (bound | set(function.parameters)) - set(function.globals)
    return frozenset(name for name in names if not name.startswith("@"))
