"""The forms of everything that is not a container or an array: values, code, objects."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from detrain.capture import values
from detrain.capture.content import content_digest
from detrain.capture.form import (
    Form,
    Pairs,
    field_pairs,
    fields_of,
    identical,
    set_fields,
    type_name,
)
from detrain.errors import ResumeMismatch, UncapturableState
from detrain.state import LEFT_OUT, Node

if TYPE_CHECKING:
    import enum

    from detrain.capture.restore import Restore
    from detrain.capture.walk import Walk

__all__ = [
    "NAMED",
    "EnumForm",
    "MethodForm",
    "NamedForm",
    "ObjectForm",
    "PartialForm",
    "StandingForm",
    "StateDictForm",
    "ValueForm",
    "name_of",
]

NAMED = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    property,
    classmethod,
    staticmethod,
)
"""What is part of the program's text."""


class ValueForm(Form):
    """Immutable values that are fully given by a text: paths, dates, dtypes, devices."""

    name = "value"
    mutable = False

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        text = values.encode(obj)
        if text is not None:
            return Node("value", type_name(type(obj)), text=text)
        for framework in walk.frameworks:
            text = framework.encode_value(obj)
            if text is not None:
                owner = ("s", framework.name)
                return Node("value", type_name(type(obj)), (owner,), text=text)
        raise AssertionError(f"{path} was taken for a value")

    def children(self, node: Node, live: Any) -> Pairs:
        return ()

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        if node.items:
            owner = str(restore.get(node.items[0]))
            return restore.framework(owner, path).decode_value(node.type, node.text)
        return values.decode(node.type, node.text)

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        return bool(self.make(node, restore, path) == live)


class EnumForm(Form):
    """Members of enumerations."""

    name = "enum"
    mutable = False

    def describe(self, obj: enum.Enum, path: str, walk: Walk) -> Node:
        return Node("enum", type_name(type(obj)), text=obj.name)

    def children(self, node: Node, live: Any) -> Pairs:
        return ()

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        members: Any = restore.resolve_type(node, path)
        return members[node.text]

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        return bool(live.name == node.text)


class NamedForm(Form):
    """Functions, classes and the like: the program's own text, found again by name.

    What a function of the program closes over, its defaults and attributes, and what a class of
    the program keeps for all its objects, are state, and are walked.
    """

    name = "named"

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        kept = kept_by(obj).items() if walk.is_own(obj) else ()
        return Node("named", name_of(obj), fields=walk.fields(kept, path))

    def matches(self, node: Node, live: Any) -> bool:
        return isinstance(live, NAMED) and name_of(live) == node.type

    def children(self, node: Node, live: Any) -> Pairs:
        kept = kept_by(live) if node.fields else {}
        return [(ref, kept[name]) for name, ref in node.fields if name in kept]

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        return restore.resolve(node.type, path)

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        kept = kept_by(live) if node.fields else {}
        for name, ref in node.fields:
            value = restore.get(ref)
            if name in kept and identical([kept[name]], [value]):
                continue
            restore.check_keeps(live, name, path)
            if name.startswith("<"):
                cells = dict(zip(live.__code__.co_freevars, live.__closure__, strict=True))
                cells[name[1:-1]].cell_contents = value
            else:
                setattr(live, name, value)


class MethodForm(Form):
    """Methods bound to an object."""

    name = "method"
    mutable = False

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        items = (
            walk.ref(obj.__self__, f"{path}.__self__"),
            walk.ref(obj.__func__, f"{path}.__func__"),
        )
        return Node("method", type_name(type(obj)), items)

    def children(self, node: Node, live: Any) -> Pairs:
        return zip(node.items, (live.__self__, live.__func__), strict=True)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        owner, function = (restore.get(ref) for ref in node.items)
        return types.MethodType(function, owner)

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        return identical((live.__self__, live.__func__), map(restore.get, node.items))


class PartialForm(Form):
    """`functools.partial` objects."""

    name = "partial"
    mutable = False

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        return Node(
            "partial", type_name(type(obj)), walk.refs((obj.func, obj.args, obj.keywords), path)
        )

    def children(self, node: Node, live: Any) -> Pairs:
        return zip(node.items, (live.func, live.args, live.keywords), strict=True)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        function, args, keywords = (restore.get(ref) for ref in node.items)
        restore.complete(node.items[2])
        return functools.partial(function, *args, **keywords)

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        parts = (live.func, live.args, live.keywords)
        return identical(parts, map(restore.get, node.items))


