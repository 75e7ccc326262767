"""`torch.distributed.checkpoint` over a store of DETrain's: a writer and a reader.

    dcp.save({"model": model.state_dict()}, storage_writer=StoreWriter(store, "0000000100"))
    dcp.load(state, storage_reader=StoreReader(store, "0000000100"))

Each rank writes one data file, in the safetensors format; the coordinator publishes the description
last, as JSON, under the checkpoint's name: until then there is no checkpoint, from then on it is
whole. Every item has a digest, which is verified when it is read. No pickle is written or read:
plain data is JSON (`plain`), and a state dict that holds anything else is refused when it is saved.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from detrain.errors import DamagedCheckpoint, UsageError
from detrain.frameworks.torch.files import TensorBytes, as_bytes
from detrain.frameworks.torch.plain import plain_json, planner_bytes
from detrain.trace.digest import digest_array, digest_text

__all__ = ["StoreReader", "StoreWriter"]

_VERSION = 1
_ENDING = ".dcp.json"


class ArrayStore(Protocol):
    """What is needed of `checkpoint.store.Store`."""

    def put(self, name: str, chunks: Iterable[bytes | bytearray | memoryview], kind: str) -> int:
        """Write a file, whole and durable."""

    def put_arrays(self, name: str, arrays: Sequence[Any], kind: str = "data") -> int:
        """Write a data file, whole and durable."""

    def read(self, name: str) -> bytes:
        """The content of a small file."""

    def arrays(self, name: str, size: int) -> dict[str, memoryview]:
        """The arrays of a data file of that size."""


class _Place(msgspec.Struct, frozen=True):
    """Where an item lies."""

    fqn: str
    offset: tuple[int, ...] | None
    number: int | None
    file: str
    size: int
    name: str
    digest: str


class _Tensor(msgspec.Struct, frozen=True):
    """A tensor and its chunks, as (offsets, sizes)."""

    dtype: str
    size: tuple[int, ...]
    chunks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    requires_grad: bool = False


class _Description(msgspec.Struct, frozen=True):
    """What `dcp.Metadata` says, without classes."""

    version: int
    tensors: dict[str, _Tensor]
    others: tuple[str, ...]
    paths: dict[str, tuple[str | int, ...]]
    places: tuple[_Place, ...]


class _Envelope(msgspec.Struct, frozen=True):
    digest: str
    body: msgspec.Raw


class _Share(NamedTuple):
    """Which file a rank writes."""

    file: str


class StoreWriter(StorageWriter):
    """Writes a state dict into a store, under a name that is there once it is complete."""

    def __init__(self, store: ArrayStore, name: str) -> None:
        self._store, self._name = store, name

    def reset(self, checkpoint_id: Any = None) -> None:
        """Begin a checkpoint."""
        if checkpoint_id:
            self._name = str(checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing to set up: a store has no folders."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """As planned."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each rank its file."""
        return [
            dataclasses.replace(plan, storage_data=_Share(f"{self._name}-{rank}.safetensors"))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this rank's items; they are durable when this returns."""
        file, arrays, indices = plan.storage_data.file, [], []
        for number, item in enumerate(plan.items):
            data = planner.resolve_data(item)
            name = f"{item.index.fqn}#{number}"
            if item.type == WriteItemType.BYTE_IO:
                assert isinstance(data, io.BytesIO)
                raw = _as_json(item.index.fqn, data)
                arrays.append(TensorBytes(name, "uint8", (len(raw),), raw))
            else:
                assert isinstance(data, torch.Tensor)
                arrays += as_bytes({name: data.detach().cpu()})
            indices.append(item.index)
        size = self._store.put_arrays(file, arrays)
        results = []
        for index, array in zip(indices, arrays, strict=True):
            offset = None if index.offset is None else tuple(index.offset)
            place = _Place(
                index.fqn, offset, index.index, file, size, array.name, digest_array(array.data)
            )
            results.append(WriteResult(index, len(array.data), place))
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Publish the checkpoint. Only the coordinator calls it, when all ranks have written."""
        known = metadata.state_dict_metadata
        description = _Description(
            _VERSION,
            {name: _tensor(m) for name, m in known.items() if isinstance(m, TensorStorageMetadata)},
            tuple(name for name, m in known.items() if isinstance(m, BytesStorageMetadata)),
            {name: tuple(path) for name, path in (metadata.planner_data or {}).items()},
            tuple(result.storage_data for rank in results for result in rank),
        )
        body = msgspec.json.encode(description)
        envelope = _Envelope(digest_text(body), msgspec.Raw(body))
        self._store.put(self._name + _ENDING, [msgspec.json.encode(envelope)], "manifest")

    def storage_meta(self) -> StorageMeta | None:
        """The checkpoint's name."""
        return StorageMeta(checkpoint_id=self._name)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Names are flat."""
        return "/" not in str(checkpoint_id)


class StoreReader(StorageReader):
    """Reads what a `StoreWriter` wrote, into any sharding that the planner asks for."""

    def __init__(self, store: ArrayStore, name: str) -> None:
        self._store, self._name = store, name
        self._places: dict[MetadataIndex, _Place] = {}
        self._tensors: dict[str, _Tensor] = {}

    def reset(self, checkpoint_id: Any = None) -> None:
        """Begin to read a checkpoint."""
        if checkpoint_id:
            self._name = str(checkpoint_id)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The description, checked against its digest; `DamagedCheckpoint` if it is not whole."""
        found = self._description()
        self._tensors = found.tensors
        self._places = {
            MetadataIndex(place.fqn, place.offset, place.number): place for place in found.places
        }
        known: dict[str, Any] = {name: _storage(each) for name, each in found.tensors.items()}
        known |= {name: BytesStorageMetadata() for name in found.others}
        return Metadata(known, dict(found.paths), self._places, StorageMeta(self._name))

    def _description(self) -> _Description:
        file = self._name + _ENDING
        try:
            envelope = msgspec.json.decode(self._store.read(file), type=_Envelope)
            if digest_text(bytes(envelope.body)) != envelope.digest:
                raise DamagedCheckpoint(file, "was altered: its digest is another")
            found = msgspec.json.decode(envelope.body, type=_Description)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedCheckpoint(file, f"expected a description of tensors: {error}") from error
        for name, tensor in found.tensors.items():
            if not isinstance(getattr(torch, tensor.dtype, None), torch.dtype):
                raise DamagedCheckpoint(file, f"{name}: {tensor.dtype!r} is no dtype of torch")
        return found

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Ranks other than the coordinator get the places with the metadata."""
        self._places = metadata.storage_data
        if not self._tensors:
            self._tensors = self._description().tensors

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """As planned."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """As planned."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Copy what is asked for; each item is verified first."""
        files: dict[str, dict[str, memoryview]] = {}
        for item in plan.items:
            place = self._places[item.storage_index]
            if place.file not in files:
                files[place.file] = self._store.arrays(place.file, place.size)
            data = files[place.file].get(place.name)
            if data is None or digest_array(data) != place.digest:
                raise DamagedCheckpoint(place.file, f"{place.fqn} is missing or was altered")
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, _from_json(place, data))
                continue
            chunk = self._chunk(place, data)
            for axis, (start, length) in enumerate(
                zip(item.storage_offsets, item.lengths, strict=True)
            ):
                chunk = chunk.narrow(axis, start, length)
            target = planner.resolve_tensor(item).detach()
            target.copy_(chunk)
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _chunk(self, place: _Place, data: memoryview) -> torch.Tensor:
        tensor = self._tensors[place.fqn]
        sizes = dict(tensor.chunks)
        shape = sizes.get(place.offset or tuple(0 for _ in tensor.size), tensor.size)
        dtype: torch.dtype = getattr(torch, tensor.dtype)
        if not len(data):
            return torch.empty(shape, dtype=dtype)
        flat = torch.empty(len(data), dtype=torch.uint8)
        flat.copy_(torch.frombuffer(data, dtype=torch.uint8))
        try:
            return flat.view(dtype).reshape(shape)
        except RuntimeError as error:
            raise DamagedCheckpoint(place.file, f"{place.fqn}: {error}") from error

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Names are flat."""
        return "/" not in str(checkpoint_id)


def _as_json(fqn: str, pickled: io.BytesIO) -> bytes:
    try:
        return plain_json(pickled.getvalue())
    except TypeError as error:
        raise UsageError(
            f"{fqn} is no plain data, and to load anything else, code named by the file would have "
            f"to run: {error}. Leave it out of the state dict"
        ) from None


def _from_json(place: _Place, data: memoryview) -> io.BytesIO:
    try:
        return planner_bytes(bytes(data))
    except ValueError as error:
        raise DamagedCheckpoint(place.file, f"{place.fqn} is no plain data: {error}") from error


def _tensor(metadata: TensorStorageMetadata) -> _Tensor:
    chunks = tuple((tuple(chunk.offsets), tuple(chunk.sizes)) for chunk in metadata.chunks)
    properties = metadata.properties
    dtype = str(properties.dtype).removeprefix("torch.")
    return _Tensor(dtype, tuple(metadata.size), chunks, properties.requires_grad)


def _storage(tensor: _Tensor) -> TensorStorageMetadata:
    properties = TensorProperties(
        dtype=getattr(torch, tensor.dtype), requires_grad=tensor.requires_grad
    )
    chunks = [ChunkStorageMetadata(torch.Size(o), torch.Size(s)) for o, s in tensor.chunks]
    return TensorStorageMetadata(properties, torch.Size(tensor.size), chunks)
