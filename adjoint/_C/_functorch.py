"""`torch._C._functorch`: the names by which programs inspect the tensors in a transformed function; no logic."""

from typing import Any

from ..transforms.vmap import _add_batch_dim as _add_batch_dim
from ..transforms.vmap import _remove_batch_dim as _remove_batch_dim
from ..transforms.wrapped_tensors import get_unwrapped as get_unwrapped
from ..transforms.wrapped_tensors import is_batchedtensor as is_batchedtensor
from ..transforms.wrapped_tensors import is_functorch_wrapped_tensor as is_functorch_wrapped_tensor
from ..transforms.wrapped_tensors import is_gradtrackingtensor as is_gradtrackingtensor
from ..transforms.wrapped_tensors import maybe_current_level as maybe_current_level
from ..transforms.wrapped_tensors import maybe_get_bdim as maybe_get_bdim
from ..transforms.wrapped_tensors import maybe_get_level as maybe_get_level
from ..transforms.wrapped_tensors import unwrap_if_dead as unwrap_if_dead

__all__ = [
    "_add_batch_dim",
    "_remove_batch_dim",
    "get_unwrapped",
    "is_batchedtensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
    "unwrap_if_dead",
]


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False: there is one kind of batched tensors."""
    return False
