"""`torch.fft`: discrete Fourier transforms; names, no logic."""

from .dispatch.registry import PUBLIC

__getattr__, __dir__ = PUBLIC["fft"].as_module(globals())
