"""Transforms of functions: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `linearize`, `vmap`, and modules as functions."""

from typing import Any

import adjoint as torch

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

transforms: Any = torch.autograd.transforms

grad = transforms.grad
grad_and_value = transforms.grad_and_value
hessian = transforms.hessian
jacfwd = transforms.jacfwd
jacrev = transforms.jacrev
jvp = transforms.jvp
linearize = transforms.linearize
vjp = transforms.vjp
vmap = transforms.vmap
