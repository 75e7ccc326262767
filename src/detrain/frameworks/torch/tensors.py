"""Tensors: how they are described, copied out, filled in place and made.

All copies go through byte views, so every dtype is exact and numpy is not needed.
"""

from __future__ import annotations

import math
import mmap
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import increment_version

from detrain.frameworks.base import ArrayView
from detrain.frameworks.find import memory_at
from detrain.frameworks.torch.gradients import gradient_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detrain.frameworks.base import Filled
    from detrain.state import ArrayFacts

__all__ = [
    "address",
    "compose",
    "copy_out",
    "create",
    "decompose",
    "fill",
    "fill_all",
    "is_small",
    "looking_into",
    "new_small",
    "plain",
    "view",
]

_LARGE = 1 << 26
_SMALL = 1 << 16


_COMMON = frozenset({torch.Tensor, torch.nn.Parameter})
_CPU = torch.device("cpu")


def view(tensor: torch.Tensor) -> ArrayView:
    """Describe a tensor; `ValueError` for the kinds whose content is not one strided memory."""
    kind = type(tensor)
    if kind not in _COMMON:
        if not issubclass(kind, torch.nn.Parameter | torch.nn.Buffer):
            raise ValueError(f"tensors of class {kind.__name__} are not known to DETrain")
        if isinstance(tensor, torch.nn.UninitializedParameter):
            raise ValueError("it has no content yet")
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise ValueError(f"its layout is {tensor.layout}")
    device, is_leaf = tensor.device, tensor.is_leaf
    if device.type == "meta":
        raise ValueError("it has no content yet")
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError("it is a lazy conjugate or negation")
    gradient = gradient_of(tensor) if is_leaf else None
    fields: dict[str, Any] = {} if gradient is None else {"grad": gradient}
    fields.update(tensor.__dict__)
    storage = tensor.untyped_storage()
    return ArrayView(
        dtype=_named(tensor.dtype),
        shape=tuple(tensor.shape),
        nbytes=tensor.nbytes,
        memory=storage.data_ptr() or id(tensor),
        memory_bytes=storage.nbytes(),
        offset=int(tensor.storage_offset()),
        strides=None if tensor.is_contiguous() else tensor.stride(),
        device="cpu" if device == _CPU else str(device),
        # What an autograd graph made is captured as a value, without its graph.
        requires_grad=is_leaf and tensor.requires_grad,
        graph=not is_leaf,
        fields=fields,
    )


@cache
def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def decompose(tensor: torch.Tensor) -> dict[str, Any] | None:
    """A sparse tensor's parts."""
    if tensor.layout != torch.sparse_coo:
        return None
    plain = tensor.detach()
    return {
        "indices": plain._indices(),
        "values": plain._values(),
        "shape": tuple(tensor.shape),
        "coalesced": tensor.is_coalesced(),
        "requires_grad": tensor.requires_grad and tensor.is_leaf,
    }


def compose(parts: Mapping[str, Any], live: torch.Tensor | None) -> torch.Tensor:
    """A sparse tensor of those parts."""
    with torch.no_grad():
        made = torch.sparse_coo_tensor(
            parts["indices"],
            parts["values"],
            parts["shape"],
            is_coalesced=bool(parts["coalesced"]),
            check_invariants=True,  # indices that point outside would read foreign memory
        )
        if live is None:
            return made.requires_grad_(parts["requires_grad"])
        live.data = made
    return live


def copy_out(tensor: torch.Tensor, into: memoryview) -> None:
    """Copy the bytes in C order."""
    source = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    torch.frombuffer(into, dtype=torch.uint8).copy_(source)


def address(tensor: torch.Tensor) -> int | None:
    """Where the bytes lie, if they lie in C order in the memory of this process."""
    if not tensor.is_cpu or not tensor.is_contiguous():
        return None
    return tensor.data_ptr()


def fill(tensor: torch.Tensor, facts: ArrayFacts, data: memoryview) -> None:
    """Write into the tensor's own memory, or give it new memory where the layout is another."""
    if not _fill_small(tensor, facts, data):
        _copy_in(tensor, facts, data)
    _set_flags(tensor, facts)


def fill_all(arrays: Sequence[Filled]) -> None:
    """Fill tensors, all those that keep their layout in one call: nothing of Python in between."""
    kept = [each for each in arrays if _keeps_layout(each.array, each.facts)]
    with torch.no_grad():
        torch._foreach_copy_(
            [each.array.detach() for each in kept], [_source(*each[1:]) for each in kept]
        )
    for each in kept:
        _set_flags(each.array, each.facts)
    for each in arrays:
        if not _keeps_layout(each.array, each.facts):
            fill(*each)


def _set_flags(tensor: torch.Tensor, facts: ArrayFacts) -> None:
    if not tensor.is_leaf:
        return
    if tensor.requires_grad != facts.requires_grad:
        tensor.requires_grad_(facts.requires_grad)
    if tensor.grad is not None:
        tensor.grad = None  # a captured gradient is put back as a field


def _fill_small(tensor: torch.Tensor, facts: ArrayFacts, data: memoryview) -> bool:
    """Write a few bytes past torch, which takes ten times as long; False if that can't be done."""
    if not is_small(data):
        return False
    size, place = len(data), address(tensor)
    if not place or size != tensor.nbytes or tensor.is_inference():
        return False
    if facts.strides is not None or tuple(tensor.shape) != facts.shape:
        return False
    memory_at(place, size)[:] = data
    increment_version(tensor)
    return True


