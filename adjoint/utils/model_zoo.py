"""`torch.utils.model_zoo`: the old name of `torch.hub.load_state_dict_from_url`."""

from typing import Any

import adjoint as torch

__all__ = ["load_url"]

load_url = torch.hub.load_state_dict_from_url


def __getattr__(name: str) -> Any:
    """Return the progress bar of the package `tqdm`, which libraries import from here."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tqdm import tqdm

    return tqdm
