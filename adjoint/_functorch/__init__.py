"""PyTorch's private package of function transforms: the modules that libraries reach into."""

from . import apis, batch_norm_replacement, eager_transforms, functional_call, make_functional, vmap

__all__ = ["apis", "batch_norm_replacement", "eager_transforms", "functional_call", "make_functional", "vmap"]
