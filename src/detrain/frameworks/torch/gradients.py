"""Whether gradients that a checkpoint left out were cleared before anything used them.

A program that calls `zero_grad` before each backward pass never looks at the gradients of the
iteration before. If it does not after all, then one of them is added to (a backward pass without
clearing), stepped with, or still there at the end: each of these is seen.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["GradientWatch"]


class GradientWatch:
    """Watches the gradients that some tensors have when it is made, until `end`."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._used = ""
        self._stale: dict[int, tuple[torch.Tensor, weakref.ref[torch.Tensor]]] = {}
        self._handles = [register_optimizer_step_pre_hook(self._steps)]
        self._nodes: list[Any] = []  # a node, and the hook on it, live as long as somebody holds it
        for tensor in tensors:
            if tensor.grad is None:
                continue
            # Weak: that the program frees a gradient must free its memory.
            self._stale[id(tensor)] = tensor, weakref.ref(tensor.grad)
            if tensor.requires_grad:
                node = get_gradient_edge(tensor).node
                self._nodes.append(node)
                self._handles.append(node.register_prehook(self._adds_to(tensor)))

    def end(self) -> str:
        """End the watch; what was done with a gradient, or "" if all were cleared."""
        for handle in self._handles:
            handle.remove()
        left = any(self._has_stale(tensor) for tensor, _ in self._stale.values())
        self._handles, self._nodes, self._stale = [], [], {}
        return self._used or ("still holds it" if left else "")

    def _has_stale(self, tensor: torch.Tensor) -> bool:
        found = self._stale.get(id(tensor))
        return found is not None and tensor.grad is not None and tensor.grad is found[1]()

    def _adds_to(self, tensor: torch.Tensor) -> Callable[[Any], None]:
        def adds(_: Any) -> None:
            if self._has_stale(tensor):
                self._used = "adds to it in a backward pass"

        return adds

    def _steps(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            if any(self._has_stale(tensor) for tensor in group["params"]):
                self._used = "updates parameters with it"
