"""Checkpoints in a folder: each rank's file has its parts of tensors; an index says what is where.

The index is written last, and replaced as a whole: until then the folder holds the checkpoint that it held before.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import adjoint as torch

from ..collectives import barrier
from ..groups import get_global_rank, get_rank, get_world_size, is_initialized
from ..objects import all_gather_object, broadcast_object_list

__all__ = ["load", "save"]

INDEX = "index.pt"


def _flat(state: Any, path: str = "") -> dict[str, Any]:
    """What is in nested dicts, by the names on the way."""
    if not isinstance(state, dict):
        return {path: state}
    found = {}
    for name, value in state.items():
        found.update(_flat(value, f"{path}/{name}" if path else str(name)))
    return found


def _range(tensor: Any) -> tuple[int, int] | None:
    """The elements of the whole tensor that a part has; None for a whole one."""
    sharding = getattr(tensor, "_sharding", None)
    if sharding is None:
        return None
    start = min(sharding.rank * sharding.length, sharding.count)
    return start, min(start + sharding.length, sharding.count)


def save(state_dict: dict[str, Any], *, checkpoint_id: Any, process_group: Any = None) -> None:
    """Write a state to the folder `checkpoint_id`; called on all ranks, each of which writes its part.

    What is whole is written by one rank; these take turns.
    """
    folder = Path(checkpoint_id)
    rank, ranks = (get_rank(process_group), get_world_size(process_group)) if is_initialized() else (0, 1)
    token = [uuid.uuid4().hex]
    if ranks > 1:
        broadcast_object_list(token, get_global_rank_of(process_group, 0), group=process_group)
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{token[0]}-{rank}.pt"
    written: dict[str, Any] = {}
    places: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for number, (name, value) in enumerate(_flat(state_dict).items()):
        if not isinstance(value, torch.Tensor):
            values[name] = value
            continue
        part = _range(value)
        if part is None and number % ranks != rank:
            continue
        start, stop = part or (0, value.numel())
        written[name] = value.detach().reshape(-1)[: stop - start].clone()
        sharding = getattr(value, "_sharding", None)
        shape = list(value.shape if sharding is None else sharding.shape)
        places[name] = {"file": file, "start": start, "stop": stop, "shape": shape}
    torch.save(written, folder / file)
    everyone: list[Any] = [places]
    if ranks > 1:
        everyone = [None] * ranks
        all_gather_object(everyone, places, group=process_group)
    if rank == 0:
        index: dict[str, list[Any]] = {}
        for each in everyone:
            for name, place in each.items():
                index.setdefault(name, []).append(place)
        torch.save({"tensors": index, "values": values}, folder / INDEX)
        for old in folder.glob("*-*.pt"):
            if not old.name.startswith(token[0]):
                old.unlink()
    if ranks > 1:
        barrier(group=process_group)


def get_global_rank_of(process_group: Any, rank: int) -> int:
    """The number, among all, of a rank of a group."""
    return rank if process_group is None else get_global_rank(process_group, rank)


def load(state_dict: dict[str, Any], *, checkpoint_id: Any, process_group: Any = None) -> None:
    """Fill a state from the folder `checkpoint_id`, in place; each rank reads the parts that it needs.

    Tensors are written to. Other values are replaced, and tensors that `state_dict` does not have yet are added whole, if the
    dict that they belong to is there.

    Raises:
        RuntimeError: if the checkpoint lacks a tensor, or has it in another shape.
    """
    folder = Path(checkpoint_id)
    index = torch.load(folder / INDEX)
    files: dict[str, Any] = {}

    def piece(name: str, place: dict[str, Any]) -> Any:
        if place["file"] not in files:
            files[place["file"]] = torch.load(folder / place["file"])
        return files[place["file"]][name]

    def fill(state: dict[str, Any], path: str) -> None:
        for key, value in state.items():
            name = f"{path}/{key}" if path else str(key)
            if isinstance(value, dict):
                fill(value, name)
            elif isinstance(value, torch.Tensor):
                _fill_tensor(name, value, index["tensors"].get(name), piece)
            elif name in index["values"]:
                state[key] = index["values"][name]

    with torch.no_grad():
        fill(state_dict, "")


def _fill_tensor(name: str, tensor: Any, places: Any, piece: Any) -> None:
    """Copy the elements that a tensor has from the pieces that have them."""
    if not places:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
    sharding = getattr(tensor, "_sharding", None)
    shape = list(tensor.shape if sharding is None else sharding.shape)
    if shape != list(places[0]["shape"]):
        raise RuntimeError(
            f"Size mismatch between saved {torch.Size(places[0]['shape'])} and current: {torch.Size(shape)} for {name}"
        )
    start, stop = _range(tensor) or (0, tensor.numel())
    flat = tensor.new_zeros(tensor.numel())
    for place in places:
        first, last = max(start, place["start"]), min(stop, place["stop"])
        if first < last:
            flat[first - start : last - start] = piece(name, place)[first - place["start"] : last - place["start"]]
    tensor.copy_(flat.view(tensor.shape))
