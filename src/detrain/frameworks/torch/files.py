"""Tensors in the files of others: bytes for safetensors, `torch.save`, and DCP's folders."""

from __future__ import annotations

import importlib
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from detrain.frameworks.torch import tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["as_bytes", "write_dcp", "write_plain"]


class TensorBytes(NamedTuple):
    """A tensor as a data file takes it: its name, dtype, shape and bytes in C order."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes | bytearray | memoryview


def as_bytes(found: Mapping[str, torch.Tensor]) -> list[TensorBytes]:
    """Each tensor's bytes."""
    made = []
    for name, tensor in found.items():
        buffer = bytearray(tensor.numel() * tensor.element_size())
        if buffer:
            tensors.copy_out(tensor, memoryview(buffer))
        dtype = str(tensor.dtype).removeprefix("torch.")
        made.append(TensorBytes(name, dtype, tuple(tensor.shape), buffer))
    return made


def write_plain(target: Path, found: Mapping[str, Any]) -> None:
    """A file that `torch.load(…, weights_only=True)` opens."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(target.name + ".staged")
    torch.save(found, staged)
    staged.replace(target)


def write_dcp(target: Path, found: Mapping[str, Any]) -> None:
    """A folder that `torch.distributed.checkpoint.load` opens."""
    checkpoint: Any = importlib.import_module("torch.distributed.checkpoint")
    staged = target.with_name(target.name + ".staged")
    shutil.rmtree(staged, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # as it should be
        checkpoint.save(dict(found), checkpoint_id=staged, no_dist=True)
    if target.exists():
        shutil.rmtree(target)
    staged.rename(target)
