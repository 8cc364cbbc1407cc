"""Window functions, as new tensors."""

from __future__ import annotations

from typing import Any

import numpy

from ... import dtypes
from ...dispatch.arguments import require
from ...dispatch.decorators import public
from ...kernels.create import signal_windows as kernels
from ...kernels.runtime.floating import refuse
from .creation import leaf, result_dtype


def _window(
    name: str, kernel: Any, length: Any, periodic: bool, parameters: tuple[float, ...], options: dict[str, Any]
):
    """Return the window `kernel` of `length`. A periodic window is the start of a window with one more element."""
    for option in options:
        if option not in ("dtype", "layout", "device", "pin_memory", "requires_grad"):
            raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")
    require("Int", length, name, "window_length", 1)
    kind = result_dtype(name, options.pop("dtype", None), None) or dtypes.get_default_dtype()
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={dtypes.C_NAMES[kind]}, device=cpu, "
            "layout=Strided (default), requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if kind.is_complex:
        raise refuse("arange_cpu", kind)
    if length < 2:
        return leaf(numpy.ones(length, kind.numpy), **options)
    size = length + 1 if periodic else length
    return leaf(numpy.ascontiguousarray(kernel(size, kind.numpy, *parameters)[:length]), **options)


@public()
def bartlett_window(window_length, periodic: bool = True, **options):
    """A triangular window with zeros at its ends.

    >>> import adjoint as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", kernels.bartlett, window_length, periodic, (), options)


@public()
def blackman_window(window_length, periodic: bool = True, **options):
    """Blackman's window, `0.42 - 0.5 cos(x) + 0.08 cos(2x)`."""
    return _window("blackman_window", kernels.blackman, window_length, periodic, (), options)


@public()
def hamming_window(window_length, periodic: bool = True, alpha=0.54, beta=0.46, **options):
    """Hamming's window, `alpha - beta cos(x)`."""
    return _window("hamming_window", kernels.hamming, window_length, periodic, (alpha, beta), options)


@public()
def hann_window(window_length, periodic: bool = True, **options):
    """Hann's window, `0.5 - 0.5 cos(x)`.

    >>> import adjoint as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", kernels.hamming, window_length, periodic, (0.5, 0.5), options)


@public()
def kaiser_window(window_length, periodic: bool = True, beta=12.0, **options):
    """Kaiser's window. A larger `beta` gives smaller side lobes and a wider main lobe."""
    return _window("kaiser_window", kernels.kaiser, window_length, periodic, (beta,), options)
