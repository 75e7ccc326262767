"""PyTorch: tensors, generators and loaders. The only place that imports torch.

`tensors` copies and fills, `generators` positions, `loader` makes loaders skip by index,
`lodging` spares the program the wait for a copy, `gradients` watches that they are cleared; here
they are one adapter.
"""

from __future__ import annotations

import os
import sys
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import torch

from detrain import rng
from detrain.frameworks.torch import following, generators, glances, graphs, loader, tensors
from detrain.frameworks.torch.gradients import GradientWatch
from detrain.frameworks.torch.guards import GUARDS
from detrain.frameworks.torch.lodging import LODGING
from detrain.frameworks.torch.still import StillTensors, is_compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from detrain.frameworks.base import ArrayView, Filled, Follower, LiveLeaf, Mapped, Still
    from detrain.rng import Address, Fill
    from detrain.state import ArrayFacts

__all__ = ["ADAPTER"]

_STANDING = ("torch._C", "torch.autograd.graph", "torch._dynamo", "torch.fx", "torch._ops")

_deterministic: Any = torch.utils.deterministic


_COMPUTING = frozenset(
    {
        "torch.nn", "torch.utils.data.dataset", "torch.utils.data.sampler",
        "torch.utils.data.dataloader", "torch.utils.data.distributed",
        "torch.utils.data._utils.collate",
    }
)  # fmt: skip
"""Modules of functions and classes that only compute."""


