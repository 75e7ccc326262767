"""What stands before all that could change a tensor past its version counter.

From the first copy of a run to the run's end, not for each copy anew: each attribute of a class
that changes throws away what Python remembers of the class, which the program then pays for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GUARDS"]

_WAYS_PAST = (
    "numpy", "__array__", "untyped_storage", "storage", "_typed_storage", "data_ptr",
    "const_data_ptr", "__dlpack__", "share_memory_", "resize_", "resize_as_", "set_",
    "apply_", "map_", "map2_",
)  # fmt: skip
"""Methods that change a tensor past its version counter, let others do so, or free its memory."""

_FUNCTIONS = (
    *((torch, f"_fused_{each}_") for each in ("adam", "adamw", "sgd", "adagrad")),
    *(
        (module, name)
        for module in (torch, torch.utils.dlpack, torch._C)
        for name in ("to_dlpack", "_to_dlpack", "_to_dlpack_versioned")
    ),
    (torch._C, "_swap_tensor_impl"),
)
"""Functions that change their arguments without counting, let others do so, or have two tensors
change places."""

_storage: Any = torch.Tensor.untyped_storage
_place: Any = torch.UntypedStorage.data_ptr


class Guards:
    """Has a copy of tensors finished before anything changes one of them unseen."""

    def __init__(self) -> None:
        self._settle: Callable[[], None] | None = None
        self._places: frozenset[int] = frozenset()
        self._handle: Any = None
        self._plain: list[tuple[Any, str, Any]] = []

    def begin(self, places: frozenset[int], settle: Callable[[], None]) -> None:
        """Call `settle` before anything changes what lies in these memories, or an update does."""
        if self._handle is None:
            self._stand()
        self._places, self._settle = places, settle

    def end(self) -> None:
        """Let everything pass."""
        self._settle, self._places = None, frozenset()

    def step_aside(self) -> None:
        """Leave torch as it was."""
        self.end()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        for owner, name, plain in self._plain:
            if plain is None:
                delattr(owner, name)
            else:
                setattr(owner, name, plain)
        self._plain = []

    def _stand(self) -> None:
        self._handle = register_optimizer_step_pre_hook(lambda *_: self._before_any())
        for name in _WAYS_PAST:
            self._stand_before(torch.Tensor, name, self._guarded_method)
        self._stand_before(torch.Tensor, "data", self._guarded_data)
        for module, name in _FUNCTIONS:
            self._stand_before(module, name, self._guarded_function)

    def _stand_before(self, owner: Any, name: str, guarded: Callable[[Any], Any]) -> None:
        plain = getattr(owner, name, None)
        if plain is not None:
            self._plain.append((owner, name, vars(owner).get(name)))
            setattr(owner, name, guarded(plain))

    def _before_any(self) -> None:
        settle = self._settle
        if settle is not None:
            settle()

    def _before(self, tensor: torch.Tensor) -> None:
        settle = self._settle
        if settle is not None and self._is_one(tensor):
            settle()

    def _is_one(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor looks into the memory of one that is being copied."""
        try:
            return _place(_storage(tensor)) in self._places
        except (RuntimeError, NotImplementedError):  # it wraps another, perhaps one of these
            return True

    def _guarded_method(self, plain: Any) -> Any:
        def guard(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            self._before(tensor)
            return plain(tensor, *args, **kwargs)

        return guard

    def _guarded_function(self, plain: Any) -> Any:
        def guard(*args: Any, **kwargs: Any) -> Any:
            self._before_any()
            return plain(*args, **kwargs)

        return guard

    def _guarded_data(self, plain: Any) -> property:
        def get(tensor: torch.Tensor) -> Any:
            self._before(tensor)
            return plain.__get__(tensor)

        def put(tensor: torch.Tensor, value: Any) -> None:
            self._before(tensor)
            plain.__set__(tensor, value)

        return property(get, put)


GUARDS = Guards()
"""Those of this process: one run is at work in it at a time."""
