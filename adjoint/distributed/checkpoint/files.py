"""Checkpoints in a folder, in PyTorch's format: each rank writes a `.distcp` file of pieces, `.metadata` says what is where.

`.metadata` is written last, and replaced as a whole; files of another saving are deleted after that. Until then the folder holds
the checkpoint that it held before.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adjoint as torch

from ...futures import Future
from ..collectives import barrier
from ..groups import get_rank, get_world_size, is_initialized
from ..objects import all_gather_object, broadcast_object_list
from ..tensor.dtensor import DTensor
from ..tensor.placement_types import spans
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageInfo,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
    dump,
    parse,
)

__all__ = ["FileSystemReader", "FileSystemWriter", "async_save", "load", "save"]

Keys = tuple[Any, ...]


class FileSystemWriter:
    """Writes to a folder. Options other than the path have no effect."""

    def __init__(self, path: Any, **options: Any) -> None:
        self.path = Path(path)


class FileSystemReader:
    """Reads from a folder."""

    def __init__(self, path: Any, **options: Any) -> None:
        self.path = Path(path)

    def read_metadata(self) -> Metadata:
        """What is in the checkpoint."""
        return parse((self.path / ".metadata").read_bytes())


def _folder(checkpoint_id: Any, storage: Any) -> Path:
    if checkpoint_id is None and storage is None:
        raise ValueError("checkpoint_id is needed: the folder of the checkpoint")
    return Path(checkpoint_id) if checkpoint_id is not None else Path(storage.path)


def _flat(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """The values in nested dicts, and in lists that hold dicts or tensors, with the keys on the way."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _flat(each, (*keys, str(name)))
    elif isinstance(value, list) and any(_is_nested(each) for each in value):
        for number, each in enumerate(value):
            yield from _flat(each, (*keys, number))
    else:
        yield keys, value


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, torch.Tensor)) or (isinstance(value, list) and any(map(_is_nested, value)))


def _name(keys: Keys) -> str:
    return ".".join(map(str, keys))