class Torch:
    """Answers for PyTorch."""

    name = "torch"
    transparent = frozenset({"_parameters", "_buffers", "_modules"})

    def __init__(self) -> None:
        self._before: tuple[bool, bool, bool] | None = None

    @property
    def fast_words(self) -> Fill | None:
        """None: torch's Philox has 32-bit words."""
        return None

    @property
    def gradient(self) -> str:
        """Where anything was compiled, gradients are not to be left out.

        A compiled update would be compiled anew, perhaps to other bits, for the hook that watches.
        """
        return "" if is_compiled() else "grad"

    def prepare(self) -> None:
        """Deterministic algorithms, without filling fresh memory: that is what makes them slow."""
        if self._before is None:
            self._before = (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
                _deterministic.fill_uninitialized_memory,
            )
        # cuBLAS reads this once, before its first call.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        _set_deterministic(True, warn_only=True)
        _deterministic.fill_uninitialized_memory = False
        loader.install()

    def have_one_stream(self) -> None:
        """Have iterable datasets give what they give without workers."""
        loader.install(one_stream=True)

    def release(self) -> None:
        """Put the program's own choices back."""
        loader.uninstall()
        LODGING.leave()
        GUARDS.step_aside()
        if self._before is not None:
            enabled, warn_only, fill = self._before
            _set_deterministic(enabled, warn_only=warn_only)
            _deterministic.fill_uninitialized_memory = fill
            self._before = None

    def fingerprint(self) -> dict[str, str]:
        """Version, threads and instruction set: each of them was seen to change bits."""
        facts = {
            "torch": str(torch.__version__),
            "torch threads": str(torch.get_num_threads()),
            "torch instruction set": torch.backends.cpu.get_cpu_capability(),
            "torch default dtype": str(torch.get_default_dtype()),
        }
        if torch.cuda.is_available():
            names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
            facts["torch devices"] = ", ".join(names)
            facts["torch cuda"] = str(torch.version.cuda)
            facts["torch cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
        return facts

    def pin(self, fingerprint: Mapping[str, str]) -> None:
        """The number of threads decides how sums are split."""
        found = fingerprint.get("torch threads", "0")
        threads = int(found) if found.isascii() and found.isdigit() and len(found) < 5 else 0
        if threads and threads != torch.get_num_threads():
            torch.set_num_threads(threads)

    def decompose(self, obj: Any) -> dict[str, Any] | None:
        """Sparse tensors."""
        return tensors.decompose(obj) if isinstance(obj, torch.Tensor) else None

    def compose(self, parts: Mapping[str, Any], live: Any | None) -> Any:
        """Sparse tensors."""
        return tensors.compose(parts, live)

    def writers(self) -> list[tuple[Any, str]]:
        """`torch.save` opens its file in C++."""
        return [(torch.serialization, "_open_zipfile_writer")]

    def workers(self) -> set[int]:
        """Those of data loaders."""
        return loader.workers()

    def is_standing(self, obj: Any) -> bool:
        """Torch's own loader iterators, graph nodes, handles of hooks, compiled code."""
        if isinstance(obj, torch.Generator | torch.Tensor | torch._C.ScriptModule):
            return False
        kind = type(obj)
        if isinstance(
            obj, (*loader.STANDING, torch.finfo, torch.iinfo)
        ) or kind.__module__.startswith(_STANDING):
            return True
        # Process groups, reducers: objects of C++ that the program sets up again.
        in_cpp = any(cls.__name__ == "pybind11_object" for cls in kind.__mro__)
        return in_cpp and kind.__module__.startswith("torch.")

    def iterator_state(self, obj: Any) -> tuple[Any, dict[str, Any]] | None:
        """Where an iterator over a `DataLoader` is."""
        return (obj.loader, obj.state()) if isinstance(obj, loader.LoaderIterator) else None

    def set_iterator_state(self, obj: Any, state: Mapping[str, Any]) -> None:
        """Move an iterator over a `DataLoader`."""
        obj.set_state(state)

    def new_iterator(self, owner: Any, state: Mapping[str, Any]) -> Any:
        """An iterator over a `DataLoader` in the middle of an epoch."""
        made = loader.LoaderIterator(owner)
        made.set_state(state)
        return made

    def watch_graph(self, obj: Any, used: Callable[[], None]) -> Callable[[], bool] | None:
        """Watch the node that made a tensor."""
        return graphs.watch(obj, used)

    def watch_gradients(self, arrays: Iterable[Any], *, may_stay: bool) -> Callable[[], str]:
        """Watch backward passes, optimizers, and what is left in the end."""
        return GradientWatch(arrays, may_stay=may_stay).end

    def seeders(self) -> list[tuple[Any, str]]:
        """`manual_seed`, by both of its names, and those of CUDA."""
        cuda = [(torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all")]
        return [(torch, "manual_seed"), (torch.random, "manual_seed"), *cuda]

    def seed(self, seed: int) -> None:
        """Seed all devices."""
        torch.manual_seed(seed % (1 << 64))

    def note_positions(self) -> Callable[[], dict[str, str]]:
        """The default generators of all devices."""
        return generators.note_positions()

    def stand(self) -> bytes:
        """The CPU's default generator's."""
        return generators.state(torch.default_generator)

    def reposition(self, positions: Mapping[str, str]) -> None:
        """Put the default generators back."""
        generators.reposition(positions)

    def follower(self) -> Follower:
        """For the default generator of the CPU."""
        return following.TorchFollower()

    def is_generator(self, obj: Any) -> bool:
        """A `torch.Generator`."""
        return isinstance(obj, torch.Generator)

    def generator_at(self, address: Address) -> Any:
        """A `torch.Generator` of the CPU."""
        made = torch.Generator()
        following.rekey(made, address, rng.fill)
        return made

    def rekey(self, obj: Any, address: Address, fill: Fill) -> None:
        """Put a `torch.Generator` to the first number of an address."""
        following.rekey(obj, address, fill)

    def generator_state(self, obj: Any) -> Any:
        """The state of a `torch.Generator`."""
        return generators.state(obj) if isinstance(obj, torch.Generator) else None

    def set_generator_state(self, obj: Any, state: Any) -> None:
        """Put a `torch.Generator` back."""
        generators.set_state(obj, state)

    def new_generator(self, kind: type[Any]) -> Any:
        """A generator on the CPU."""
        if not issubclass(kind, torch.Generator):
            raise TypeError(f"{kind} is no torch.Generator")
        return kind()

    def computes(self, obj: Any) -> bool:
        """Layers, their functions, optimizers, schedulers, scalers, loaders and their parts, and
        the functions that are in C++, but for the one that opens files.
        """
        module = getattr(obj, "__module__", None) or ""
        if isinstance(obj, BuiltinFunctionType):
            name = obj.__name__
            return name != "from_file" and getattr(torch, name, None) is obj
        return module in _COMPUTING or module.startswith(
            ("torch.nn.", "torch.optim.", "torch.amp.")
        )

    def encode_value(self, obj: Any) -> str | None:
        """dtypes, devices, layouts, memory formats and shapes."""
        if isinstance(obj, torch.Size):
            return " ".join(map(str, obj))
        values = (torch.dtype, torch.device, torch.layout, torch.memory_format)
        return str(obj) if isinstance(obj, values) else None

    def decode_value(self, kind: str, text: str) -> Any:
        """Read what `encode_value` wrote."""
        if kind == "torch:Size":
            return torch.Size(map(int, text.split()))
        if kind == "torch:device":
            return torch.device(text)
        value = getattr(torch, text.removeprefix("torch."), None)
        if not isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            raise ValueError(f"{text!r} is not a {kind}")
        return value

    def view(self, obj: Any) -> ArrayView | None:
        """Describe a tensor."""
        return tensors.view(obj) if isinstance(obj, torch.Tensor) else None

    glance = staticmethod(glances.glance)

    def copy_out(self, obj: Any, into: memoryview) -> None:
        """Copy a tensor's bytes."""
        tensors.copy_out(obj, into)

    def address(self, obj: Any) -> int | None:
        """Where the elements begin, if they follow each other in the memory of the process."""
        return tensors.address(obj)

    def still(self, leaves: Iterable[LiveLeaf], objects: Sequence[Any]) -> Still | None:
        """Parameters, and what optimizers keep of them."""
        if is_compiled():
            GUARDS.step_aside()
            return None
        found = StillTensors(leaves, objects)
        return found if found.addresses else None

    def fill(self, obj: Any, facts: ArrayFacts, data: memoryview) -> None:
        """Fill a tensor in place."""
        tensors.fill(obj, facts, data)

    def fill_all(self, arrays: Sequence[Filled]) -> None:
        """Fill tensors in place."""
        tensors.fill_all(arrays)

    def create(
        self, kind: type[Any], facts: ArrayFacts, data: memoryview, shared: Any | None
    ) -> Any:
        """Make a tensor."""
        return tensors.create(kind, facts, data, shared)

    def new_with(self, kind: type[Any], facts: ArrayFacts, data: memoryview) -> Any | None:
        """A small tensor."""
        return tensors.new_small(kind, facts, data) if tensors.is_small(data) else None

    def lodge(self, kind: type[Any], facts: ArrayFacts, mapped: Mapped) -> Any | None:
        """A large tensor on the CPU."""
        return LODGING.lodge(kind, facts, mapped)

    def move_in(self, objects: Iterable[Any]) -> list[Callable[[], None]]:
        """What optimizers keep moves while the program goes on, until its next update."""
        return LODGING.move_in(objects)

    def settle(self) -> None:
        """All lodged tensors have moved."""
        LODGING.settle()

    def set_field(self, obj: Any, name: str, value: Any) -> None:
        """Put back a gradient or an attribute."""
        setattr(obj, name, value)


def _set_deterministic(enabled: bool, *, warn_only: bool) -> None:
    """`torch.use_deterministic_algorithms`, without importing the compiler to tell it.

    That import takes seconds, and most programs never compile. One that is there is told.
    """
    if "torch._inductor.config" in sys.modules:
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
    else:
        torch._C._set_deterministic_algorithms(enabled, warn_only=warn_only)


ADAPTER = Torch()
