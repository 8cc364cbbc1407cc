"""`grad(..., is_grads_batched=True)`: one vector-Jacobian product for each slice of a leading dimension, in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._runtime.late_bound import LATE
from ..device import Size
from ..tensor import Tensor
from .roots import metadata_of


def batched_grads(roots: tuple[Any, ...], grads: tuple[Any, ...]) -> list[Tensor]:
    """Check the `grad_outputs` of a batched `grad`. All must have the same leading size."""
    grads = grads or (None,) * len(roots)
    if len(grads) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    for index, (root, value) in enumerate(zip(roots, grads, strict=False)):
        shape = metadata_of(root)[0]
        if value is None and shape != () and math.prod(shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if value is None:
            raise ValueError(
                "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of "
                "dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0."
            )
        if value._array.ndim == 0:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                "0-dim tensor to a number"
            )
        if value._array.shape[0] == 0:
            raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
        if value._array.shape[1:] != shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{index}] has a shape of {value.shape} and output[{index}] has a shape "
                f"of {Size(shape)}. If you only want some tensors in `grad_output` to be considered batched, consider "
                "using vmap."
            )
    sizes = [value._array.shape[0] for value in grads if value is not None]
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return [value for value in grads if value is not None]


def batched_products(product: Callable[..., tuple[Any, ...]], grads: list[Tensor]) -> list[Any]:
    """Return the results of `product(vector)` for each slice of `grads`, in one pass under `vmap`."""
    unused: list[bool] = []

    def used(*vector: Tensor) -> tuple[Any, ...]:
        found = product(vector)
        unused[:] = [value is None for value in found]
        return tuple(value for value in found if value is not None)

    results = iter(LATE.vmap(used)(*grads))
    return [None if nothing else next(results) for nothing in unused]
