"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

import adjoint as torch

from .declared import operators


def pad(input: torch.Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> torch.Tensor:
    """Pad the last `len(pad) / 2` dimensions. Negative numbers crop.

    Args:
        pad: `(before, after)` for the last dimension, then for the dimension before it, and so on.
        mode: "constant", "reflect", "replicate" or "circular".
        value: the padding value in the mode "constant"; 0 by default.

    Raises:
        NotImplementedError: for another mode, or for a number of dimensions that the mode does not support.
        RuntimeError: if the padding does not fit the input.
    """
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return operators.pad(input, pad, mode, value)