def _copy_in(tensor: torch.Tensor, facts: ArrayFacts, data: memoryview) -> None:
    with torch.no_grad():
        source = _source(facts, data)
        if _keeps_layout(tensor, facts):
            tensor.detach().copy_(source)
        else:
            tensor.data = _allocate(facts, str(tensor.device)).copy_(source)


def _keeps_layout(tensor: torch.Tensor, facts: ArrayFacts) -> bool:
    found = None if tensor.is_contiguous() else tensor.stride()
    return tuple(tensor.shape) == facts.shape and found == facts.strides


def create(
    kind: type[Any], facts: ArrayFacts, data: memoryview, shared: torch.Tensor | None
) -> torch.Tensor:
    """A new tensor, or a view of the memory that `shared` looks into, to be filled."""
    _check_bytes(facts, data)  # before memory is taken for it
    with torch.no_grad():
        if shared is None:
            made = _allocate(facts, facts.device)
        else:
            strides = facts.strides or _contiguous(facts.shape)
            made = torch.empty(0, dtype=_dtype(facts), device=shared.device)
            _check_fits(facts, made.element_size(), shared.untyped_storage().nbytes())
            made.set_(shared.untyped_storage(), facts.offset, facts.shape, strides)
    return _of_kind(kind, made, facts)


def is_small(data: memoryview) -> bool:
    """Whether torch takes longer for asking than for copying."""
    return 0 < len(data) < _SMALL


def new_small(kind: type[Any], facts: ArrayFacts, data: memoryview) -> torch.Tensor | None:
    """A new tensor with that content; None if its memory or its layout is not just its own."""
    if facts.storage_bytes or facts.strides is not None or facts.device != "cpu":
        return None
    _check_bytes(facts, data)
    with torch.no_grad():
        return _of_kind(kind, _source(facts, data).clone(), facts)


def looking_into(kind: type[Any], facts: ArrayFacts, data: memoryview) -> torch.Tensor:
    """A new tensor in the memory of `data`, which has its content already."""
    _check_bytes(facts, data)
    memory = torch.frombuffer(data, dtype=torch.uint8).untyped_storage()
    made = torch.empty(0, dtype=_dtype(facts))  # not a view, which would keep what it is one of
    with torch.no_grad():
        made.set_(memory, 0, facts.shape, _contiguous(facts.shape))
    return _of_kind(kind, made, facts)


def _of_kind(kind: type[Any], made: torch.Tensor, facts: ArrayFacts) -> torch.Tensor:
    if issubclass(kind, torch.nn.Parameter | torch.nn.Buffer):
        # Subclasses keep their class without their constructor being run.
        return torch.Tensor._make_subclass(kind, made, facts.requires_grad)
    return made.requires_grad_(facts.requires_grad) if facts.requires_grad else made


def plain(facts: ArrayFacts, data: memoryview) -> torch.Tensor:
    """A tensor with the content of a captured one, in memory of its own and in C order."""
    return _source(facts, data)


def _dtype(facts: ArrayFacts) -> torch.dtype:
    dtype = getattr(torch, facts.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{facts.dtype!r} is not a dtype of torch {torch.__version__}")
    return dtype


def _check_bytes(facts: ArrayFacts, data: memoryview) -> None:
    """`ValueError` if there are more or fewer bytes than an array has."""
    expected = math.prod(facts.shape) * _dtype(facts).itemsize
    if len(data) != expected:
        raise ValueError(f"{len(data)} bytes where {expected} were expected")


def _source(facts: ArrayFacts, data: memoryview) -> torch.Tensor:
    if not len(data):
        return torch.empty(facts.shape, dtype=_dtype(facts))
    flat = torch.frombuffer(data, dtype=torch.uint8)
    dtype = _dtype(facts)
    if flat.data_ptr() % dtype.itemsize:
        flat = flat.clone()  # the dtype can't be read from that address
    return flat.view(dtype).reshape(facts.shape)


def _allocate(facts: ArrayFacts, device: str) -> torch.Tensor:
    """Memory of the captured size, so that further views of it find their place."""
    dtype = _dtype(facts)
    strides = facts.strides or _contiguous(facts.shape)
    if facts.storage_bytes == 0:
        return torch.empty_strided(facts.shape, strides, dtype=dtype, device=device)
    made = torch.empty(0, dtype=dtype, device=device)
    _check_fits(facts, made.element_size(), facts.storage_bytes)
    if device == "cpu" and facts.storage_bytes > _LARGE:
        # Zero pages that nobody writes to take no memory, however many are asked for.
        memory = torch.frombuffer(mmap.mmap(-1, facts.storage_bytes), dtype=torch.uint8)
    else:
        memory = torch.zeros(facts.storage_bytes, dtype=torch.uint8, device=device)
    return made.set_(memory.untyped_storage(), facts.offset, facts.shape, strides)


def _check_fits(facts: ArrayFacts, element: int, memory: int) -> None:
    """`ValueError` if an array reaches beyond its memory; torch would let the memory grow."""
    strides = facts.strides or _contiguous(facts.shape)
    if 0 in facts.shape:
        return
    last = facts.offset + sum((n - 1) * step for n, step in zip(facts.shape, strides, strict=True))
    if min(strides, default=0) < 0 or (last + 1) * element > memory:
        raise ValueError(f"element {last} lies outside of a memory of {memory} bytes")


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
