"""Autograd graphs that hang on tensors: whether one can still be used, and whether it is.

A checkpoint has no graph in it. That makes no difference for one that a backward pass went through
already: its buffers are freed, and torch refuses to go through it again.
"""

from __future__ import annotations

import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__all__ = ["watch"]

_MANY = 10_000
"""Nodes that are looked at, at the most, for one whose buffers are freed."""


def watch(tensor: torch.Tensor, used: Callable[[], None]) -> Callable[[], bool] | None:
    """Have `used` called if a backward pass goes through the graph of a tensor.

    Gives what ends the watch, and says whether the graph is still there. None if there is none, or
    if no pass can go through it.
    """
    node = tensor.grad_fn
    if node is None or _is_spent(node):
        return None

    def before(_: Any) -> None:
        used()

    handle = node.register_prehook(before)
    there = weakref.ref(before)  # the node alone holds it

    def end() -> bool:
        is_there = there() is not None
        handle.remove()
        return is_there

    return end


def _is_spent(root: Any) -> bool:
    """Whether a backward pass from here would meet a node whose buffers are freed."""
    seen, todo = {root}, [root]
    while todo and len(seen) < _MANY:
        node = todo.pop()
        kind: Any = type(node)
        if any(_is_freed(node, *names) for names in _buffers(kind)):
            return True
        for below, _ in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                todo.append(below)
    return False


def _is_freed(node: Any, raw: str, unpacked: str) -> bool:
    """Whether what a node saved under some name is freed; False if that can't be told."""
    try:
        saved = getattr(node, raw)
        # To unpack it may run the program: a part of the forward pass that is computed again.
        for each in saved if isinstance(saved, tuple) else (saved,):
            if each.unpack_hook is not None:
                return False
        getattr(node, unpacked)
    except RuntimeError as error:
        return "freed" in str(error)
    except AttributeError:  # a torch that does not say whether there is a hook
        return False
    return False


@cache
def _buffers(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """The names by which a node of a class gives out what it has saved, packed and not."""
    packed = [name for name in dir(kind) if name.startswith("_raw_saved_")]
    names = [(name, name.removeprefix("_raw")) for name in packed]
    return tuple((name, plain if hasattr(kind, plain) else plain[1:]) for name, plain in names)
