"""`functorch`, which comes with PyTorch: the transforms of functions, by the names that they had before `torch.func`."""

from torch.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]
