"""PyTorch's private package of function transforms: the module that libraries with batched containers reach into."""

from . import vmap

__all__ = ["vmap"]
