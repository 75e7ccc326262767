"""What a tree that was read from a file may bring into the program: a fence around restore.

A tree names classes and functions, and a name is enough to do harm: an object of a class that
cleans up after itself removes a file when it is thrown away, `map` of a function calls it. So what
the rebuilt program has at the same place is taken as it is, and only what restore has to make anew
goes through here:

- functions, and classes as values: the program's own, built-in ones that only compute, and those
  of which a framework's adapter says that they do;
- objects: of classes that are no part of Python's standard library (but for a few plain ones) and
  that do nothing when they are thrown away, unless they are the program's own;
- containers, generators and enumerations: of the classes that their form is for.

A name must be the one that the thing itself goes by, so that no way through another module's
imports leads to it. What a checkpoint may still do is to decide the values of the program's
variables, which is what it is for.
"""

from __future__ import annotations

import builtins
import collections
import enum
import sys
import types
from collections import deque
from typing import TYPE_CHECKING, Any

from detrain.errors import DamagedCheckpoint, ResumeMismatch
from detrain.frameworks import find

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detrain.capture.form import Form
    from detrain.state import Node, StateTree

__all__ = ["Fence", "check_tree"]

_FAMILIES: dict[str, type[Any]] = {
    "list": list,
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "enum": enum.Enum,
}

_ITEMS = {"method": 2, "partial": 3, "generator": 1, "state_dict": 1, "position": 2, "outcome": 1}
"""How many items nodes of a form have."""

_COMPUTE = frozenset(
    {
        "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "chr", "complex", "dict",
        "divmod", "enumerate", "filter", "float", "format", "frozenset", "hash", "hex", "id", "int",
        "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next", "object",
        "oct", "ord", "pow", "print", "range", "repr", "reversed", "round", "set", "slice",
        "sorted", "str", "sum", "tuple", "type", "zip",
    }
)  # fmt: skip
"""Built-in names that neither run a text nor reach a file."""

_COMPUTING = ("math", "cmath", "operator", "_operator", "statistics", "itertools", "collections")

_PLAIN_CLASSES: frozenset[type[Any]] = frozenset(
    {types.SimpleNamespace, collections.UserDict, collections.UserList, collections.ChainMap}
)
_PLAIN_NAMES = frozenset({"argparse:Namespace", "random:Random", "configparser:ConfigParser"})


def check_tree(tree: StateTree, forms: Mapping[str, Form], file: str) -> None:
    """`DamagedCheckpoint` if a node is not what its form makes of an object."""
    for node, path in zip(tree.nodes, tree.paths, strict=True):
        trouble = _node_trouble(node, forms)
        if trouble:
            raise DamagedCheckpoint(file, f"{path}: {trouble}")


def _node_trouble(node: Node, forms: Mapping[str, Form]) -> str:
    if node.form not in forms:
        return f"expected a form that DETrain knows, found {node.form!r}"
    if (node.form == "array") != (node.array is not None):
        return f"expected an array's facts for an array alone, found a {node.form}"
    if node.array is not None and node.array.framework not in find.NAMES:
        return f"expected one of {', '.join(find.NAMES)}, found {node.array.framework!r}"
    if node.form == "dict" and len(node.keys) != len(node.items):
        return f"expected as many keys as values, found {len(node.keys)} and {len(node.items)}"
    if node.form == "held" and len(node.items) != (0 if node.text == "finished" else 5):
        return f"expected a call of 5 parts, found {len(node.items)}"
    count = _ITEMS.get(node.form)
    if count is not None and len(node.items) != count:
        return f"expected {count} items in a {node.form}, found {len(node.items)}"
    return ""


class Fence:
    """Says what restore may make anew; `owns` says which files are the program's."""

    def __init__(self, owns: Callable[[str], bool]) -> None:
        self._owns = owns

    def find(self, name: str) -> Any:
        """What goes by a name in the program as it is loaded; None if nothing does."""
        module, _, qualname = name.partition(":")
        found: Any = sys.modules.get(module)
        for part in qualname.split("."):
            found = getattr(found, part, None)
        return found

    def is_own(self, obj: Any) -> bool:
        """Whether a function or class is part of the program's own text."""
        if isinstance(obj, types.FunctionType) and self._owns(obj.__code__.co_filename):
            return True
        module = sys.modules.get(getattr(obj, "__module__", None) or "")
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and self._owns(file)

    def check_value(self, obj: Any, name: str, path: str) -> None:
        """A function, or a class as a value, is to be put where the program does not have it."""
        module, _, qualname = name.partition(":")
        if self.is_own(obj):
            return
        if module == "builtins" and qualname in _COMPUTE and obj is getattr(builtins, qualname):
            return
        if module in _COMPUTING or any(framework.computes(obj) for framework in find.loaded()):
            return
        raise self._refused(path, name, "is a function or class of a library that may do anything")

    def check_class(self, kind: type[Any], form: str, path: str) -> None:
        """An object of this class is to be made anew."""
        name = f"{kind.__module__}:{kind.__qualname__}"
        family = _FAMILIES.get(form)
        if family is not None and not issubclass(kind, family):
            raise self._refused(path, name, f"is no {family.__name__}")
        if form == "object" and not self.is_own(kind) and not self._may_be_made(kind):
            raise self._refused(path, name, "is a class that may act by itself")

    def _may_be_made(self, kind: type[Any]) -> bool:
        """Whether an object of a library's class does nothing by being there and being dropped."""
        if hasattr(kind, "__del__") or issubclass(kind, type):
            return False
        name = f"{kind.__module__}:{kind.__qualname__}"
        if kind in _PLAIN_CLASSES or name in _PLAIN_NAMES:
            return True
        top = kind.__module__.partition(".")[0]
        return top not in sys.stdlib_module_names and top not in ("builtins", "detrain")

    def _refused(self, path: str, name: str, why: str) -> ResumeMismatch:
        return ResumeMismatch(
            path,
            "something that a checkpoint may bring into the program",
            f"{name}, which {why}",
            "Make it before the loop, so that it is there when the run is resumed",
        )
