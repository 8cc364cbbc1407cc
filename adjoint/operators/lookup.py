"""Finding elements: whether they are among others, at which coordinates, and the first so many that are not zero."""

from __future__ import annotations

import math

import numpy

from ..kernels import indexing as kernels
from ..tensor import Tensor, wrap
from .build import operator, public
from .dispatch import invalid_arguments
from .out import STRICT


@operator(namespace=None, method=(), name="is_among", called="isin", same_out=STRICT, kernel=kernels.isin)
class is_among:
    """Whether each of `elements` is one of `test_elements`."""

    def forward(elements: Array, test_elements: Array, invert=False): ...


@public()
def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each of `elements` is one of `test_elements`, or, with `invert`, none of them; one of the two may be a number.

    >>> import adjoint as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 4]))
    tensor([False,  True, False])
    """
    numbers = [value for value in (elements, test_elements) if not isinstance(value, Tensor)]
    if len(numbers) == 2 or not all(isinstance(value, (int, float, complex)) for value in numbers):
        raise invalid_arguments("isin", elements, test_elements)
    if not isinstance(assume_unique, bool) or not isinstance(invert, bool):
        raise invalid_arguments("isin", elements, test_elements, assume_unique, invert)
    elements, test_elements = (
        value if isinstance(value, Tensor) else wrap(numpy.asarray(value)) for value in (elements, test_elements)
    )
    return is_among(elements, test_elements, invert, out=out)


@operator(kernel=kernels.nonzero_static, same_out=STRICT)
class nonzero_static:
    """The indices of the first `size` nonzero elements, one row for each; rows of `fill_value` where there are fewer."""

    def forward(self: Array, *, size: Int, fill_value: Int = -1): ...


@public()
def unravel_index(indices, shape):
    """The coordinates, in a tensor of the given `shape`, of elements given by their indices in its flattened form.

    >>> import adjoint as torch
    >>> torch.unravel_index(torch.tensor([3, 7]), (3, 4))
    (tensor([0, 1]), tensor([3, 3]))
    """
    if not isinstance(indices, Tensor):
        raise AttributeError(f"'{type(indices).__name__}' object has no attribute 'is_complex'")
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in shape:
        if not hasattr(size, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    steps = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    steps, sizes = (wrap(numpy.array(values, numpy.int64)) for values in (steps, shape))
    return (indices.unsqueeze(-1).div(steps, rounding_mode="floor") % sizes).unbind(-1)
