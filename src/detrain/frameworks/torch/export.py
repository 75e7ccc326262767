"""What torch makes of a state that was read: `state_dict`s of modules and optimizers.

A tree holds modules as they are in memory, by their fields; here they get the names that
`Module.state_dict` and `Optimizer.state_dict` give them. Nothing of the program is loaded: a class
is known by its fields alone. What a class adds to its `state_dict` by methods of its own is not
there.
"""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from detrain.errors import UsageError
from detrain.frameworks.torch import tensors
from detrain.state import PLAIN, decode_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from detrain.state import Node, Ref, StateTree

__all__ = ["Part", "config_of", "everything", "modules", "optimizers", "state_dict", "weights"]

_MODULE = frozenset({"_parameters", "_buffers", "_modules"})
_OPTIMIZER = frozenset({"state", "param_groups", "defaults"})


class Part(NamedTuple):
    """An object of the program that can be exported: its name there, and its place in the tree."""

    name: str
    at: int


class _Reader:
    """A tree with its arrays, and the objects that were read from it so far."""

    def __init__(self, tree: StateTree, data: Callable[[str], memoryview]) -> None:
        self.tree, self._data = tree, data
        self._tensors: dict[int, torch.Tensor] = {}

    def node(self, ref: Ref) -> Node | None:
        return self.tree.nodes[ref] if isinstance(ref, int) else None

    def fields(self, ref: Ref) -> dict[str, Ref]:
        node = self.node(ref)
        return dict(node.fields) if node is not None else {}

    def entries(self, ref: Ref) -> list[tuple[Any, Ref]]:
        """Keys and values of a dictionary whose keys are constants."""
        node = self.node(ref)
        if node is None or node.form != "dict":
            return []
        pairs = zip(node.keys, node.items, strict=True)
        return [(decode_scalar(key), ref) for key, ref in pairs if not isinstance(key, int)]

    def tensor(self, index: int) -> torch.Tensor:
        """The tensor of a node, in memory of its own."""
        node = self.tree.nodes[index]
        if index not in self._tensors:
            assert node.array is not None
            if node.anchor:
                raise UsageError(
                    f"{self.tree.paths[index]} is not in the checkpoint: the program makes it "
                    "again, unchanged. A run that is started with --no-plan saves it"
                )
            plain = tensors.plain(node.array, self._data(node.array.leaf))
            self._tensors[index] = plain
        return self._tensors[index]

    def value(self, ref: Ref) -> Any:
        """Plain data as it was, with tensors in it; `TypeError` for anything else."""
        if not isinstance(ref, int):
            return decode_scalar(ref)
        node = self.tree.nodes[ref]
        if node.array is not None and node.array.framework == "torch":
            return self.tensor(ref)
        if node.form == "list" and node.text:
            numbers: list[Any] = ast.literal_eval(node.text)
            return numbers
        if node.form in ("list", "tuple") and not node.fields:
            items = [self.value(item) for item in node.items]
            return items if node.form == "list" else tuple(items)
        if node.form == "dict":
            return {
                decode_scalar(key) if not isinstance(key, int) else self.value(key): self.value(
                    item
                )
                for key, item in zip(node.keys, node.items, strict=True)
            }
        raise TypeError(f"{self.tree.paths[ref]} is a {node.type}")


def modules(tree: StateTree) -> list[Part]:
    """The modules with arrays that are not inside another one, as the program names them."""
    inside: set[int] = set()
    found = []
    for index, node in enumerate(tree.nodes):
        fields = dict(node.fields)
        if node.form != "object" or not fields.keys() >= _MODULE:
            continue
        found.append(index)
        children = fields["_modules"]
        if isinstance(children, int):
            inside.update(ref for ref in tree.nodes[children].items if isinstance(ref, int))
    reader = _Reader(tree, _no_data)
    outer = [index for index in found if index not in inside]
    return _named(tree, [index for index in outer if any(_leaves(reader, index, "", set()))])


def optimizers(tree: StateTree) -> list[Part]:
    """The optimizers."""
    found = [
        index
        for index, node in enumerate(tree.nodes)
        if node.form == "object" and {name for name, _ in node.fields} >= _OPTIMIZER
    ]
    return _named(tree, found)


def _named(tree: StateTree, indices: list[int]) -> list[Part]:
    """Short names, where they tell the objects apart: `model` for `__main__:main/model`."""
    short = [tree.paths[index].rpartition("/")[2] for index in indices]
    names = [
        name if short.count(name) == 1 else re.sub(r"[/:]", ".", tree.paths[index])
        for name, index in zip(short, indices, strict=True)
    ]
    return [Part(name, index) for name, index in zip(names, indices, strict=True)]


def _no_data(leaf: str) -> memoryview:
    raise AssertionError(leaf)


