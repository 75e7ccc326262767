"""Where torch's generators stand."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["note_positions", "reposition", "set_state", "state"]


def note_positions() -> Callable[[], dict[str, str]]:
    """The default generators: the CPU's, and those of accelerators that are in use."""
    found = {"cpu": torch.default_generator.get_state()}
    # Asking a device that was never used would initialise it, at the cost of its memory.
    if torch.cuda.is_initialized() and torch.cuda.is_available():  # type: ignore[no-untyped-call]
        for index, generator in enumerate(torch.cuda.default_generators):
            found[f"cuda:{index}"] = generator.get_state()
    return lambda: {device: _bytes_of(raw).hex() for device, raw in found.items()}


def reposition(positions: Mapping[str, str]) -> None:
    """Put the default generators back."""
    for device, text in positions.items():
        if device == "cpu":
            set_state(torch.default_generator, bytes.fromhex(text))
        else:
            torch.cuda.init()  # type: ignore[no-untyped-call]
            index = int(device.removeprefix("cuda:"))
            set_state(torch.cuda.default_generators[index], bytes.fromhex(text))


def state(generator: torch.Generator) -> bytes:
    """A generator's state as bytes."""
    return _bytes_of(generator.get_state())


def _bytes_of(raw: torch.Tensor) -> bytes:
    return ctypes.string_at(raw.data_ptr(), raw.numel())


def set_state(generator: torch.Generator, raw: bytes) -> None:
    """Put a generator into a state."""
    generator.set_state(torch.frombuffer(bytearray(raw), dtype=torch.uint8))
