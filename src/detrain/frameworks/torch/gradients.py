"""Whether gradients that a checkpoint left out were cleared before anything used them.

A program that calls `zero_grad` before each backward pass never looks at the gradients of the
iteration before. If it does not after all, then one of them is read, stepped with, or still there
at the end: each of these is seen.

A backward pass may add to one that is cleared afterwards (that of a generator, to gradients of the
discriminator). The sum differs in a resumed run, where it begins with nothing; that is harmless if
nobody sees it. So while a watch lasts, `grad` is an attribute that tells who asks for it: hooks,
clipping and scaling in Python all do. Where others could see it, because something else holds the
gradient's memory or reads it in C++ (reducers of several processes, scripted code), an addition
counts as a use.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

__all__ = ["GradientWatch", "gradient_of"]

_PLAIN: Any = torch._C.TensorBase.grad
_NAMES = ("grad", "_grad")

# These look whether there is a gradient to clear. One that they fill with zeros stays: it is stale
# until something else is set.
_CLEARING = frozenset(
    inspect.unwrap(each).__code__
    for each in (torch.optim.Optimizer.zero_grad, torch.nn.Module.zero_grad)
)


gradient_of: Callable[[torch.Tensor], torch.Tensor | None] = _PLAIN.__get__
"""The gradient of a tensor; no watch takes that for a use by the program."""


@dataclass
class _Stale:
    """A gradient of the iteration before."""

    tensor: torch.Tensor
    gradient: weakref.ref[torch.Tensor]
    """Weak: that the program frees a gradient must free its memory."""
    alone: bool
    """Whether all that can see its content is asking the tensor for it, in Python."""
    added_to: bool = False

    def is_there(self) -> bool:
        # The sum may be another tensor than the gradient that was added to.
        gradient = gradient_of(self.tensor)
        return self.added_to or (gradient is not None and gradient is self.gradient())


class GradientWatch:
    """Watches the gradients that some tensors have when it is made, until `end`."""

    def __init__(self, tensors: Iterable[torch.Tensor], *, may_stay: bool = False) -> None:
        """`may_stay` are those that nothing touches: each is known to be cleared in its turn."""
        self._used, self._may_stay = "", may_stay
        self._stale: dict[int, _Stale] = {}
        self._handles = [register_optimizer_step_pre_hook(self._steps)]
        self._nodes: list[Any] = []  # a node, and the hook on it, live as long as somebody holds it
        _begin(self)
        usual = _usual_holders() if _is_read_in_python_only() else ()
        telling: dict[type, bool] = {}
        for tensor in tensors:
            gradient = gradient_of(tensor)
            if gradient is None:
                continue
            reference = weakref.ref(gradient)
            del gradient
            kind = type(tensor)
            if kind not in telling:
                telling[kind] = _tells_us(kind)
            alone = bool(usual) and telling[kind] and _holders(tensor) == usual
            self._stale[id(tensor)] = _Stale(tensor, reference, alone)
            if tensor.requires_grad:
                node = get_gradient_edge(tensor).node
                self._nodes.append(node)
                self._handles.append(node.register_prehook(self._adds_to(tensor)))

    def end(self) -> str:
        """End the watch; what was done with a gradient, or "" if all were cleared."""
        _end(self)
        for handle in self._handles:
            handle.remove()
        left = any(
            stale.is_there() and (stale.added_to or not self._may_stay)
            for stale in self._stale.values()
        )
        self._handles, self._nodes, self._stale = [], [], {}
        return self._used or ("still holds it" if left else "")

    def reads(self, tensor: torch.Tensor, by: FrameType) -> None:
        """The gradient of a tensor was asked for."""
        if by.f_code not in _CLEARING and self._find(tensor) is not None:
            self._used = self._used or f"reads it ({_place(by)})"

    def sets(self, tensor: torch.Tensor, new: torch.Tensor | None) -> None:
        """A tensor was given another gradient, or none."""
        stale = self._find(tensor)
        if stale is not None and (new is None or new is not stale.gradient()):
            del self._stale[id(tensor)]

    def _find(self, tensor: torch.Tensor) -> _Stale | None:
        stale = self._stale.get(id(tensor))
        return stale if stale is not None and stale.is_there() else None

    def _adds_to(self, tensor: torch.Tensor) -> Callable[[Any], None]:
        def adds(_: Any) -> None:
            stale = self._find(tensor)
            if stale is not None and stale.alone:
                stale.added_to = True
            elif stale is not None:
                self._used = self._used or "adds to it in a backward pass"

        return adds

    def _steps(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            if any(self._find(tensor) is not None for tensor in group["params"]):
                self._used = self._used or "updates parameters with it"


# ---------------------------------------------------------------- who asks for a gradient

_watching: list[GradientWatch] = []
"""The watches that have begun and not ended: while there are any, `grad` tells them."""


def _get(tensor: torch.Tensor) -> torch.Tensor | None:
    for watch in _watching:
        watch.reads(tensor, sys._getframe(1))
    return gradient_of(tensor)


def _set(tensor: torch.Tensor, new: torch.Tensor | None) -> None:
    _PLAIN.__set__(tensor, new)
    for watch in _watching:
        watch.sets(tensor, new)


def _delete(tensor: torch.Tensor) -> None:
    _PLAIN.__delete__(tensor)
    for watch in _watching:
        watch.sets(tensor, None)


_TELLING = property(_get, _set, _delete)


def _begin(watch: GradientWatch) -> None:
    _watching.append(watch)
    for name in _NAMES:
        # Not over what somebody else has put there.
        if name not in torch.Tensor.__dict__:
            setattr(torch.Tensor, name, _TELLING)


def _end(watch: GradientWatch) -> None:
    if watch in _watching:
        _watching.remove(watch)
    if not _watching:
        for name in _NAMES:
            if torch.Tensor.__dict__.get(name) is _TELLING:
                delattr(torch.Tensor, name)


def _place(frame: FrameType) -> str:
    """The line that led to a read: of the program, if it was read by torch for it."""
    at: FrameType | None = frame
    while at is not None and str(at.f_globals.get("__name__")).startswith("torch."):
        at = at.f_back
    at = at or frame
    return f"{at.f_code.co_filename}:{at.f_lineno}"


# ---------------------------------------------------------------- who else could see it


def _tells_us(kind: type) -> bool:
    """Whether to ask a tensor of a class for its gradient is to ask `_TELLING`."""
    return all(inspect.getattr_static(kind, name) is _TELLING for name in _NAMES)


def _is_read_in_python_only() -> bool:
    """Whether nothing is at work that reads gradients in C++."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return False
    jit: Any = torch.jit
    scripted = jit._recursive.concrete_type_store.type_store, jit._state._python_cu.get_functions()
    return not any(scripted)


def _usual_holders() -> tuple[int, ...]:
    """What `_holders` says of a gradient that nobody else holds."""
    tensor = torch.zeros(1, requires_grad=True)
    _PLAIN.__set__(tensor, torch.zeros(1))
    return _holders(tensor)


def _holders(tensor: torch.Tensor) -> tuple[int, ...]:
    """How many hold the gradient of a tensor, in C++ and in Python, and its memory."""
    gradient = gradient_of(tensor)
    counted = hasattr(torch.Tensor, "_use_count") and hasattr(torch._C, "_storage_Use_Count")
    if gradient is None or not counted or not tensor.is_leaf:
        return ()
    if gradient.layout != torch.strided or gradient.grad_fn is not None:
        return ()
    memory = gradient.untyped_storage()
    return (
        gradient._use_count(),  # type: ignore[attr-defined]
        sys.getrefcount(gradient),
        torch._C._storage_Use_Count(memory._cdata),
        sys.getrefcount(memory),
    )
