"""Softmax as PyTorch's dispatcher has it: without nan where all elements are -inf, and gradients as functions."""

from __future__ import annotations

from ...dispatch.annotations import Array, Int
from ...dispatch.decorators import operator, public, tensors
from ...kernels.nn import softmax as kernels


@operator(
    kernel=kernels.safe_softmax,
    namespace=None,
    method=(),
    function_name="_safe_softmax",
    node="SafeSoftmaxBackward0",
    out=False,
)
class safe_softmax_of:
    """Softmax along `dim`, but 0 where all elements are -inf, as of a query that may attend to nothing."""

    def forward(self: Array, dim: Int): ...

    def grad_self(grad, result, dim, xp):
        return xp.softmax_backward(grad, result, dim)


@public()
def _safe_softmax(input, dim, dtype=None):
    """Softmax along `dim`, but 0 where all elements are -inf; the input is cast to `dtype` first if that is given."""
    return safe_softmax_of(input if dtype is None else input.to(dtype), dim)


@public()
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of the input of softmax, in `input_dtype`, from that of its output."""
    return tensors.softmax_backward(grad_output, output, dim).to(input_dtype)


@public()
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of the input of log_softmax, in `input_dtype`, from that of its output."""
    return tensors.log_softmax_backward(grad_output, output, dim).to(input_dtype)
