"""Padding and cropping arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]


def constant_pad_nd(self: Array, pad: Sequence[int], value: Any) -> Array:
    """`self` with `pad` (before, after) elements of `value` around the last dimensions; negative ones crop."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    dims = len(pad) // 2
    if dims > self.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {self.ndim}"
        )
    shape, source, target = list(self.shape), [slice(None)] * self.ndim, [slice(None)] * self.ndim
    for i in range(dims):
        dim, before, after = self.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        size = self.shape[dim] + before + after
        if size < 0:
            raise RuntimeError(
                f"The input size {self.shape[dim]}, plus negative padding {before} and {after} resulted in a negative output "
                f"size, which is invalid. Check dimension {dim} of your input."
            )
        shape[dim] = size
        source[dim] = slice(max(-before, 0), self.shape[dim] - max(-after, 0))
        target[dim] = slice(max(before, 0), size - max(after, 0))
    result = numpy.full(shape, value, self.dtype)
    result[tuple(target)] = self[tuple(source)]
    return result
