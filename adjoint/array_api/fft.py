"""The standard's extension `fft`, implemented with `torch.fft`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint as torch

__all__ = """
    fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn
""".split()


def fft(x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
    """The Fourier transform along an axis."""
    return torch.fft.fft(x, n, axis, norm)


def ifft(x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
    """The inverse of `fft`."""
    return torch.fft.ifft(x, n, axis, norm)


def rfft(x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
    """The Fourier transform of real numbers, without the redundant second half."""
    return torch.fft.rfft(x, n, axis, norm)


def irfft(x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
    """The inverse of `rfft`."""
    return torch.fft.irfft(x, n, axis, norm)


def hfft(x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
    """The Fourier transform of a Hermitian sequence, given by its first half."""
    return torch.fft.hfft(x, n, axis, norm)


def ihfft(x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
    """The inverse of `hfft`."""
    return torch.fft.ihfft(x, n, axis, norm)


def fftn(
    x: torch.Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> torch.Tensor:
    """The Fourier transform along several axes."""
    return torch.fft.fftn(x, s, axes, norm)


def ifftn(
    x: torch.Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> torch.Tensor:
    """The inverse of `fftn`."""
    return torch.fft.ifftn(x, s, axes, norm)


def rfftn(
    x: torch.Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> torch.Tensor:
    """The Fourier transform of real numbers along several axes."""
    return torch.fft.rfftn(x, s, axes, norm)


def irfftn(
    x: torch.Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> torch.Tensor:
    """The inverse of `rfftn`."""
    return torch.fft.irfftn(x, s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """The frequencies of `fft`."""
    return torch.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """The frequencies of `rfft`."""
    return torch.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: torch.Tensor, /, *, axes: int | Sequence[int] | None = None) -> torch.Tensor:
    """The input with frequency zero moved to the middle."""
    return torch.fft.fftshift(x, axes)


def ifftshift(x: torch.Tensor, /, *, axes: int | Sequence[int] | None = None) -> torch.Tensor:
    """The inverse of `fftshift`."""
    return torch.fft.ifftshift(x, axes)
