"""`torch._C._functorch`: names by which programs inspect the tensors in a transformed function.

This file contains names only.
"""

from typing import Any

from adjoint.transforms.levels import add_batch_dim as _add_batch_dim
from adjoint.transforms.levels import begin_grad as _grad_increment_nesting
from adjoint.transforms.levels import begin_vmap as _vmap_increment_nesting
from adjoint.transforms.levels import current_level as current_level
from adjoint.transforms.levels import end_innermost as _grad_decrement_nesting
from adjoint.transforms.levels import end_innermost as _vmap_decrement_nesting
from adjoint.transforms.levels import remove_batch_dim as _remove_batch_dim
from adjoint.transforms.levels import reshape_dim_into as reshape_dim_into
from adjoint.transforms.levels import reshape_dim_outof as reshape_dim_outof
from adjoint.transforms.levels import unwrap_batched as _unwrap_batched
from adjoint.transforms.levels import unwrap_for_grad as _unwrap_for_grad
from adjoint.transforms.levels import wrap_for_grad as _wrap_for_grad
from adjoint.transforms.wrapped_tensors import get_unwrapped as get_unwrapped
from adjoint.transforms.wrapped_tensors import is_batchedtensor as is_batchedtensor
from adjoint.transforms.wrapped_tensors import is_functorch_wrapped_tensor as is_functorch_wrapped_tensor
from adjoint.transforms.wrapped_tensors import is_gradtrackingtensor as is_gradtrackingtensor
from adjoint.transforms.wrapped_tensors import maybe_current_level as maybe_current_level
from adjoint.transforms.wrapped_tensors import maybe_get_bdim as maybe_get_bdim
from adjoint.transforms.wrapped_tensors import maybe_get_level as maybe_get_level
from adjoint.transforms.wrapped_tensors import unwrap_if_dead as unwrap_if_dead

__all__ = [
    "_add_batch_dim",
    "_grad_decrement_nesting",
    "_grad_increment_nesting",
    "_remove_batch_dim",
    "_unwrap_batched",
    "_unwrap_for_grad",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "_wrap_for_grad",
    "current_level",
    "get_unwrapped",
    "is_batchedtensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
    "reshape_dim_into",
    "reshape_dim_outof",
    "unwrap_if_dead",
]


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Return False, because only one kind of batched tensor exists."""
    return False
