"""Tensors that lie in the memory of a checkpoint's file, until they have moved to their own.

What an optimizer keeps is made by its first step, so it is not there yet when a rebuilt program
gets its state back. To copy it would have the program wait for most of a checkpoint's bytes, which
it needs no earlier than at its next update. So these tensors are *lodged*: they look into the pages
of the file, mapped privately, and are there from the beginning. While the program goes on, a thread
copies them, and sees whether they are as they were written; before anything could change one of
them (`guards`), they get their copies, or the damage that was found is raised.

A tensor that something else looks into by then stays where it is, which is right as well: a write
to a private page never reaches the file. One that was changed all the same is copied anew.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import torch

from detrain.errors import DamageFoundLate
from detrain.frameworks.beside import WORTH_A_THREAD
from detrain.frameworks.find import memory_at
from detrain.frameworks.torch import tensors
from detrain.frameworks.torch.guards import GUARDS
from detrain.frameworks.torch.still import is_alone, is_compiled, kept_by_optimizers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from detrain.frameworks.base import Mapped
    from detrain.state import ArrayFacts

__all__ = ["LODGING", "may_compile"]

_ALIGNED = 64
"""Bytes at whose multiples torch lays its own tensors."""

_plain_data: Any = torch._C.TensorBase.data
_plain_address: Any = torch._C.TensorBase.data_ptr
"""Not those that are guarded: they would have themselves wait."""


class _Lodger:
    """A tensor, as it was when it was restored, and memory of its own that it will move to."""

    def __init__(self, tensor: torch.Tensor, mapped: Mapped) -> None:
        self.tensor, self.address = tensor, tensor.data_ptr()
        # Its memory stays while it is read, whatever becomes of the tensor.
        self._mapped = mapped
        self._version = -1

    def prepare(self) -> None:
        """Take memory. On the program's thread: what it has freed is there already."""
        self._own = torch.empty(self.tensor.shape, dtype=self.tensor.dtype)
        self._target = memory_at(self._own.data_ptr(), self._own.nbytes)

    def copy(self) -> None:
        """Copy it, while the interpreter is free. Any thread may do that."""
        self._version = self.tensor._version
        self._mapped.copy(self._target)

    def move(self) -> None:
        """Have it in memory of its own, unless it has left or is looked into by others."""
        if self._version < 0:
            self.copy()  # first: where it stays, it is to be checked as well
        left = _plain_address(self.tensor) != self.address
        if left or not is_alone(self.tensor, can_resize=False):
            return
        if self.is_changed():
            self._target[:] = self._mapped.data
        _plain_data.__set__(self.tensor, self._own)

    def is_changed(self) -> bool:
        """Whether it is not as it was when it was copied, or was not copied."""
        return self.tensor._version != self._version


class Lodging:
    """The lodged tensors of this process. One run is at work in it at a time."""

    def __init__(self) -> None:
        self._lodgers: dict[int, _Lodger] = {}
        """By their addresses: two of one content may have come in one memory."""
        self._thread: threading.Thread | None = None
        self._damage: Exception | None = None
        """Why a tensor is not as it was written: it, and all others, stay where they are."""
        self._lock, self._owner = threading.RLock(), 0

    def lodge(self, kind: type[Any], facts: ArrayFacts, mapped: Mapped) -> torch.Tensor | None:
        """A tensor in that memory; None if it has to be made and filled."""
        data = mapped.data
        is_large = len(data) >= WORTH_A_THREAD
        if not is_large or data.readonly or facts.device != "cpu" or facts.strides or facts.offset:
            return None
        # A guard in the way of a compiler may have it compile something else.
        if facts.storage_bytes or may_compile() or is_compiled():
            return None
        made = tensors.looking_into(kind, facts, data)
        lodger = _Lodger(made, mapped)
        if lodger.address % _ALIGNED or lodger.address in self._lodgers:
            return None
        self._lodgers[lodger.address] = lodger
        return made

    def move_in(self, objects: Iterable[Any]) -> list[Callable[[], None]]:
        """Have what optimizers keep move while the program goes on; gives what moves the others."""
        lodgers, kept = self._lodgers.values(), kept_by_optimizers(objects)
        for each in lodgers:
            each.prepare()
        others = [each.move for each in lodgers if id(each.tensor) not in kept]
        self._lodgers = {each.address: each for each in lodgers if id(each.tensor) in kept}
        if self._lodgers:
            self._owner = os.getpid()
            GUARDS.begin(frozenset(self._lodgers), self.settle)
            self._thread = threading.Thread(
                target=self._copy, args=([*self._lodgers.values()],), daemon=True
            )
            self._thread.start()
        return others

    def settle(self) -> None:
        """Wait for the copies, and give them to the tensors. Any thread may call it.

        `DamageFoundLate`, each time, if one of them was altered.
        """
        if not self._lodgers or os.getpid() != self._owner:
            return  # a child that was forked meanwhile has pages of its own
        with self._lock:
            if self._thread is None:
                return
            self._thread.join()
            if self._damage is not None:
                raise self._damage
            for each in self._lodgers.values():
                each.move()
            self._thread, self._lodgers = None, {}
            GUARDS.end()

    def leave(self) -> None:
        """The run is over: all have moved, or stay where they are if there is damage."""
        with contextlib.suppress(DamageFoundLate):
            self.settle()
        self._thread, self._lodgers, self._damage = None, {}, None

    def wait(self) -> None:
        """Have no thread: the process is about to be forked."""
        thread = self._thread
        if thread is not None and os.getpid() == self._owner:
            thread.join()

    def _copy(self, lodgers: Iterable[_Lodger]) -> None:
        try:
            for each in lodgers:
                each.copy()
        except Exception as error:  # it is raised where it is waited for
            self._damage = error


def may_compile() -> bool:
    """Whether the program has asked for something to be compiled, be it later."""
    asked = sys.modules.get("torch._dynamo.eval_frame")
    if asked is None:
        return False
    backends = getattr(asked, "cached_backends", None)
    return backends is None or any(map(callable, backends.values()))


LODGING = Lodging()

os.register_at_fork(before=LODGING.wait)
