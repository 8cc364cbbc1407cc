"""`torch.special`: special functions. This file contains names only."""

from .dispatch.registry import PUBLIC

__getattr__, __dir__ = PUBLIC["special"].as_module(globals())
