"""Transforms of functions: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `linearize`, `vmap`, and modules as functions."""

from typing import Any

import adjoint as torch

from .functionalization import functionalize
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .rearranging import rearrange

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

transforms: Any = torch.autograd.transforms

debug_unwrap = transforms.debug_unwrap
grad = transforms.grad
grad_and_value = transforms.grad_and_value
hessian = transforms.hessian
jacfwd = transforms.jacfwd
jacrev = transforms.jacrev
jvp = transforms.jvp
linearize = transforms.linearize
vjp = transforms.vjp
vmap = transforms.vmap


def __dir__() -> list[str]:
    return [name for name in globals() if name.startswith("__")] + __all__
