"""PyTorch's private package of function transforms, with the modules that libraries use."""

from adjoint._runtime.first_use import further_names
from adjoint.func import modules as functional_call
from adjoint.transforms import vmap

from . import apis, autograd_function, eager_transforms, make_functional, utils

__all__ = [
    "apis",
    "autograd_function",
    "batch_norm_replacement",
    "eager_transforms",
    "functional_call",
    "make_functional",
    "utils",
    "vmap",
]

batch_norm_replacement = functional_call
further_names(__name__, {name: globals()[name] for name in ("batch_norm_replacement", "functional_call", "vmap")})
