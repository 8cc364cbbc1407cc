"""`torch.fft`: discrete Fourier transforms. This file contains names only."""

from .dispatch.registry import PUBLIC

__getattr__, __dir__ = PUBLIC["fft"].as_module(globals())
