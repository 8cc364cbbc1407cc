"""`torch.signal.windows`: window functions, which fade a part of a signal in and out.

Use a symmetric window (`sym=True`) for filters. Use a periodic window for spectra. It is the start of a window with one
more element. Formulas: F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform",
Proceedings of the IEEE 66 (1978).
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import adjoint as torch
from adjoint import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip

_DTYPES = (torch.float32, torch.float64)

_Function = TypeVar("_Function", bound=Callable[..., Tensor])


class _Options:
    """The options of the window's tensor."""

    def __init__(
        self,
        sym: bool = True,
        dtype: torch.dtype | None = None,
        layout: torch.layout = torch.strided,
        device: torch.device | None = None,
        requires_grad: bool = False,
    ) -> None:
        self.sym = sym
        self.layout = layout
        self.requires_grad = requires_grad
        self.of_tensor: Any = {
            "dtype": dtype or torch.get_default_dtype(),
            "device": device,
            "requires_grad": requires_grad,
        }

    def check(self, name: str, size: int) -> None:
        """Raise a ValueError for a window that `name` does not support."""
        dtype = self.of_tensor["dtype"]
        if size < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={size}")
        if self.layout is not torch.strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {self.layout}")
        if dtype not in _DTYPES:
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")


_OPTIONS = [
    parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for parameter in inspect.signature(_Options).parameters.values()
]


def _with_options(function: _Function) -> _Function:
    """Show `sym`, `dtype`, `layout`, `device` and `requires_grad` in the signature for `**options`, and refuse other options."""
    signature = inspect.signature(function)
    own = [item for item in signature.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
    signature = signature.replace(parameters=[*own, *_OPTIONS])

    @functools.wraps(function)
    def window(*args: Any, **options: Any) -> Tensor:
        for name in options:
            if name not in signature.parameters:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
        return function(*args, **options)

    window.__signature__ = signature  # type: ignore[attr-defined]
    return window  # type: ignore[return-value]


def _window(
    name: str, formula: Callable[[Callable[[float, float], Tensor], int], Tensor], size: int, options: _Options
) -> Tensor:
    """Return the window of a formula, which receives `size` and a function that creates `size` equidistant numbers."""
    options.check(name, size)
    if size == 0:
        return torch.empty((0,), **options.of_tensor)
    if size == 1:
        return torch.ones((1,), **options.of_tensor)

    def between(start: float, end: float) -> Tensor:
        return torch.linspace(start, end, size, **options.of_tensor)

    return formula(between, size)


@_with_options
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, **options: Any) -> Tensor:
    """A window that decays as `exp(-distance / tau)` around `center`, by default the middle.

    >>> import adjoint as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    settings = _Options(**options)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if settings.sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(between: Any, size: int) -> Tensor:
        middle = (size if not settings.sym and size > 1 else size - 1) / 2.0 if center is None else center
        return torch.exp(-torch.abs(between(-middle / tau, (size - 1 - middle) / tau)))

    return _window("exponential", formula, M, settings)


@_with_options
def cosine(M: int, **options: Any) -> Tensor:
    """A window that is half a period of a sine, sampled at the centres of the elements."""
    settings = _Options(**options)

    def formula(between: Any, size: int) -> Tensor:
        step = math.pi / (size + 1 if not settings.sym else size)
        return torch.sin(between(0.5 * step, (size - 0.5) * step))

    return _window("cosine", formula, M, settings)


@_with_options
def gaussian(M: int, *, std: float = 1.0, **options: Any) -> Tensor:
    """A window with the shape of a normal density, scaled to 1 in the middle."""
    settings = _Options(**options)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def formula(between: Any, size: int) -> Tensor:
        start = -(size if not settings.sym and size > 1 else size - 1) / 2.0
        scale = 1 / (std * math.sqrt(2))
        return torch.exp(-(between(start * scale, (start + size - 1) * scale) ** 2))

    return _window("gaussian", formula, M, settings)


@_with_options
def kaiser(M: int, *, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser's window. A larger `beta` gives smaller side lobes and a wider main lobe."""
    settings = _Options(**options)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def formula(between: Any, size: int) -> Tensor:
        step = 2.0 * beta / (size - 1 if settings.sym else size)
        distance = between(-beta, min(beta, -beta + (size - 1) * step))
        inside = torch.sqrt(torch.clamp(beta * beta - distance**2, min=0))
        whole = torch.tensor(float(beta), dtype=inside.dtype, requires_grad=settings.requires_grad)
        # I0 overflows where the quotient of two does not.
        return torch.special.i0e(inside) / torch.special.i0e(whole) * torch.exp(inside - whole)

    return _window("kaiser", formula, M, settings)


@_with_options
def bartlett(M: int, **options: Any) -> Tensor:
    """A triangular window with zeros at its ends.

    >>> import adjoint as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    settings = _Options(**options)

    def formula(between: Any, size: int) -> Tensor:
        step = 2.0 / (size if not settings.sym else size - 1)
        return 1 - torch.abs(between(-1, -1 + (size - 1) * step))

    return _window("bartlett", formula, M, settings)


@_with_options
def general_cosine(M: int, *, a: Iterable[float], **options: Any) -> Tensor:
    """The sum of cosines of 0, 1, 2, ... periods, with the coefficients `a` and alternating signs."""
    settings = _Options(**options)

    def formula(between: Any, size: int) -> Tensor:
        if not isinstance(a, Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        if not a:
            raise ValueError("Coefficients cannot be empty")
        step = 2 * math.pi / (size if not settings.sym else size - 1)
        angle = between(0, (size - 1) * step)
        signed = [(-1) ** order * number for order, number in enumerate(a)]
        factors = torch.tensor(signed, dtype=angle.dtype, requires_grad=settings.requires_grad)
        orders = torch.arange(factors.shape[0], dtype=angle.dtype, requires_grad=settings.requires_grad)
        return (factors.unsqueeze(-1) * torch.cos(orders.unsqueeze(-1) * angle)).sum(0)

    return _window("general_cosine", formula, M, settings)


@_with_options
def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Tensor:
    """`alpha - (1 - alpha) cos(x)` over a period."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], **options)


@_with_options
def hamming(M: int, **options: Any) -> Tensor:
    """Hamming's window, `0.54 - 0.46 cos(x)`."""
    return general_hamming(M, **options)


@_with_options
def hann(M: int, **options: Any) -> Tensor:
    """Hann's window, `0.5 - 0.5 cos(x)`.

    >>> import adjoint as torch
    >>> torch.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(M, alpha=0.5, **options)


@_with_options
def blackman(M: int, **options: Any) -> Tensor:
    """Blackman's window, `0.42 - 0.5 cos(x) + 0.08 cos(2x)`."""
    _Options(**options).check("blackman", M)
    return general_cosine(M, a=[0.42, 0.5, 0.08], **options)


@_with_options
def nuttall(M: int, **options: Any) -> Tensor:
    """Nuttall's minimum 4-term window."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **options)