class ObjectForm(Form):
    """Everything whose state is its fields: modules, optimizers, schedulers, users' classes."""

    name = "object"

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        return Node("object", type_name(type(obj)), fields=walk.object_fields(obj, path))

    def children(self, node: Node, live: Any) -> Pairs:
        return field_pairs(node, live)

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        kind = restore.resolve_type(node, path)
        if issubclass(kind, types.SimpleNamespace):
            return types.SimpleNamespace.__new__(kind)
        return object.__new__(kind)

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        there = dict(fields_of(live))
        for name, ref in node.fields:
            if ref == LEFT_OUT and name not in there:
                raise ResumeMismatch(
                    f"{path}.{name}",
                    "what the program made in the first attempt, which is not saved because "
                    "nothing changes it afterwards",
                    "nothing",
                    "Make it in the same way in every attempt; a run that is started with "
                    "--no-plan saves it",
                )
        set_fields(node, live, restore)


class StateDictForm(Form):
    """Objects that keep state where fields don't show it, and give it out as a `state_dict`."""

    name = "state_dict"

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        items = (walk.ref(obj.state_dict(), f"{path}.state_dict()"),)
        return Node("state_dict", type_name(type(obj)), items)

    def children(self, node: Node, live: Any) -> Pairs:
        return ()

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        raise ResumeMismatch(
            path,
            f"an object of class {node.type} built by the program",
            "none",
            "Build it before the loop that it is declared to",
        )

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        state = restore.get(node.items[0])
        restore.complete(node.items[0])
        live.load_state_dict(state)


class StandingForm(Form):
    """Parts of the process, not of its state: modules, locks, weak references, loggers.

    They stay as the program rebuilt them.
    """

    name = "standing"
    mutable = False

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        return Node("standing", type_name(type(obj)))

    def children(self, node: Node, live: Any) -> Pairs:
        return ()

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        raise ResumeMismatch(
            path,
            f"a {node.type} set up by the program",
            "none",
            "Set it up before the loop, so that it exists when the run is resumed",
        )

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        return True


class OpaqueForm(Form):
    """What can't be captured and says what it holds: it must be as the program set it up.

    Whether the loop changes it is seen before a checkpoint is published. `refusal` is the error
    for an object that does not say what it holds.
    """

    name = "opaque"
    mutable = False

    def __init__(self, refusal: UncapturableState | None = None) -> None:
        self._refusal = refusal

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        assert self._refusal is not None  # the one in `FORMS` only restores
        try:
            digest = content_digest(obj)
        except Exception:
            raise self._refusal from None
        return Node("opaque", type_name(type(obj)), text=digest)

    def children(self, node: Node, live: Any) -> Pairs:
        return ()

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        raise self._changed(node, path, "none")

    def same(self, node: Node, live: Any, restore: Restore, path: str) -> bool:
        if content_digest(live) != node.text:
            raise self._changed(node, path, "another")
        return True

    def _changed(self, node: Node, path: str, found: str) -> ResumeMismatch:
        return ResumeMismatch(
            path,
            f"a {node.type} with the content that it had (digest {node.text})",
            found,
            "Make it before the loop, in the same way in every attempt",
        )


def name_of(obj: Any) -> str:
    """What a class or function goes by, as "module:qualified.name"."""
    if isinstance(obj, property | classmethod | staticmethod):
        obj = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    owner = getattr(obj, "__objclass__", None)
    module = getattr(obj, "__module__", None) or getattr(owner, "__module__", "builtins")
    return f"{module}:{getattr(obj, '__qualname__', type(obj).__qualname__)}"


def kept_by(obj: Any) -> dict[str, Any]:
    """What a function or class keeps: `<name>` is a variable that a function closes over."""
    if isinstance(obj, types.FunctionType):
        found: dict[str, Any] = {}
        for name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=True):
            try:
                found[f"<{name}>"] = cell.cell_contents
            except ValueError:  # not bound yet
                continue
        if obj.__defaults__:
            found["__defaults__"] = obj.__defaults__
        if obj.__kwdefaults__:
            found["__kwdefaults__"] = obj.__kwdefaults__
        found.update(obj.__dict__)
        return found
    if isinstance(obj, type):
        return {
            name: value
            for name, value in vars(obj).items()
            if not name.startswith(("__", "_abc_")) and not hasattr(type(value), "__get__")
        }
    return {}
