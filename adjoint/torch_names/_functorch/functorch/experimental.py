"""`functorch.experimental`: experimental names."""

from adjoint.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

from ... import _higher_order_ops as control_flow
from ..apis import chunk_vmap

__all__ = ["chunk_vmap", "control_flow", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
