"""Softmax and related functions along a dimension."""

from __future__ import annotations

from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Bool, Dims, Dtype, Int
from ...dispatch.decorators import PUBLIC, internal, operator, public, publish, tensors
from ...dispatch.out import STRICT, stored
from ...kernels.nn import softmax as kernels


@internal(kernels.softmax, function_name="softmax", node="SoftmaxBackward0", out=False, narrow="trivial")
class softmax_of:
    """`exp(input)` divided by its sum along `dim`."""

    def forward(self: Array, dim: Int): ...

    def grad_self(grad, result, dim, xp):
        return xp.softmax_backward(grad, result, dim)


@internal(
    kernels.softmax_backward, node="SoftmaxBackwardDataBackward0", batch="expanded", aten_name="_softmax_backward_data"
)
class softmax_backward:
    """The gradient of the input of softmax."""

    def forward(grad_output: Array, output: Array, dim): ...

    def grad_grad_output(grad, output, dim, xp):
        return xp.softmax_backward(grad, output, dim)

    def grad_output(grad, grad_output, output, dim, xp):
        weighted = xp.sum(grad_output * output, dim, True)
        return grad_output * grad - grad * weighted - grad_output * xp.sum(grad * output, dim, True)


@internal(kernels.log_softmax, function_name="log_softmax", node="LogSoftmaxBackward0", out=False, narrow="trivial")
class log_softmax_of:
    """The logarithm of softmax along `dim`."""

    def forward(self: Array, dim: Int): ...

    def grad_self(grad, result, dim, xp):
        return xp.log_softmax_backward(grad, result, dim)


@internal(
    kernels.log_softmax_backward,
    node="LogSoftmaxBackwardDataBackward0",
    batch="expanded",
    aten_name="_log_softmax_backward_data",
)
class log_softmax_backward:
    """The gradient of the input of the logarithm of softmax."""

    def forward(grad_output: Array, output: Array, dim): ...

    def grad_grad_output(grad, output, dim, xp):
        return grad - xp.sum(grad * xp.exp(output), dim, True)

    def grad_output(grad, grad_output, output, dim, xp):
        return -grad * xp.exp(output) * xp.sum(grad_output, dim, True)


@public(method=True, numpy_names=True)
def softmax(input, dim, dtype: Dtype = None, *, out=None):
    """`exp(input)` divided by its sum along `dim`. If `dtype` is given, the input is cast to it first.

    >>> import adjoint as torch
    >>> torch.softmax(torch.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return stored("softmax", softmax_of(input if dtype is None else input.to(dtype), dim), out, STRICT, underived=True)


@public(method=True, numpy_names=True)
def log_softmax(input, dim, dtype: Dtype = None, *, out=None):
    """The logarithm of `softmax`, computed without overflow or underflow."""
    return stored(
        "log_softmax", log_softmax_of(input if dtype is None else input.to(dtype), dim), out, STRICT, underived=True
    )


@operator(kernel=Kernel(kernels.logsumexp, rows=kernels.logsumexp_rows))
class logsumexp:
    """The logarithm of the sum of exponentials over `dim` (one or several), computed without overflow."""

    def forward(self: Array, dim: Dims, keepdim: Bool = False): ...

    def grad_self(grad, self, result, dim, keepdim, xp):
        return xp.logsumexp_backward(grad, self, result, dim, keepdim)


@public(namespace=None, on_arrays=kernels.logsumexp_backward)
def logsumexp_backward(grad, self, result, dim, keepdim):
    """The gradient of the input of `logsumexp`."""
    shape = tuple(self.shape)
    norm = tensors.kept(result, shape, dim, keepdim)
    return tensors.kept(grad, shape, dim, keepdim) * tensors.exp(self - norm).conj()


for _name in ("softmax", "log_softmax", "logsumexp"):
    publish("special", **{_name: PUBLIC["torch"][_name]})
