"""Transforms of functions: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `linearize`, `vmap`, and modules as functions."""

from ..autograd.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from .modules import functional_call, functionalize, stack_module_state

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
