"""`torch.special`: special functions; names, no logic."""

from .operators import PUBLIC

globals().update(PUBLIC["special"])

__all__ = list(PUBLIC["special"])
