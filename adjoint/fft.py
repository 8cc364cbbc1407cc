"""`torch.fft`: discrete Fourier transforms; names, no logic."""

from .operators import PUBLIC

globals().update(PUBLIC["fft"])

__all__ = list(PUBLIC["fft"])
