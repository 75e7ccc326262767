"""Tensors that only an update changes, and what tells when one is about to be changed.

Parameters and what optimizers keep of them can be copied while a forward and a backward pass run.
That nothing changes them in the meantime is not assumed:

- only a tensor whose memory nobody but known tensors looks into is *still*: torch counts who does.
  An alias that a program keeps (`.data`, a numpy array) would change it past the version counter;
- before an optimizer steps, and before a way past the version counter is opened (`.data`,
  `.numpy()`, a storage, an address, DLPack, a fused update), the copy is finished (`guards`);
- all other changes count up the version of the tensor, which is compared when the copy is finished.

Not seen: memory that is written through an address or by a custom operator that says nothing of it.
The first copy of a loop is compared with the tensors once more, for that reason.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import compress
from operator import attrgetter, ne
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from detrain.frameworks.torch.guards import GUARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from detrain.frameworks.base import LiveLeaf

__all__ = ["StillTensors", "is_alone", "is_compiled", "kept_by_optimizers"]

_LARGE = 64 * 1024
"""Bytes: smaller ones are copied at once, which costs no more than to watch them."""

_storage: Any = torch.Tensor.untyped_storage
_place: Any = torch.UntypedStorage.data_ptr
_resizable: Any = torch.UntypedStorage.resizable
_is_shared: Any = torch.UntypedStorage.is_shared
_use_count: Any = torch._C._storage_Use_Count
_implementation, _version = attrgetter("_cdata"), attrgetter("_version")


_Look = tuple[int, int, bool, bool]
"""Of a memory: how many tensors look into it, how many hold the object for it, whether torch
allocated it for itself (what numpy has been given, or what it gave to torch, can't be resized), and
whether other processes have it."""


class StillTensors:
    """Those among the leaves of a walk that can be copied late.

    What was found stands for the same tensors in the same places, from one copy to the next, as
    long as `prepare` says so.
    """

    def __init__(self, leaves: Iterable[LiveLeaf], objects: Sequence[Any]) -> None:
        self.addresses: dict[str, int] = {}
        users: dict[int, list[torch.Tensor]] | None = None
        places: set[int] = set()
        self._first: list[torch.Tensor] = []
        """A tensor for each memory, and ..."""
        self._expected: list[_Look] = []
        """... who looks into it."""
        self._names: list[str] = []
        self._watched: list[torch.Tensor] = []
        for leaf in _candidates(leaves, objects):
            (look,), place, known = _look([leaf.array]).looks, _place_of(leaf.array), [leaf.array]
            if look != _ALONE:
                users = users or _users(objects)
                known = users[place]
            if look != _known_to(len(known)) or any(map(torch.Tensor.is_inference, known)):
                continue
            self.addresses[leaf.name] = leaf.array.data_ptr()
            self._names += [leaf.name] * len(known)
            self._watched += known
            if place not in places:
                places.add(place)
                self._first.append(leaf.array)
                self._expected.append(look)
        self._places = frozenset(places)
        self._storages: list[Any] = []
        self._versions: list[int] = []

    def prepare(self) -> bool:
        """The tensors are about to be copied; False if others look into them than were found."""
        looked = _look(self._first)
        if looked.looks != self._expected or is_compiled():
            return False
        # They keep the memory, whatever becomes of the tensors.
        self._storages, self._versions = looked.storages, [*map(_version, self._watched)]
        return True

    def begin(self, settle: Callable[[], None]) -> None:
        """Stand before all that could change one of them unseen."""
        GUARDS.begin(self._places, settle)

    def changed(self) -> set[str]:
        """The names of those whose versions are not what they were."""
        return set(compress(self._names, map(ne, map(_version, self._watched), self._versions)))

    def end(self) -> None:
        """Let everything pass."""
        GUARDS.end()
        self._storages = []


def is_alone(tensor: torch.Tensor, *, can_resize: bool = True) -> bool:
    """Whether nothing but this tensor looks into its memory, as far as torch and Python know."""
    looking, holding, _, is_shared = _ALONE
    return _look([tensor]).looks[0] == (looking, holding, can_resize, is_shared)


def is_compiled() -> bool:
    """Whether anything was compiled: a hook on its update may compile it anew."""
    compiler = sys.modules.get("torch._dynamo.utils")
    return compiler is not None and compiler.counters["frames"]["total"] > 0


def _candidates(leaves: Iterable[LiveLeaf], objects: Iterable[Any]) -> list[LiveLeaf]:
    """Large parameters, and what optimizers keep of them, that lie in C order."""
    kept = kept_by_optimizers(objects)
    return [
        leaf
        for leaf in leaves
        # Asked in this order: torch takes its time to tell whether one is a parameter.
        if leaf.nbytes >= _LARGE
        and (
            id(leaf.array) in kept
            or type(leaf.array) is torch.nn.Parameter
            or isinstance(leaf.array, torch.nn.Parameter)
        )
        and leaf.array.is_cpu
        and leaf.array.is_contiguous()
    ]


def kept_by_optimizers(objects: Iterable[Any]) -> set[int]:
    """The ids of what optimizers keep of their parameters."""
    optimizers = [obj for obj in objects if isinstance(obj, torch.optim.Optimizer)]
    states = [each for optimizer in optimizers for each in optimizer.state.values()]
    return {id(value) for each in states if isinstance(each, dict) for value in each.values()}


def _users(objects: Iterable[Any]) -> dict[int, list[torch.Tensor]]:
    """Tensors by the memory that they look into."""
    found: dict[int, list[torch.Tensor]] = defaultdict(list)
    for tensor in {id(obj): obj for obj in objects if isinstance(obj, torch.Tensor)}.values():
        if tensor.layout == torch.strided and tensor.is_cpu:
            found[_place_of(tensor)].append(tensor)
    return found


def _place_of(tensor: torch.Tensor) -> int:
    return int(_place(_storage(tensor)))


class _Looked(NamedTuple):
    """The memories, different ones, that some tensors look into."""

    storages: list[Any]
    looks: list[_Look]


def _look(tensors: Sequence[torch.Tensor]) -> _Looked:
    storages = [*map(_storage, tensors)]
    looking = map(_use_count, map(_implementation, storages))
    holding = map(sys.getrefcount, storages)
    own = map(_resizable, storages), map(_is_shared, storages)
    return _Looked(storages, [*zip(looking, holding, *own, strict=True)])


_ALONE = _look([torch.empty(1)]).looks[0]
"""That of a tensor whose memory is its own."""


def _known_to(count: int) -> _Look:
    """That of tensors which, so many of them, look into one memory, and nothing else does."""
    looking, holding, can_resize, is_shared = _ALONE
    return looking + count - 1, holding, can_resize, is_shared
