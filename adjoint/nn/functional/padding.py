"""Padding and the rearrangement of channels and pixels."""

from __future__ import annotations

from collections.abc import Sequence

import adjoint as torch

from .declared import operators


def pad(input: torch.Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> torch.Tensor:
    """Pad (or crop, where negative) the last `len(pad) / 2` dimensions.

    Args:
        pad: `(before, after)` for the last dimension, then for the one before it, and so on.
        mode: "constant", "reflect", "replicate" or "circular".
        value: what to fill with in the mode "constant", 0 by default.

    Raises:
        NotImplementedError: for another mode, or numbers of dimensions that the mode does not know.
        RuntimeError: if the padding does not fit the input.
    """
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode == "constant":
        return operators.pad(input, pad, "constant", value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    dims = len(pad) // 2
    if not 1 <= dims <= 3 or input.dim() not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.dim()}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    _require_padding_fits(input, pad, mode)
    result = input
    for i in range(dims):
        result = _pad_dim(result, input.dim() - 1 - i, pad[2 * i], pad[2 * i + 1], mode)
    return input.clone() if result is input else result


def _require_padding_fits(input: torch.Tensor, pad: Sequence[int], mode: str) -> None:
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        dim = input.dim() - 1 - i
        size = input.shape[dim]
        if mode == "reflect" and (before >= size or after >= size):
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
            )
        if mode == "circular" and (before > size or after > size):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 1:
            raise RuntimeError(
                f"input ({'WHD'[i]}: {size}) is too small. Calculated output {'WHD'[i]}: {size + before + after}"
            )


def _pad_dim(input: torch.Tensor, dim: int, before: int, after: int, mode: str) -> torch.Tensor:
    if before == 0 and after == 0:
        return input
    size = input.shape[dim]
    position = torch.arange(-before, size + after)
    if mode == "replicate":
        source = position.clamp(0, size - 1)
    elif mode == "circular":
        first, last = max(0, -before), size - max(0, -after)  # what is left after cropping is repeated
        source = first + (position - first) % (last - first)
    else:
        source = (size - 1) - ((size - 1) - position.abs()).abs()
    return input.index_select(dim, source)


def pixel_shuffle(input: torch.Tensor, upscale_factor: int) -> torch.Tensor:
    """Rearrange `(..., C r², H, W)` to `(..., C, H r, W r)` (Shi et al., 2016)."""
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n = len(batch)
    split = input.reshape(*batch, channels // (r * r), r, r, height, width)
    moved = split.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return moved.reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: torch.Tensor, downscale_factor: int) -> torch.Tensor:
    """The inverse of `pixel_shuffle`: rearrange `(..., C, H r, W r)` to `(..., C r², H, W)`."""
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, channels, height, width = input.shape
    for name, size, at in (("width", width, -1), ("height", height, -2)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({at})={size} is not divisible by {r}"
            )
    n = len(batch)
    split = input.reshape(*batch, channels, height // r, r, width // r, r)
    moved = split.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return moved.reshape(*batch, channels * r * r, height // r, width // r)


def channel_shuffle(input: torch.Tensor, groups: int) -> torch.Tensor:
    """Interleave the channels of `groups` groups: `(N, C, ...)` read as `(N, groups, C / groups, ...)` and swapped."""
    if input.dim() <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    batch, channels, *spatial = input.shape
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    return input.reshape(batch, groups, channels // groups, *spatial).transpose(1, 2).reshape(input.shape)