def _leaves(reader: _Reader, index: int, prefix: str, above: set[int]) -> Iterator[tuple[str, int]]:
    """Names and places of a module's parameters and lasting buffers, in torch's order."""
    fields = reader.fields(index)
    left_out = reader.node(fields.get("_non_persistent_buffers_set", ("n", "")))
    passing = {
        decode_scalar(ref)
        for ref in (left_out.items if left_out is not None else ())
        if not isinstance(ref, int)
    }
    for kind in ("_parameters", "_buffers"):
        for name, ref in reader.entries(fields[kind]):
            node = reader.node(ref)
            if node is None or node.array is None or (kind == "_buffers" and name in passing):
                continue
            assert isinstance(ref, int)
            yield f"{prefix}{name}", ref
    for name, ref in reader.entries(fields["_modules"]):
        if isinstance(ref, int) and ref not in above and reader.fields(ref).keys() >= _MODULE:
            yield from _leaves(reader, ref, f"{prefix}{name}.", {*above, ref})


def state_dict(
    tree: StateTree, data: Callable[[str], memoryview], index: int
) -> OrderedDict[str, torch.Tensor]:
    """What `Module.state_dict` would give for a module."""
    reader = _Reader(tree, data)
    return OrderedDict(
        (name, reader.tensor(ref)) for name, ref in _leaves(reader, index, "", {index})
    )


def weights(
    tree: StateTree, data: Callable[[str], memoryview], chosen: str | None
) -> OrderedDict[str, torch.Tensor]:
    """The `state_dict` of the one module, or of the chosen one; of several with their names."""
    found = modules(tree)
    have = ", ".join(part.name for part in found) or "none"
    if chosen is not None:
        found = [part for part in found if part.name == chosen]
    if not found:
        wanted = f"module {chosen!r}" if chosen is not None else "module with weights"
        raise UsageError(f"there is no {wanted} in the checkpoint; there are: {have}")
    if len(found) == 1:
        return state_dict(tree, data, found[0].at)
    return OrderedDict(
        (f"{part.name}.{name}", tensor)
        for part in found
        for name, tensor in state_dict(tree, data, part.at).items()
    )


def _optimizer_dict(reader: _Reader, index: int) -> dict[str, Any]:
    """What `Optimizer.state_dict` would give: parameters by their numbers."""
    fields = reader.fields(index)
    groups_node = reader.node(fields["param_groups"])
    numbers: dict[int, int] = {}
    groups = []
    for group in groups_node.items if groups_node is not None else ():
        packed: dict[str, Any] = {}
        for key, ref in reader.entries(group):
            if key != "params":
                packed[key] = reader.value(ref)
                continue
            listed = reader.node(ref)
            refs = [r for r in (listed.items if listed is not None else ()) if isinstance(r, int)]
            for each in refs:
                numbers.setdefault(each, len(numbers))
            packed["params"] = [numbers[each] for each in refs]
        groups.append(packed)
    kept = reader.node(fields["state"])
    pairs = zip(kept.keys, kept.items, strict=True) if kept is not None else ()
    state = {
        numbers[key] if isinstance(key, int) else decode_scalar(key): reader.value(item)
        for key, item in pairs
        if not isinstance(key, int) or key in numbers
    }
    return {"state": state, "param_groups": groups}


def everything(
    tree: StateTree, data: Callable[[str], memoryview]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """All that can be plain data, by the program's names; and the names of what can't.

    Modules and optimizers as their `state_dict`s, other objects by their fields where those are
    plain, variables as they are.
    """
    reader = _Reader(tree, data)
    found: dict[str, Any] = {}
    left_out = []
    for part in modules(tree):
        found[part.name] = state_dict(tree, data, part.at)
    for part in optimizers(tree):
        found[part.name] = _optimizer_dict(reader, part.at)
    for path, ref in tree.roots:
        name = path.rpartition("/")[2]
        node = reader.node(ref)
        if name in found or name.startswith("__") or (node and node.form in ("named", "standing")):
            continue
        try:
            if node is not None and node.form == "object":
                found[name] = _plain_fields(reader, ref)
            else:
                found[name] = reader.value(ref)
        except (TypeError, RecursionError):
            left_out.append(name)
    return found, tuple(left_out)


def _plain_fields(reader: _Reader, ref: Ref) -> dict[str, Any]:
    """The fields of an object (a scheduler, a meter) that are plain; `TypeError` if none is."""
    found = {}
    for name, field in reader.fields(ref).items():
        try:
            found[name] = reader.value(field)
        except (TypeError, RecursionError):
            continue
    if not found:
        raise TypeError(ref)
    return found


def config_of(tree: StateTree, chosen: str | None) -> dict[str, Any] | None:
    """The `config` of the module that is exported, if it is plain data."""
    found = [part for part in modules(tree) if chosen is None or part.name == chosen]
    reader = _Reader(tree, _no_data)
    ref = reader.fields(found[0].at).get("config") if len(found) == 1 else None
    if not isinstance(ref, int):
        return None
    pairs = list(reader.fields(ref).items()) or reader.entries(ref)
    try:
        return {str(name): _json(reader.value(value)) for name, value in pairs}
    except (TypeError, AssertionError, RecursionError):
        return None


def _json(value: Any) -> Any:
    """Plain data as JSON has it; `TypeError` for what it has not."""
    if isinstance(value, dict):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    if type(value) not in PLAIN or isinstance(value, bytes | complex):
        raise TypeError(type(value))
    return value
