"""Looking at many tensors at once, to tell whether they are as they were.

One question after the other is put to all tensors: to ask each by itself takes longer, as a step of
training leaves nothing of them in the processor's caches.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

import torch

from detrain.frameworks.torch.gradients import gradient_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["glance"]

# What the compiler looks at its inputs with: one call for class, dtype, device, sizes and strides.
_Forms: Any = getattr(torch._C._dynamo.guards, "TensorGuards", None)

_address: Any = torch._C.TensorBase.data_ptr
_requires_grad, _is_leaf = attrgetter("requires_grad"), attrgetter("is_leaf")
_fields = attrgetter("__dict__")


def glance(tensors: Sequence[torch.Tensor]) -> _Glance | None:
    """Look at some tensors; None if one has no strided memory, or this torch has no quick way."""
    try:
        return _Glance(tensors) if _Forms is not None else None
    except (RuntimeError, NotImplementedError):
        return None


class _Glance:
    """All that `tensors.view` depends on, without words for it."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._addresses = [*map(_address, tensors)]
        self._forms = _Forms(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
        self._require_grad = [*map(_requires_grad, tensors)]
        self._requiring_leaves = self._leaves_of(tensors)
        self._are_leaves = [*map(_is_leaf, tensors)]
        self._are_cleared = self._cleared(tensors)
        self._fields = [*map(len, map(_fields, tensors))]

    def is_same(self, arrays: Sequence[torch.Tensor]) -> bool:
        """Whether others, or the same ones, look alike now."""
        return (
            self._forms.check(*arrays)
            and [*map(_address, arrays)] == self._addresses
            # Where gradients are off, the first question does not tell in every version of torch.
            and (torch.is_grad_enabled() or [*map(_requires_grad, arrays)] == self._require_grad)
            # What requires no gradient is a leaf.
            and self._leaves_of(arrays) == self._requiring_leaves
            and self._cleared(arrays) == self._are_cleared
            and [*map(len, map(_fields, arrays))] == self._fields
        )

    def _leaves_of(self, tensors: Sequence[torch.Tensor]) -> list[bool]:
        """Which of those that require gradients are leaves."""
        return [*map(_is_leaf, compress(tensors, self._require_grad))]

    def _cleared(self, tensors: Sequence[torch.Tensor]) -> list[bool]:
        """Which of the leaves have no gradient. One that is none warns when it is asked."""
        leaves = compress(tensors, self._are_leaves)
        return [*map(is_, map(gradient_of, leaves), repeat(None))]
