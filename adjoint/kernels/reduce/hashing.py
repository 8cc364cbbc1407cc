"""Hashes of the elements of arrays."""

from __future__ import annotations

from typing import Any

import numpy

from ..runtime.floating import Array, refuse
from ..runtime.shapes import normalize_dims


def hash_tensor(x: Array, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Array:
    """Return the exclusive or of the bits of the elements, which are widened to 64 bits first."""
    if x.dtype.kind == "c":
        raise refuse("hash_tensor_cpu", x)
    dims = normalize_dims(dim, x.ndim)
    if dim in (None, ()) and not x.size:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    for each in dims:
        if not x.shape[each]:
            raise IndexError(f"hash_tensor(): Expected reduction dim {each} to have non-zero size.")
    wide = x.astype(numpy.int64 if x.dtype.kind in "iub" else numpy.float64)
    reduce: Any = numpy.bitwise_xor.reduce
    return numpy.asarray(reduce(wide.view(numpy.uint64), dims, keepdims=keepdim), order="C")
