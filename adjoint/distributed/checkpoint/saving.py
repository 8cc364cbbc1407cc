"""Writing a checkpoint: each rank writes its pieces to a file, and `.metadata` then describes all pieces.

`.metadata` is written last and replaced as a whole. Afterwards, files of earlier save operations are deleted. Until
then, the folder contains the previous checkpoint.
"""

from __future__ import annotations

import concurrent.futures
import copy
import os
import threading
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import adjoint as torch

from ..groups import is_initialized, new_group, resolve
from ..objects import all_gather_object, broadcast_object_list
from ..process_group import ProcessGroup
from ..state import STATE, wait_for_saving
from ..tensor.dtensor import DTensor
from .files import FileSystemWriter, Keys, box_of, flat, folder_of, name_of, plain_state
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
)

__all__ = ["CheckpointException", "async_save", "save"]


class CheckpointException(RuntimeError):
    """The error for a checkpoint that could not be written. `failures` contains the error of each failed rank as text."""

    def __init__(self, failures: dict[int, str]) -> None:
        super().__init__("".join(f"rank {rank}: {text}\n" for rank, text in sorted(failures.items())))
        self.failures = failures


class Piece(NamedTuple):
    """The part of a value that this process writes.

    `about` describes a tensor: its dtype, its whole shape, and the offsets and sizes of the part.
    """

    name: str
    value: Any
    about: list[Any]


class Saving:
    """A state that is being saved to a folder.

    Args:
        state_dict: the state.
        folder: the folder.
        group: the processes that write the checkpoint; None for this process alone.
        copies: whether to copy the data immediately.
    """

    def __init__(self, state_dict: dict[str, Any], folder: Path, group: ProcessGroup | None, copies: bool) -> None:
        self.folder, self.group = folder, group
        self.rank, self.ranks = (group.rank(), group.size()) if group is not None else (0, 1)
        token = [uuid.uuid4().hex]
        if self.ranks > 1:
            broadcast_object_list(token, group=group, group_src=0)
        self.token = token[0]
        self.keys_of: dict[str, Keys] = {}
        self.pieces = list(self._own_pieces(state_dict, copies))

    def _own_pieces(self, state_dict: dict[str, Any], copies: bool) -> Iterator[Piece]:
        for number, (keys, value) in enumerate(flat(plain_state(state_dict))):
            name = name_of(keys)
            self.keys_of[name] = keys
            if not isinstance(value, torch.Tensor):
                if number % self.ranks == self.rank:
                    yield Piece(name, copy.deepcopy(value) if copies else value, [])
            elif _writes(value, number, self.rank, self.ranks):
                local = (value.to_local() if isinstance(value, DTensor) else value).detach()
                box = box_of(value)
                low, sizes = [low for low, _ in box], [high - low for low, high in box]
                about = [str(value.dtype), list(value.shape), low, sizes]
                yield Piece(name, local.clone() if copies else local, about)

    def complete(self) -> Metadata:
        """Write, and return when all ranks have written.

        Raises:
            CheckpointException: on all ranks, if one of them could not write.
        """
        written: list[Any] = []
        failure = ""
        try:
            written = self._write()
        except Exception as error:  # noqa: BLE001  (the others would wait for this process)
            failure = "".join(traceback.format_exception(error))
        everyone = self._all_have([written, failure])
        metadata = _metadata([pieces for pieces, _ in everyone], self.keys_of, self.token)
        failure = ""
        if self.rank == 0:
            try:
                self._describe(metadata)
            except OSError as error:
                failure = "".join(traceback.format_exception(error))
        self._all_have([[], failure])
        return metadata

    def _all_have(self, own: list[Any]) -> list[Any]:
        """Exchange the results of all ranks: the written pieces and the errors."""
        everyone: list[Any] = [own]
        if self.ranks > 1:
            everyone = [None] * self.ranks
            all_gather_object(everyone, own, group=self.group)
        failures = {rank: failure for rank, (_, failure) in enumerate(everyone) if failure}
        if failures:
            raise CheckpointException(failures)
        return everyone

    def _write(self) -> list[Any]:
        """Write the pieces of this process, and return their locations."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = f"__{self.rank}_0_{self.token}.distcp"
        written = []
        with (self.folder / file).open("wb") as stream:
            for name, value, about in self.pieces:
                start = stream.tell()
                whole = isinstance(value, torch.Tensor) and value.untyped_storage().nbytes() != value.nbytes
                torch.save(value.clone() if whole else value, stream)
                written.append([name, file, start, stream.tell() - start, about])
            stream.flush()
            os.fsync(stream.fileno())
        return written

    def _describe(self, metadata: Metadata) -> None:
        described = self.folder / f".metadata.{self.token}"
        described.write_bytes(dump(metadata))
        described.replace(self.folder / ".metadata")
        for old in self.folder.glob("__*.distcp"):
            if not old.stem.endswith(self.token):
                old.unlink()


def _writes(tensor: Any, number: int, rank: int, ranks: int) -> bool:
    """Return whether this process writes its piece. If several processes have the piece, they take turns."""
    if not isinstance(tensor, DTensor):
        return number % ranks == rank
    place = tensor.device_mesh.get_coordinate()
    if place is None:
        return False
    return all(placement.is_shard() or not at for placement, at in zip(tensor.placements, place, strict=True))


def _metadata(everyone: list[Any], keys_of: dict[str, Keys], token: str) -> Metadata:
    """Return the description of the pieces of all ranks."""
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


def _writers(process_group: Any, no_dist: bool) -> ProcessGroup | None:
    """Wait for an earlier save. Return the group of processes that write, or None if this process writes alone."""
    wait_for_saving()
    return resolve(process_group) if is_initialized() and not no_dist else None


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
    """Write a state to the folder `checkpoint_id`.

    All ranks call this, and each writes its part.

    PyTorch can read the checkpoint too.

    Args:
        state_dict: nested dicts of tensors and plain data. The top level may also contain objects with a `state_dict`
            method.
        checkpoint_id: the folder.
        storage_writer: a `FileSystemWriter`, as an alternative to `checkpoint_id`.
        process_group: the participating ranks; all if None.
        no_dist: whether this process writes alone.

    Raises:
        CheckpointException: on all ranks, if one of them could not write.
    """
    group = _writers(process_group, no_dist)
    return Saving(state_dict, folder_of(checkpoint_id, storage_writer), group, copies=False).complete()


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> concurrent.futures.Future[Metadata]:
    """Save like `save`, but return as soon as the state has been copied. A thread writes the copy.

    If another save is still running, wait for it first. `load` and `destroy_process_group` also wait for it.

    Returns:
        A future. `result()` of the returned future waits until all ranks have written, and raises any error.
    """
    group = _writers(process_group, no_dist)
    saving = Saving(state_dict, folder_of(checkpoint_id, storage_writer), group, copies=True)
    if group is not None and group.size() > 1:
        if group.saving is None:  # meanwhile the program calls other collectives
            group.saving = new_group(
                group.ranks, group.timeout, group.backend, use_local_synchronization=True, group_desc="checkpoints"
            )
        saving.group = group.saving
    future: concurrent.futures.Future[Metadata] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(saving.complete())
        except BaseException as error:  # noqa: BLE001  (raised by who waits)
            future.set_exception(error)

    STATE.saving = future
    threading.Thread(target=run, name="adjoint.distributed.checkpoint").start()
    return future