def _plain_state(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state, with the state dicts of objects that have one in their places."""
    return {
        name: value.state_dict()
        if not isinstance(value, (dict, torch.Tensor)) and hasattr(value, "state_dict")
        else value
        for name, value in state_dict.items()
    }


def _box(tensor: Any) -> list[tuple[int, int]]:
    """For each dimension, which indices of the whole tensor this process has."""
    if not isinstance(tensor, DTensor):
        return [(0, length) for length in tensor.shape]
    mesh = tensor.device_mesh
    return spans(tensor.shape, mesh, tensor.placements, mesh.get_coordinate() or (0,) * mesh.ndim)


def _writes(tensor: Any, number: int, rank: int, ranks: int) -> bool:
    """Whether this process writes its piece: of what several processes have, one writes; they take turns."""
    if not isinstance(tensor, DTensor):
        return number % ranks == rank
    place = tensor.device_mesh.get_coordinate()
    if place is None:
        return False
    return all(placement.is_shard() or not at for placement, at in zip(tensor.placements, place, strict=True))


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Write a state to the folder `checkpoint_id`; called on all ranks, each of which writes its part.

    PyTorch reads it too.

    Args:
        state_dict: nested dicts of tensors and plain data; at the top also objects with a `state_dict` method.
        checkpoint_id: the folder.
        storage_writer: a `FileSystemWriter` instead.
        process_group: the ranks; all if None.
        no_dist: whether this process writes alone.
    """
    folder = _folder(checkpoint_id, storage_writer)
    rank, ranks = (
        (get_rank(process_group), get_world_size(process_group)) if is_initialized() and not no_dist else (0, 1)
    )
    token = [uuid.uuid4().hex]
    if ranks > 1:
        broadcast_object_list(token, group=process_group, group_src=0)
    folder.mkdir(parents=True, exist_ok=True)
    file = f"__{rank}_0_{token[0]}.distcp"
    pieces: list[Any] = []
    keys_of: dict[str, Keys] = {}
    with (folder / file).open("wb") as stream:
        for number, (keys, value) in enumerate(_flat(_plain_state(state_dict))):
            name = _name(keys)
            keys_of[name] = keys
            is_tensor = isinstance(value, torch.Tensor)
            if not (_writes(value, number, rank, ranks) if is_tensor else number % ranks == rank):
                continue
            start = stream.tell()
            if is_tensor:
                local = (value.to_local() if isinstance(value, DTensor) else value).detach()
                box = _box(value)
                torch.save(local.clone(), stream)
                about = [
                    str(value.dtype),
                    list(value.shape),
                    [low for low, _ in box],
                    [high - low for low, high in box],
                ]
            else:
                torch.save(value, stream)
                about = []
            pieces.append([name, file, start, stream.tell() - start, about])
        stream.flush()
        os.fsync(stream.fileno())
    everyone: list[Any] = [pieces]
    if ranks > 1:
        everyone = [None] * ranks
        all_gather_object(everyone, pieces, group=process_group)
    metadata = _metadata(everyone, keys_of, token[0])
    if rank == 0:
        written = folder / f".metadata.{token[0]}"
        written.write_bytes(dump(metadata))
        written.replace(folder / ".metadata")
        for old in folder.glob("__*.distcp"):
            if not old.stem.endswith(token[0]):
                old.unlink()
    if ranks > 1:
        barrier(group=process_group)
    return metadata


def _metadata(everyone: list[Any], keys_of: dict[str, Keys], token: str) -> Metadata:
    """The description of what all ranks have written."""
    described: dict[str, Any] = {}
    places: dict[MetadataIndex, StorageInfo] = {}
    for name, file, start, length, about in (piece for pieces in everyone for piece in pieces):
        offsets, index = None, None
        if about:
            dtype, shape, low, sizes = about
            properties = TensorProperties(dtype)
            entry = described.setdefault(name, TensorStorageMetadata(properties, torch.Size(shape), []))
            offsets, index = torch.Size(low), len(entry.chunks)
            entry.chunks.append(ChunkStorageMetadata(offsets, torch.Size(sizes)))
        else:
            described[name] = BytesStorageMetadata()
        places[MetadataIndex(name, offsets, index)] = StorageInfo(file, start, length)
    return Metadata(described, keys_of, places, StorageMeta(save_id=token), "1.0.0")


def async_save(state_dict: dict[str, Any], **options: Any) -> Future[Any]:
    """As `save`; the future that it returns is complete, since MPI's calls of one process follow one another."""
    future: Future[Any] = Future()
    future.set_result(save(state_dict, **options))
    return future


class Reading:
    """A checkpoint that is being read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metadata = FileSystemReader(folder).read_metadata()

    def piece(self, index: MetadataIndex) -> Any:
        """A piece of a tensor, or a value."""
        place = self.metadata.storage_data[index]
        if place.transform_descriptors:
            raise NotImplementedError(f"{index.fqn} is stored transformed: {', '.join(place.transform_descriptors)}")
        path = (self.folder / place.relative_path).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise RuntimeError(f"the checkpoint refers to {place.relative_path}, which is not in its folder")
        with path.open("rb") as file:
            file.seek(place.offset)
            return torch.load(io.BytesIO(file.read(place.length)))

    def fill(self, name: str, tensor: Any) -> None:
        """Copy the elements that a tensor has in this process from the pieces that have them.

        Raises:
            ValueError: if the tensor has another shape.
        """
        entry = self.metadata.state_dict_metadata[name]
        if not isinstance(entry, TensorStorageMetadata):
            raise RuntimeError(f"{name} is a tensor here, and a value in the checkpoint")
        if tuple(entry.size) != tuple(tensor.shape):
            raise ValueError(f"Size mismatch between saved {entry.size} and current: {tensor.shape} for {name}")
        box = _box(tensor)
        local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        for chunk in entry.chunks:
            common = [
                (max(low, start), min(high, start + size))
                for (low, high), start, size in zip(box, chunk.offsets, chunk.sizes, strict=True)
            ]
            if any(low >= high for low, high in common):
                continue
            piece = self.piece(MetadataIndex(name, chunk.offsets))
            here = tuple(slice(low - start, high - start) for (low, high), (start, _) in zip(common, box, strict=True))
            there = tuple(slice(low - at, high - at) for (low, high), at in zip(common, chunk.offsets, strict=True))
            local[here] = piece[there]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: FileSystemReader | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state from the folder `checkpoint_id`, in place; each rank reads the parts that it needs.

    PyTorch may have written it. Tensors are written to, other values are replaced. Objects with a `state_dict` method get what is
    read by `load_state_dict`.

    Raises:
        RuntimeError: if the checkpoint lacks something.
        ValueError: if it has a tensor in another shape.
    """
    reading = Reading(_folder(checkpoint_id, storage_reader))
    state = _plain_state(state_dict)
    found = list(_flat(state))
    for keys, _ in found:
        if _name(keys) not in reading.metadata.state_dict_metadata:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {_name(keys)}.")
    with torch.no_grad():
        for keys, value in found:
            if isinstance(value, torch.Tensor):
                reading.fill(_name(keys), value)
            else:
                _replace(state, keys, reading.piece(MetadataIndex(_name(keys))))
    for name, value in state_dict.items():
        if value is state[name]:
            continue
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(state[name])
        else:
            state_dict[name] = state[name]


def _replace(state: Any, keys: Keys, value: Any) -> None:
    """Put a value in its place in nested dicts and lists."""
    for key in keys[:-1]:
        state = state[_own_key(state, key)]
    state[_own_key(state, keys[-1])] = value


def _own_key(state: Any, key: Any) -> Any:
    """The key of a dict that is written so."""
    return key if isinstance(state, list) or key in state else next(own for own in state if str(own) == key)
