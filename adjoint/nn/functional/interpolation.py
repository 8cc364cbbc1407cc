"""Resizing of images, sequences and volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn

_NEAREST = ("nearest", "nearest-exact", "area")
_SMOOTH = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}
"""The modes that support `align_corners`, and their numbers of dimensions."""
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the last one to three dimensions of `(N, C, *)`.

    Args:
        size: the new size. Alternatively:
        scale_factor: the ratio of the new size to the old size, as one number or one number per dimension.
        mode: "nearest", "nearest-exact" or "area"; "linear" (one dimension), "bilinear" or "bicubic" (two), "trilinear"
            (three).
        align_corners: whether to align the centres of the corner elements instead of their outer corners.
        recompute_scale_factor: whether to compute the factors from the rounded sizes instead of using the given
            factors.
        antialias: whether to average if the image becomes smaller (bilinear, bicubic and lanczos only).

    >>> import adjoint as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    if align_corners is not None and mode in _NEAREST:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    dims = input.dim() - 2
    output_size, scales = _sizes(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and dims == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    wanted = _SMOOTH.get(mode)
    if mode in ("linear", "bilinear", "trilinear") and 1 <= dims <= 3 and dims != wanted:
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_SMOOTH[mode] + 2}D input")
    if not 1 <= dims <= 3 or (mode not in _NEAREST and dims != wanted):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: {_MODES} (got {mode})"
        )
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError(
            f"Lanczos mode {'does not support align_corners' if align_corners else 'requires antialias'}=True"
        )
    if mode == "area":
        return getattr(torch.nn.functional, f"adaptive_avg_pool{dims}d")(input, output_size)
    prefix = mode.replace("-", "_")
    name = f"upsample_{prefix}{dims}d{'_aa' if antialias else ''}"
    return getattr(torch.operators, name)(input, output_size, bool(align_corners), scales)


def _sizes(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return the new size, and the factors to use."""
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = _each(size, dims)
        for length in sizes:
            if type(length) is int:
                continue
            integer = hasattr(length, "__index__") and not getattr(length, "is_floating_point", bool)()
            if isinstance(length, (bool, str)) or not integer:
                raise TypeError(
                    "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                    f"with types [{', '.join(str(type(each)) for each in sizes)}]"
                )
        _check_count("output size of", "output size in (o1, o2, ...,oK)", input, sizes)
        return tuple(index(length) for length in sizes), (None,) * dims
    factors = _each(scale_factor, dims)
    _check_count("scale_factor of shape", "scale_factor in (s1, s2, ...,sK)", input, factors)
    new = tuple(math.floor(length * factor) for length, factor in zip(input.shape[2:], factors, strict=True))
    return new, (None,) * dims if recompute else tuple(float(factor) for factor in factors)


def _each(value: Any, dims: int) -> tuple[Any, ...]:
    single = type(value) in (int, float) or not isinstance(value, Sequence)
    return (value,) * dims if single else tuple(value)


def _check_count(name: str, form: str, input: Tensor, given: tuple[Any, ...]) -> None:
    if len(given) != len(input.shape[2:]):
        what = "output" if name.startswith("output") else "scale_factor"
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(input.shape[2:])} and {name} {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{form} format."
        )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Tensor:
    """The old name of `interpolate`."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with nearest elements (deprecated)."""
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return torch.nn.functional.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` linearly in two dimensions, with aligned corners (deprecated)."""
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return torch.nn.functional.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
