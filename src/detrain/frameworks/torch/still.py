"""Tensors that only an update changes, and what tells when one is about to be changed.

Parameters and what optimizers keep of them can be copied while a forward and a backward pass run.
That nothing changes them in the meantime is not assumed:

- only a tensor whose memory nobody but known tensors looks into is *still*: torch counts who does.
  An alias that a program keeps (`.data`, a numpy array) would change it past the version counter;
- before an optimizer steps, and before a way past the version counter is opened (`.data`,
  `.numpy()`, a storage, an address, DLPack, a fused update), the copy is finished;
- all other changes count up the version of the tensor, which is compared when the copy is finished.

Not seen: memory that is written through an address or by a custom operator that says nothing of it.
The first copy of a loop is compared with the tensors once more, for that reason.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from detrain.frameworks.base import LiveLeaf

__all__ = ["StillTensors"]

_LARGE = 64 * 1024
"""Bytes: smaller ones are copied at once, which costs no more than to watch them."""

_WAYS_PAST = (
    "numpy", "__array__", "untyped_storage", "storage", "_typed_storage", "data_ptr",
    "const_data_ptr", "__dlpack__", "share_memory_", "resize_", "resize_as_", "set_",
    "apply_", "map_", "map2_",
)  # fmt: skip
"""Methods that change a tensor past its version counter, let others do so, or free its memory."""

_FUSED = ("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_")
"""Functions of torch that change their arguments without counting."""

_OWN: Any = torch.Tensor.untyped_storage
_USE_COUNT: Any = torch._C._storage_Use_Count


class StillTensors:
    """Those among the leaves of a walk that can be copied late."""

    def __init__(self, leaves: Iterable[LiveLeaf], objects: Sequence[Any]) -> None:
        self.addresses: dict[str, int] = {}
        self._watched: list[tuple[str, torch.Tensor, int]] = []
        self._places: set[int] = set()
        self._handle: Any = None
        self._plain: list[tuple[Any, str, Any]] = []
        kept = _kept_by_optimizers(objects)
        users: dict[int, list[torch.Tensor]] | None = None
        for leaf in leaves:
            tensor = leaf.array
            # Asked in this order: torch takes its time to tell whether one is a parameter.
            if leaf.nbytes < _LARGE or not (
                id(tensor) in kept
                or type(tensor) is torch.nn.Parameter
                or isinstance(tensor, torch.nn.Parameter)
            ):
                continue
            if not tensor.is_cpu or not tensor.is_contiguous():
                continue
            memory, known = _memory_of(tensor), [tensor]
            if memory.looking != _ALONE.looking:
                users = users or _users(objects)
                known = users[memory.place]
            if memory.fits and _is_known_to_these_only(memory, known):
                self.addresses[leaf.name] = tensor.data_ptr()
                self._places.add(memory.place)
                for each in known:
                    # An alias of our own keeps the memory, and can't be swapped for another.
                    alias = each.detach()
                    self._watched.append((leaf.name, alias, alias._version))

    def begin(self, settle: Callable[[], None]) -> None:
        """Stand before all that could change one of them unseen."""

        def before_step(*_: Any) -> None:
            settle()

        self._handle = register_optimizer_step_pre_hook(before_step)
        for name in _WAYS_PAST:
            self._stand_before(torch.Tensor, name, self._guarded(name, settle))
        self._stand_before(torch.Tensor, "data", self._guarded_data(settle))
        for name in _FUSED:
            self._stand_before(torch, name, _after(settle, getattr(torch, name, None)))
        for module in (torch, torch.utils.dlpack, torch._C):
            for name in ("to_dlpack", "_to_dlpack", "_to_dlpack_versioned"):
                self._stand_before(module, name, _after(settle, getattr(module, name, None)))

    def unchanged(self) -> bool:
        """Whether all versions are what they were."""
        return all(alias._version == version for _, alias, version in self._watched)

    def end(self) -> set[str]:
        """Step aside; the names of those that were changed."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        for owner, name, plain in self._plain:
            if plain is None:
                delattr(owner, name)
            else:
                setattr(owner, name, plain)
        changed = {name for name, alias, version in self._watched if alias._version != version}
        self._plain, self._watched = [], []
        return changed

    def _stand_before(self, owner: Any, name: str, guard: Any) -> None:
        if guard is not None and hasattr(owner, name):
            self._plain.append((owner, name, vars(owner).get(name)))
            setattr(owner, name, guard)

    def _guarded(self, name: str, settle: Callable[[], None]) -> Any:
        plain = getattr(torch.Tensor, name, None)
        if plain is None:
            return None

        def guard(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if self._is_one(tensor):
                settle()
            return plain(tensor, *args, **kwargs)

        return guard

    def _guarded_data(self, settle: Callable[[], None]) -> property:
        plain: Any = torch._C.TensorBase.data

        def get(tensor: torch.Tensor) -> Any:
            if self._is_one(tensor):
                settle()
            return plain.__get__(tensor)

        def put(tensor: torch.Tensor, value: Any) -> None:
            if self._is_one(tensor):
                settle()
            plain.__set__(tensor, value)

        return property(get, put)

    def _is_one(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor looks into the memory of one that is being copied."""
        try:
            return _OWN(tensor).data_ptr() in self._places
        except (RuntimeError, NotImplementedError):  # it wraps another, perhaps one of these
            return True


def _kept_by_optimizers(objects: Iterable[Any]) -> set[int]:
    """The ids of what optimizers keep of their parameters."""
    optimizers = [obj for obj in objects if isinstance(obj, torch.optim.Optimizer)]
    states = [each for optimizer in optimizers for each in optimizer.state.values()]
    return {id(value) for each in states for value in each.values()}


def _users(objects: Iterable[Any]) -> dict[int, list[torch.Tensor]]:
    """Tensors by the memory that they look into."""
    found: dict[int, list[torch.Tensor]] = defaultdict(list)
    for tensor in {id(obj): obj for obj in objects if isinstance(obj, torch.Tensor)}.values():
        if tensor.layout == torch.strided and tensor.is_cpu:
            found[_place(tensor)].append(tensor)
    return found


def _place(tensor: torch.Tensor) -> int:
    return int(_OWN(tensor).data_ptr())


class _Memory(NamedTuple):
    """The memory that a tensor looks into."""

    place: int
    looking: int
    """How many tensors look into it, and ..."""
    holding: int
    """... how many hold the object for it."""
    fits: bool
    """Whether torch allocated it, for this process alone, and nobody else has been given it."""


def _memory_of(tensor: torch.Tensor) -> _Memory:
    storage = _OWN(tensor)
    looking, holding = _USE_COUNT(storage._cdata), sys.getrefcount(storage)
    # What numpy has been given, or what it gave to torch, can't be resized.
    return _Memory(
        storage.data_ptr(), looking, holding, storage.resizable() and not storage.is_shared()
    )


_ALONE = _memory_of(torch.empty(1))
"""That of a tensor whose memory is its own."""


def _is_known_to_these_only(memory: _Memory, known: list[torch.Tensor]) -> bool:
    """Whether all that looks into a memory is among some tensors with versions."""
    if any(each.is_inference() for each in known):
        return False
    looking = _ALONE.looking + len(known) - 1
    return memory.looking == looking and memory.holding == _ALONE.holding


def _after(settle: Callable[[], None], plain: Any) -> Any:
    """A function that first settles."""
    if plain is None:
        return None

    def guard(*args: Any, **kwargs: Any) -> Any:
        settle()
        return plain(*args, **kwargs)

    return guard
