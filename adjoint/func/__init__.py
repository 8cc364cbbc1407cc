"""Function transforms (`grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `linearize`, `vmap`), and modules as functions."""

from ..transforms.jacobians import hessian, jacfwd, jacrev
from ..transforms.reverse import debug_unwrap, grad, grad_and_value, jvp, linearize, vjp, vmap
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


def __dir__() -> list[str]:
    return [name for name in globals() if name.startswith("__")] + __all__
