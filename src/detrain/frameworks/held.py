"""Which generators of random numbers an object holds, however deep, and by which path.

The walk goes through containers, fields, closures, bound methods and partial functions; through the
program's own classes and functions also to what they name in their modules. Collections of plain
data are passed over at once. Paths are the same in every process that runs the program.
"""

from __future__ import annotations

import functools
import json
import sysconfig
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import xxhash

from detrain.frameworks import find

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from detrain.frameworks.base import Framework

__all__ = [
    "MOST", "Held", "Holdings", "as_written", "is_own", "is_own_file", "look", "put_text",
    "text_of", "walk",
]  # fmt: skip

_PLAIN: frozenset[type] = frozenset(
    {int, float, complex, str, bytes, bytearray, bool, type(None), range, slice, type(...)}
)
_SHARED = (type, ModuleType)
_OURS = str(Path(__file__).parent.parent)
_MANY = 64
MOST = 200_000


@dataclass(frozen=True)
class Held:
    """A generator, its framework's adapter, its path and a word that stands for the path."""

    path: str
    word: int
    generator: Any
    framework: Framework


@dataclass(frozen=True)
class Holdings:
    """What was found, and the fields in which another generator might turn up."""

    held: tuple[Held, ...]
    fields: tuple[tuple[dict[str, Any], tuple[int, ...]], ...]
    complete: bool

    def may_have_changed(self) -> bool:
        """Whether a field has another object in it than when it was looked at."""
        return any(tuple(map(id, fields.values())) != seen for fields, seen in self.fields)


def walk(roots: Mapping[str, Any], without: Iterable[Any] = ()) -> Iterator[tuple[str, Any]]:
    """All that the roots hold, each once, by path, up to a great number.

    Not looked into are `without`, and generators of random numbers.
    """
    return ((path, obj) for path, obj, _ in _walk(roots, without))


def _walk(
    roots: Mapping[str, Any], without: Iterable[Any]
) -> Iterator[tuple[str, Any, Framework | None]]:
    """Likewise, with the framework of what is a generator."""
    frameworks = find.loaded()
    seen = {id(obj) for obj in without}
    alive: list[Any] = []
    queue = deque(roots.items())
    while queue and len(alive) < MOST:
        path, obj = queue.popleft()
        if type(obj) in _PLAIN or id(obj) in seen:
            continue
        seen.add(id(obj))
        alive.append(obj)  # an object that dies would leave its number to another one
        owner = None
        for each in frameworks:
            if each.is_generator(obj):
                owner = each
                break
        yield path, obj, owner
        if owner is None:
            queue.extend(_inside(path, obj))


def look(roots: Mapping[str, Any], without: Iterable[Any] = ()) -> Holdings:
    """All generators that the roots hold; `without` are objects that are not looked into."""
    held: list[Held] = []
    fields: list[tuple[dict[str, Any], tuple[int, ...]]] = []
    count = 0
    for path, obj, owner in _walk(roots, without):
        count += 1
        if owner is not None:
            held.append(Held(path, xxhash.xxh3_64_intdigest(path.encode()), obj, owner))
        elif not isinstance(obj, _SHARED) and isinstance(own := _fields(obj), dict):
            fields.append((own, tuple(map(id, own.values()))))
    return Holdings(tuple(held), tuple(fields), complete=count < MOST)


def text_of(held: Held) -> str:
    """Where a generator stands, as JSON."""

    def plain(value: Any) -> Any:
        return {"hex": value.hex()} if isinstance(value, bytes) else value.tolist()

    return json.dumps(held.framework.generator_state(held.generator), default=plain)


def put_text(held: Held, text: str) -> None:
    """Put a generator where `text_of` said that it stood."""
    state = json.loads(text)
    if isinstance(state, list):  # Python's own insists on tuples
        state = tuple(tuple(part) if isinstance(part, list) else part for part in state)
    elif "hex" in state:
        state = bytes.fromhex(state["hex"])
    held.framework.set_generator_state(held.generator, state)


def _fields(obj: Any) -> Any:
    try:
        return object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None


