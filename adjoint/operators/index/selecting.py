"""Finding and selecting elements: reading and writing with masks, positions of nonzero elements, membership."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Int
from ...dispatch.arguments import invalid_arguments, require
from ...dispatch.declaration import OPERATORS
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import SAME_TYPE, STRICT
from ...dispatch.sequential import sequential_fallback
from ...dispatch.signatures import type_name, with_number
from ...kernels.index import indexing as indexing_kernels
from ...kernels.shape import joining as kernels
from ...tensor import Tensor, wrap
from ..declaring.overloads import pair
from ..declaring.slopes import with_transpose


@pair(
    Kernel(kernels.masked_fill, inplace=kernels.masked_fill_, quiet=True),
    by_tensor={"name": "masked_fill_tensor", "node": "MaskedFillBackward1", "aten": "Tensor"},
    by_number={
        "name": "masked_fill_number",
        "node": "MaskedFillBackward0",
        "aten": "Scalar",
        "values": {"value": "Number"},
        "batch": "elementwise",
        "vmap_name": "inplace arithmetic",
    },
    function_name="masked_fill",
    inplace="uniform",
    out=False,
    elementwise=False,
    narrow="halves",
)
class _masked_fill:
    """A copy with a number, or a zero-dimensional tensor, where the mask is true."""

    def forward(self: Array, mask: Array, value: Array): ...

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)

    def grad_value(grad, mask, xp):
        return xp.sum(xp.masked_fill_number(grad, xp.logical_not(mask), 0), None, False)

    def batch(op, batch, value, mask, filling):
        return batch.by("elementwise", OPERATORS["select_where"], (mask, filling.to(value.dtype), value))


masked_fill_tensor, masked_fill_number = _masked_fill.by_tensor, _masked_fill.by_number


def _fill_overload(mask, value):
    if not isinstance(mask, Tensor) or isinstance(value, str):
        raise invalid_arguments("masked_fill", mask, value)
    return masked_fill_tensor if isinstance(value, Tensor) else masked_fill_number


@public(method=True, numpy_names=True, forms=lambda: with_number(masked_fill_tensor.operator))
def masked_fill(input, mask, value):
    """A copy with `value` where `mask` is true. The mask broadcasts with the tensor."""
    return _fill_overload(mask, value)(input, mask, value)


@public(namespace=None, method=("masked_fill_",))
def masked_fill_inplace(input, mask, value):
    """`masked_fill`, in place."""
    return _fill_overload(mask, value).inplace(input, mask, value)


@operator(
    kernel=indexing_kernels.masked_select,
    same_out=SAME_TYPE,
    out="disjoint",
    tangent="linear",
    shape_of_elements=True,
    narrow="moves",
)
@with_transpose(indexing_kernels.masked_select_backward, batch=None, narrow="halves")
class masked_select:
    """The elements where `mask` is true, in one dimension. The mask broadcasts with the tensor."""

    def forward(self: Array, mask: Array): ...

    def grad_self(grad, self, mask, xp):
        return xp.masked_select_backward(grad, tuple(self.shape), mask)

    def batch(op, batch, value, mask):
        if batch.has(mask):
            raise RuntimeError(
                "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each "
                "batch this would return a differently shaped Tensor."
            )
        shape = tensors.broadcast_shapes(value.shape, mask.shape)
        whole = batch.aligned(value, len(shape)).expand((batch.size, *shape))
        return batch.flat(whole)[:, mask.expand(shape).reshape(-1)]


@operator(kernel=indexing_kernels.masked_scatter, out=False, inplace=True)
class masked_scatter:
    """A copy with the positions where `mask` is true filled by the elements of `source`, in order."""

    def forward(self: Array, mask: Array, source: Array): ...

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)

    def grad_source(grad, mask, source_shape, xp):
        return xp.masked_scatter_backward(grad, mask, source_shape)


@internal(indexing_kernels.masked_scatter_backward, tangent="linear")
class masked_scatter_backward:
    """Zeros of `shape`, which start with the elements of `input` where `mask` is true."""

    def forward(self: Array, mask: Array, shape): ...

    def grad_self(grad, self, mask, xp):
        return xp.masked_scatter(xp.zeros_like(self), mask, grad)


# --- places -----------------------------------------------------------------------------------------------------


@internal(
    Kernel(indexing_kernels.nonzero, quiet=True),
    function_name="nonzero",
    same_out="nonzero: Expected out tensor to have scalar type Long but got scalar type{given}",
    batch="dynamic",
    shape_of_elements=True,
    narrow="halves",
)
class nonzero_places:
    """The indices of all nonzero elements, one row for each element."""


@public(method=True, numpy_names=True)
def nonzero(input, *, as_tuple=False, out=None):
    """The indices of all nonzero elements: one row for each element or, with `as_tuple`, one tensor for each dimension.

    >>> import adjoint as torch
    >>> torch.nonzero(torch.tensor([0, 5, 7]), as_tuple=True)
    (tensor([1, 2]),)
    """
    if type(as_tuple) is not bool:
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type_name(as_tuple)}")
    if not as_tuple:
        return nonzero_places(input, out=out)
    if out is not None:
        require("Tensor", out, "nonzero", "out")
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    return (input if input._array.ndim else input.reshape((1,))).nonzero().unbind(1)


@public(method=True, numpy_names=True)
@sequential_fallback
def argwhere(input):
    """The indices of all nonzero elements, one row for each element."""
    return nonzero_places(input)


@internal(indexing_kernels.isin, function_name="isin", same_out=STRICT)
class is_among:
    """Whether each of `elements` equals one of `test_elements`."""

    def forward(elements: Array, test_elements: Array, invert=False): ...


@public()
def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each of `elements` equals one of `test_elements` or, with `invert`, equals none.

    One of the two may be a number.

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


@operator(kernel=indexing_kernels.nonzero_static, same_out=STRICT, shape_of_elements=True, narrow="reads")
class nonzero_static:
    """The indices of the first `size` nonzero elements, one row each.

    If there are fewer, the remaining rows contain `fill_value`.
    """

    def forward(self: Array, *, size: Int, fill_value: Int = -1): ...


@public()
def unravel_index(indices, shape):
    """The coordinates of elements in a tensor of the given `shape`, computed from their indices in the flattened tensor.

    >>> import adjoint as torch
    >>> torch.unravel_index(torch.tensor([3, 7]), (3, 4))
    (tensor([0, 1]), tensor([3, 3]))
    """
    if not isinstance(indices, Tensor):
        raise AttributeError(f"'{type(indices).__name__}' object has no attribute 'is_complex'")
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in shape:
        if not hasattr(size, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    steps = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    lengths, sizes = (wrap(numpy.array(values, numpy.int64)) for values in (steps, shape))
    return (indices.unsqueeze(-1).div(lengths, rounding_mode="floor") % sizes).unbind(-1)
