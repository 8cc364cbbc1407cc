"""Softmax with the semantics of PyTorch's dispatcher: no NaN if all elements are -inf, and gradients as functions."""

from __future__ import annotations

from ... import dtypes
from ...dispatch.annotations import Array, Int
from ...dispatch.decorators import internal, public, tensors
from ...kernels.nn import softmax as kernels
from ...tensor import wrap_dim


@internal(kernels.safe_softmax, function_name="_safe_softmax", node="SafeSoftmaxBackward0", out=False)
class safe_softmax_of:
    """Softmax along `dim`, but 0 if all elements are -inf, as for a query that may attend to nothing."""

    def forward(self: Array, dim: Int): ...

    def grad_self(grad, result, dim, xp):
        return xp.softmax_backward(grad, result, dim)


@public()
def _safe_softmax(input, dim, dtype=None):
    """Softmax along `dim`, but 0 if all elements are -inf. If `dtype` is given, the input is cast to it first."""
    return safe_softmax_of(input if dtype is None else input.to(dtype), dim)


@public()
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of the input of softmax, computed from the gradient of its output."""
    _check("softmax_backward", grad_output, output, dim, input_dtype)
    return tensors.softmax_backward(grad_output, output, dim)


@public()
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of the input of log_softmax, computed from the gradient of its output."""
    _check("log_softmax_backward", grad_output, output, dim, input_dtype)
    return tensors.log_softmax_backward(grad_output, output, dim)


def _check(name, grad, output, dim, input_dtype):
    """Refuse a gradient in half precision or unlike the output in shape or dtype, or a missing dimension."""
    wanted, given = list(output._array.shape), list(grad._array.shape)
    if given != wanted:
        raise RuntimeError(
            f"Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but {given} does "
            f"not equal {wanted} (while checking arguments for {name})"
        )
    wrap_dim(dim, len(given))
    found = dtypes.float16 if (grad.dtype, input_dtype) == (dtypes.float32, dtypes.float16) else output.dtype
    if found is not grad.dtype:
        raise RuntimeError(f"expected scalar type {grad.dtype.scalar_type} but found {found.scalar_type}")
