"""Elements where a mask is true, and where elements are not zero."""

from __future__ import annotations

from ..kernels import indexing as indexing_kernels
from ..kernels import joining as kernels
from ..tensor import Tensor
from .build import operator, public

# --- masks ----------------------------------------------------------------------------------------------------


@operator(namespace=None, method=False, name="masked_fill_number", node="MaskedFillBackward0", inplace=True)
class masked_fill_value:
    """A copy with a number where the mask is true."""

    def forward(self: Array, mask: Array, value):
        return kernels.masked_fill(self, mask, value)

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)


@operator(namespace=None, method=False, name="masked_fill_tensor", node="MaskedFillBackward1", inplace=True)
class masked_fill_tensor:
    """A copy with a zero-dimensional tensor where the mask is true."""

    def forward(self: Array, mask: Array, value: Array):
        return kernels.masked_fill(self, mask, value)

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)

    def grad_value(grad, mask, xp):
        return xp.sum(grad * mask, None, False)


@public(method=True)
def masked_fill(input, mask, value):
    """A copy with `value` where `mask`, broadcast with the tensor, is true."""
    return (
        masked_fill_tensor(input, mask, value) if isinstance(value, Tensor) else masked_fill_value(input, mask, value)
    )


@public(namespace=None, method=("masked_fill_",))
def masked_fill_inplace(input, mask, value):
    """`masked_fill`, in place."""
    chosen = masked_fill_tensor if isinstance(value, Tensor) else masked_fill_value
    return chosen.operator.inplace_function(input, mask, value)


@operator(kernel=indexing_kernels.masked_select)
class masked_select:
    """The elements where `mask`, broadcast with the tensor, is true, in one dimension."""

    def forward(self: Array, mask: Array): ...

    def grad_self(grad, self_shape, mask, xp):
        return xp.masked_select_backward(grad, self_shape, mask)


@operator(namespace=None, method=False)
class masked_select_backward:
    """Zeros (of `shape` broadcast with `mask`) with `input` where `mask` is true."""

    def forward(self: Array, shape, mask: Array):
        return kernels.masked_select_backward(self, shape, mask)

    def grad_self(grad, mask, xp):
        return xp.masked_select(grad, mask)


@operator(kernel=indexing_kernels.masked_scatter, out=False, inplace=True)
class masked_scatter:
    """A copy with the elements of `source`, in their order, where `mask` is true."""

    def forward(self: Array, mask: Array, source: Array): ...

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)

    def grad_source(grad, mask, source_shape, xp):
        return xp.front_of_zeros(xp.masked_select(grad, mask), source_shape)


@operator(namespace=None, method=False)
class front_of_zeros:
    """Zeros of `shape` that begin, flattened, with the elements of `input`."""

    def forward(self: Array, shape):
        return kernels.front_of_zeros(self, shape)

    def grad_self(grad, self_shape):
        return grad.reshape((-1,))[: self_shape[0]]


@operator(namespace=None, method=False)
class nonzero_positions:
    """The positions of the elements that are not 0, one row each."""

    def forward(self: Array):
        return kernels.nonzero(self)


@public(method=True)
def nonzero(input, *, out=None, as_tuple=False):
    """The positions of the elements that are not 0: one row each, or, `as_tuple`, one tensor for each dimension.

    >>> import adjoint as torch
    >>> torch.tensor([0, 3, 0, 5]).nonzero()
    tensor([[1],
            [3]])
    """
    if as_tuple:
        rows = nonzero_positions(input if input._array.ndim else input.reshape((1,)))
        return rows.unbind(1)
    return nonzero_positions(input, out=out)


@public(method=True)
def argwhere(input):
    """The positions of the elements that are not 0, one row each."""
    return nonzero_positions(input)
