"""`torch.distributed.checkpoint.format_utils`: conversion between the folder of a checkpoint and a single file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adjoint as torch

from .files import Reading
from .metadata import MetadataIndex, TensorStorageMetadata
from .saving import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: Any, torch_save_path: Any) -> None:
    """Read the folder of a checkpoint, in one process, and write its whole state to a file."""
    reading = Reading(Path(dcp_checkpoint_dir))
    state: dict[str, Any] = {}
    for name, entry in reading.metadata.state_dict_metadata.items():
        if isinstance(entry, TensorStorageMetadata):
            value = torch.empty(entry.size, dtype=entry.properties.dtype)
            reading.fill(name, value)
        else:
            value = reading.piece(MetadataIndex(name))
        _put(state, reading.metadata.planner_data[name], value)
    torch.save(state, torch_save_path)


def _put(state: Any, keys: tuple[Any, ...], value: Any) -> None:
    for key, following in zip(keys, (*keys[1:], None), strict=True):
        inside = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(state, list):
            state.extend([None] * (key + 1 - len(state)))
            if following is None or state[key] is None:
                state[key] = inside
        elif following is None or key not in state:
            state[key] = inside
        state = state[key]


def torch_save_to_dcp(torch_save_path: Any, dcp_checkpoint_dir: Any) -> None:
    """Write the state in a file as a checkpoint folder, in one process."""
    save(torch.load(torch_save_path), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
