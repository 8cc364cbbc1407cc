"""Dropout: elements, or whole channels, set to zero at random, with the masks that PyTorch draws from the same seed."""

from __future__ import annotations

import math

import numpy

from ..._runtime.first_use import import_late
from ...codegen.backend import NUMPY
from ...dispatch.annotations import Array
from ...dispatch.array_functions import computed
from ...dispatch.decorators import operator, public, tensors
from ...kernels.create import random as kernels
from ...kernels.memory import copying
from ...kernels.runtime.meta_array import Meta, parked
from ...tape import modes
from ...tape.saved_attributes import read_saved
from ...tensor import Tensor, can_require_grad, wrap
from ..create.batches import one_by_one, under_vmap
from ..create.random import stream_of

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _dropped(input: Tensor, p: float, train: bool, feature: bool, alpha: bool, inplace: bool) -> Tensor:
    """Return `input` with dropout of the kind that `feature` and `alpha` select."""
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0.0 or not train or input._array.size == 0:
        return input
    multiply = tensors.mul.inplace if inplace else tensors.mul
    if p == 1.0:
        return multiply(input, wrap(numpy.zeros((), input._array.dtype)))
    if not can_require_grad(input._array):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.scalar_type}")
    draw = _kept if alpha else _mask
    if modes.STATE.interpreters and (watch := import_late("adjoint.aten.torch_dispatch")).is_watched(input):
        if feature:
            drawn = input.new_empty(_noise_like(input._array, True).shape)
        else:
            drawn = watch.function_called("empty_like", tensors.empty_like, (input,), {})
        drawn = drawn.bernoulli_(1.0 - p)
        drawn = drawn if alpha else drawn.div_(1.0 - p)
    elif type(input._array) is Meta or (modes.STATE.interpreters and input.is_meta):
        drawn = wrap(parked(_noise_like(input._array, feature)))
    else:
        drawn = draw(input._array, feature, p)
    return _alpha_dropped(input, drawn, p, inplace) if alpha else multiply(input, drawn)


@under_vmap(one_by_one)
def _mask(array, feature, p):
    return computed(_drawn_mask, array, feature, p, keeps=True)


@under_vmap(one_by_one)
def _kept(array, feature, p):
    return computed(_drawn_kept, array, feature, p, keeps=True)


def _drawn_mask(array, feature, p):
    return kernels.dropout_mask(stream_of(None), _noise_like(array, feature), p)


def _drawn_kept(array, feature, p):
    return kernels.bernoulli_(stream_of(None), _noise_like(array, feature), 1.0 - p)


def _noise_like(array, feature):
    if not feature:
        return copying.empty_like(array)
    if array.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return NUMPY.allocate((*array.shape[:2], *[1] * (array.ndim - 2)), array.dtype)


def _alpha_dropped(input, kept, p, inplace):
    """Replace dropped elements by the lower limit of SELU, and restore mean and variance by a linear map."""
    alpha = SELU_ALPHA * SELU_SCALE
    a = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    b = (kept - 1) * (alpha * a) + alpha * a * p
    kept = kept * a
    return (input.mul_(kept) if inplace else input * kept).add_(b)


def _dropout(name, feature, alpha, doc):
    def dropout(input, p, train: bool):
        return _dropped(input, p, train, feature, alpha, inplace=False)

    def dropout_(input, p, train: bool):
        return _dropped(input, p, train, feature, alpha, inplace=True)

    for function, own_name in ((dropout, name), (dropout_, f"{name}_")):
        function.__name__ = function.__qualname__ = own_name
        function.__doc__ = doc
        public()(function)
    return dropout, dropout_


dropout, dropout_ = _dropout(
    "dropout",
    False,
    False,
    """Elements set to zero with probability `p`, the others divided by `1 - p`; the input itself unless `train`.

    >>> import adjoint as torch
    >>> torch.dropout(torch.ones(3), 0.5, train=False)
    tensor([1., 1., 1.])
    """,
)
feature_dropout, feature_dropout_ = _dropout(
    "feature_dropout", True, False, "Whole channels (dimension 1) set to zero with probability `p`; see `dropout`."
)
alpha_dropout, alpha_dropout_ = _dropout(
    "alpha_dropout",
    False,
    True,
    "Dropout that keeps the mean and the variance of SELU activations (Klambauer et al., 2017).",
)
feature_alpha_dropout, feature_alpha_dropout_ = _dropout(
    "feature_alpha_dropout", True, True, "`alpha_dropout` of whole channels (dimension 1)."
)


@operator(
    kernel=lambda self, p, train: kernels.dropout(stream_of(None), self, p, train),
    outputs=("output", "mask"),
    out=False,
    method=(),
    tangent="elementwise",  # with the mask that was drawn
    batch="leading",
)
class native_dropout:
    """`input` with dropout, and the mask of the remaining elements, which are divided by `1 - p`."""

    nondifferentiable = ("mask",)
    saved_display = {"mask": None, "train": None, "result1": lambda node: read_saved(node, "_saved_mask")}

    def forward(self: Array, p, train): ...

    def grad_self(grads, mask, p, train, xp):
        if train is False:
            return grads[0]
        return grads[0] * mask * (0.0 if p == 1 else 1.0 / (1.0 - p))


native_dropout.operator.random = True


@operator(
    kernel=kernels.dropout_backward, namespace="aten", method=False, out=False, batch="elementwise", narrow="halves"
)
class native_dropout_backward:
    """The gradient of dropout's input: `grad_output` multiplied by `scale` where `mask` is true."""

    real_derivative = "native_dropout_backward"

    def forward(grad_output: Array, mask: Array, scale): ...

    def grad_grad_output(grad, mask, scale):
        return grad * mask * scale

    def grad_mask(grad):
        raise NotImplementedError("the derivative for 'native_dropout_backward: mask' is not implemented.")
