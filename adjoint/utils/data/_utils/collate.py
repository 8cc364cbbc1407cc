"""PyTorch's names of the functions that make batches of samples."""

import re

from ..collate import (
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_numpy_array_fn,
    collate_numpy_scalar_fn,
    collate_str_fn,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "np_str_obj_array_pattern",
]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
"""In the name of a NumPy dtype: that its elements are texts or objects, of which there are no tensors."""
