"""Reading checkpoints: folders in PyTorch's format, with `.distcp` files of pieces, and `.metadata`, which lists the pieces."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adjoint as torch

from ..state import wait_for_saving
from ..tensor.dtensor import DTensor
from ..tensor.placement_types import spans
from .metadata import Metadata, MetadataIndex, TensorStorageMetadata, parse
from .stateful import Stateful

__all__ = ["FileSystemReader", "FileSystemWriter", "load"]

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
        """Read the metadata of the checkpoint."""
        return parse((self.path / ".metadata").read_bytes())


def folder_of(checkpoint_id: Any, storage: Any) -> Path:
    if checkpoint_id is None and storage is None:
        raise ValueError("checkpoint_id is needed: the folder of the checkpoint")
    return Path(checkpoint_id) if checkpoint_id is not None else Path(storage.path)


def flat(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Return the values in nested dicts, and in lists that contain dicts or tensors, with the keys that lead to them."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from flat(each, (*keys, str(name)))
    elif isinstance(value, list) and any(_is_nested(each) for each in value):
        for number, each in enumerate(value):
            yield from flat(each, (*keys, number))
    else:
        yield keys, value


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, torch.Tensor)) or (isinstance(value, list) and any(map(_is_nested, value)))


def name_of(keys: Keys) -> str:
    return ".".join(map(str, keys))


def plain_state(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return the state with state dicts in place of objects that have a state dict."""
    return {name: value.state_dict() if isinstance(value, Stateful) else value for name, value in state_dict.items()}


def box_of(tensor: Any) -> list[tuple[int, int]]:
    """Return, for each dimension, the range of indices of the whole tensor that this process has."""
    if not isinstance(tensor, DTensor):
        return [(0, length) for length in tensor.shape]
    mesh = tensor.device_mesh
    return spans(tensor.shape, mesh, tensor.placements, mesh.get_coordinate() or (0,) * mesh.ndim)


class Reading:
    """A checkpoint that is being read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metadata = FileSystemReader(folder).read_metadata()

    def piece(self, index: MetadataIndex) -> Any:
        """Return a piece of a tensor, or a value."""
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
        """Copy the elements of this process's part of a tensor from the pieces that contain them.

        Raises:
            ValueError: if the tensor has another shape.
        """
        entry = self.metadata.state_dict_metadata[name]
        if not isinstance(entry, TensorStorageMetadata):
            raise RuntimeError(f"{name} is a tensor here, and a value in the checkpoint")
        if tuple(entry.size) != tuple(tensor.shape):
            raise ValueError(f"Size mismatch between saved {entry.size} and current: {tensor.shape} for {name}")
        box = box_of(tensor)
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
    """Fill a state in place from the folder `checkpoint_id`.

    Each rank reads the parts that it needs.

    PyTorch may have written the checkpoint. Tensors are overwritten, and other values are replaced. Objects with a
    `state_dict` method receive their state through `load_state_dict`.

    Raises:
        RuntimeError: if a value is missing from the checkpoint.
        ValueError: if a tensor in the checkpoint has another shape.
    """
    wait_for_saving()
    reading = Reading(folder_of(checkpoint_id, storage_reader))
    state = plain_state(state_dict)
    found = list(flat(state))
    for keys, _ in found:
        if name_of(keys) not in reading.metadata.state_dict_metadata:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name_of(keys)}.")
    with torch.no_grad():
        for keys, value in found:
            if isinstance(value, torch.Tensor):
                reading.fill(name_of(keys), value)
            else:
                _replace(state, keys, reading.piece(MetadataIndex(name_of(keys))))
    for name, value in state_dict.items():
        if value is state[name]:
            continue
        if isinstance(value, Stateful):
            value.load_state_dict(state[name])
        else:
            state_dict[name] = state[name]


def _replace(state: Any, keys: Keys, value: Any) -> None:
    """Replace a value in nested dicts and lists."""
    for key in keys[:-1]:
        state = state[_own_key(state, key)]
    state[_own_key(state, keys[-1])] = value


def _own_key(state: Any, key: Any) -> Any:
    """Return `key` if it is an index of a list or a key of a dict. Otherwise return the key with this text."""
    return key if isinstance(state, list) or key in state else next(own for own in state if str(own) == key)
