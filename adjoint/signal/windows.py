"""`torch.signal.windows`: weights that fade a stretch of a signal in and out.

A symmetric window (`sym=True`) is for filters; a periodic one, for spectra, is the start of one that is an element longer.
Formulas: F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", Proceedings of the
IEEE 66 (1978).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import adjoint as torch
from adjoint import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

_DTYPES = (torch.float32, torch.float64)


def _check(name: str, size: int, dtype: Any, layout: Any) -> None:
    kind = dtype or torch.get_default_dtype()
    if size < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={size}")
    if layout is not torch.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind not in _DTYPES:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")


def _window(
    name: str,
    formula: Callable[[Callable[[float, float], Tensor], int], Tensor],
    size: int,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """The window of a formula, which is given a function that makes `size` equidistant numbers, and `size`."""
    _check(name, size, dtype, layout)
    options: Any = {"dtype": dtype or torch.get_default_dtype(), "device": device, "requires_grad": requires_grad}
    if size == 0:
        return torch.empty((0,), **options)
    if size == 1:
        return torch.ones((1,), **options)

    def between(start: float, end: float) -> Tensor:
        return torch.linspace(start, end, size, **options)

    return formula(between, size)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window that falls off as `exp(-distance / tau)` around `center`, by default the middle.

    >>> import adjoint as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(between: Any, size: int) -> Tensor:
        middle = (size if not sym and size > 1 else size - 1) / 2.0 if center is None else center
        return torch.exp(-torch.abs(between(-middle / tau, (size - 1 - middle) / tau)))

    return _window("exponential", formula, M, dtype, layout, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a period of a sine, at the middles of the elements."""

    def formula(between: Any, size: int) -> Tensor:
        step = math.pi / (size + 1 if not sym else size)
        return torch.sin(between(0.5 * step, (size - 0.5) * step))

    return _window("cosine", formula, M, dtype, layout, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The density of the normal distribution, 1 in the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def formula(between: Any, size: int) -> Tensor:
        start = -(size if not sym and size > 1 else size - 1) / 2.0
        scale = 1 / (std * math.sqrt(2))
        return torch.exp(-(between(start * scale, (start + size - 1) * scale) ** 2))

    return _window("gaussian", formula, M, dtype, layout, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window: the larger `beta`, the smaller its side lobes and the wider its main lobe."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def formula(between: Any, size: int) -> Tensor:
        step = 2.0 * beta / (size - 1 if sym else size)
        distance = between(-beta, min(beta, -beta + (size - 1) * step))
        inside = torch.sqrt(torch.clamp(beta * beta - distance**2, min=0))
        return torch.i0(inside) / torch.i0(torch.tensor(float(beta), dtype=inside.dtype, requires_grad=requires_grad))

    return _window("kaiser", formula, M, dtype, layout, device, requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle with zeros at its ends.

    >>> import adjoint as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """

    def formula(between: Any, size: int) -> Tensor:
        step = 2.0 / (size if not sym else size - 1)
        return 1 - torch.abs(between(-1, -1 + (size - 1) * step))

    return _window("bartlett", formula, M, dtype, layout, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of cosines of 0, 1, 2, ... periods with the coefficients `a`, their signs alternating."""

    def formula(between: Any, size: int) -> Tensor:
        if not isinstance(a, Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        if not a:
            raise ValueError("Coefficients cannot be empty")
        step = 2 * math.pi / (size if not sym else size - 1)
        angle = between(0, (size - 1) * step)
        signed = [(-1) ** order * number for order, number in enumerate(a)]
        factors = torch.tensor(signed, dtype=angle.dtype, requires_grad=requires_grad)
        orders = torch.arange(factors.shape[0], dtype=angle.dtype, requires_grad=requires_grad)
        return (factors.unsqueeze(-1) * torch.cos(orders.unsqueeze(-1) * angle)).sum(0)

    return _window("general_cosine", formula, M, dtype, layout, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha - (1 - alpha) cos(x)` over a period."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Hamming's window, `0.54 - 0.46 cos(x)`."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Hann's window, `0.5 - 0.5 cos(x)`.

    >>> import adjoint as torch
    >>> torch.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Blackman's window, `0.42 - 0.5 cos(x) + 0.08 cos(2x)`."""
    _check("blackman", M, dtype, layout)
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Nuttall's minimum 4-term window."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