def _inside(path: str, obj: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, dict):
        if not _is_plain_data(obj.values()):
            yield from ((f"{path}[{_name(key)}]", value) for key, value in obj.items())
    elif isinstance(obj, list | tuple | deque):
        if not _is_plain_data(obj):
            yield from ((f"{path}[{place}]", value) for place, value in enumerate(obj))
    elif isinstance(obj, MethodType):
        yield f"{path}.__self__", obj.__self__
        yield path, obj.__func__
    elif isinstance(obj, functools.partial):
        yield from ((f"{path}.func", obj.func), (f"{path}.args", obj.args))
        yield f"{path}.keywords", obj.keywords
    elif isinstance(obj, FunctionType):
        yield from _of_function(path, obj)
    elif isinstance(obj, type):
        if is_own(obj):
            yield from ((f"{path}.{name}", value) for name, value in vars(obj).items())
    elif isinstance(obj, staticmethod | classmethod):
        yield path, obj.__func__
    elif isinstance(obj, property):
        yield path, obj.fget
    elif not isinstance(obj, ModuleType | BuiltinFunctionType | CodeType):
        yield from _of_object(path, obj)


def _of_object(path: str, obj: Any) -> Iterator[tuple[str, Any]]:
    own = _fields(obj)
    if isinstance(own, dict):
        yield from ((f"{path}.{name}", value) for name, value in own.items())
    for kind in type(obj).__mro__:
        for slot in _slots(kind):
            try:
                yield f"{path}.{slot}", object.__getattribute__(obj, slot)
            except AttributeError:
                continue
        if is_own(kind):
            yield f"{kind.__qualname__}", kind


def _of_function(path: str, function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{path}<{name}>", cell.cell_contents
        except ValueError:
            continue  # not bound yet
    yield from ((f"{path}<{n}>", value) for n, value in enumerate(function.__defaults__ or ()))
    yield from ((f"{path}<{n}>", v) for n, v in (function.__kwdefaults__ or {}).items())
    if not is_own(function):
        return
    names = _names(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if is_own_file(getattr(value, "__file__", None)):
                inner = vars(value)
                yield from ((f"{name}.{n}", inner[n]) for n in names if n in inner)
        elif value is not None:
            yield name, value


def _names(code: CodeType) -> tuple[str, ...]:
    inner = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return tuple(dict.fromkeys(chain(code.co_names, *inner)))


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_plain_data(values: Any) -> bool:
    """Whether a large collection holds numbers, texts and arrays, alone or in small groups."""
    if len(values) < _MANY:
        return False
    kinds = set(map(type, values))
    if all(map(_is_plain, kinds)):
        return True
    inner: Any
    if kinds <= {tuple, list}:
        inner = chain.from_iterable(values)
    elif kinds == {dict}:
        inner = chain.from_iterable(map(dict.values, values))
    else:
        return False
    return all(map(_is_plain, set(map(type, inner))))


def _is_plain(kind: type) -> bool:
    return (
        kind in _PLAIN
        or kind.__module__ == "numpy"
        or (kind.__module__, kind.__name__) == ("torch", "Tensor")
    )


def _name(key: Any) -> str:
    return repr(key) if type(key) in _PLAIN else type(key).__name__


@functools.cache
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    # What stands before a library's functions while a run is on leads to all of DETrain.
    return tuple(sorted({_OURS, *(sysconfig.get_paths()[name] for name in names)}))


@functools.cache
def is_own_file(file: str | None) -> bool:
    """Whether a file belongs to the program: it lies in no folder of installed libraries."""
    return file is not None and not file.startswith("<frozen") and not any(
        file.startswith(folder) for folder in _library_folders()
    ) and "site-packages" not in file  # fmt: skip


def as_written(function: FunctionType) -> FunctionType:
    """A function without what DETrain has put before it."""
    while function.__code__.co_filename.startswith(_OURS) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def is_own(obj: Any) -> bool:
    """Whether a function or class is of the program's own making."""
    if isinstance(obj, FunctionType):
        return is_own_file(as_written(obj).__code__.co_filename)
    functions = (each for each in vars(obj).values() if isinstance(each, FunctionType))
    first = next(functions, None)
    return first is not None and is_own(first) and not obj.__module__.startswith("detrain.")
