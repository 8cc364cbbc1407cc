"""`torch.special`: special functions; names, no logic."""

from .dispatch.registry import PUBLIC

__getattr__, __dir__ = PUBLIC["special"].as_module(globals())
