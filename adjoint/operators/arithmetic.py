"""Elementwise arithmetic of two tensors, or a tensor and a number, with Python's operators for it."""

from __future__ import annotations

import numpy

from ..kernels import arithmetic
from .build import binary, operator, public, unary

# ruff: noqa: D101, N801  (declarations are named as the functions they become)


def _no_bool(self, other, alpha=1):
    kinds = [getattr(value, "dtype", None) for value in (self, other)]
    if all(str(kind) == "torch.bool" or isinstance(value, bool) for kind, value in zip(kinds, (self, other), strict=True)):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
            "instead."
        )


@operator(promote="common", simple=numpy.add, kernel=arithmetic.add, inplace=True, dunder="__add__", reflected="__radd__")
class add:
    """`input + alpha * other`, elementwise, broadcast together.

    >>> import adjoint as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """

    def forward(self: Array, other: Array, *, alpha=1): ...

    def grad_self(grad):
        return grad

    def grad_other(grad, alpha):
        return grad if alpha == 1 else grad * alpha


@operator(
    promote="common", simple=numpy.subtract, kernel=arithmetic.sub, inplace=True, dunder="__sub__", alias=("subtract",), check=_no_bool
)
class sub:
    """`input - alpha * other`, elementwise, broadcast together."""

    def forward(self: Array, other: Array, *, alpha=1): ...

    def grad_self(grad):
        return grad

    def grad_other(grad, alpha):
        return -grad if alpha == 1 else grad * -alpha


@operator(promote="common", kernel=arithmetic.rsub, dunder="__rsub__", node="RsubBackward1", out=False, check=_no_bool)
class rsub:
    """`other - alpha * input`, elementwise, broadcast together."""

    def forward(self: Array, other: Array, *, alpha=1): ...

    def grad_self(grad, alpha):
        return -grad if alpha == 1 else grad * -alpha

    def grad_other(grad):
        return grad


@binary(numpy.multiply, dunder="__mul__", reflected="__rmul__", alias=("multiply",))
class mul:
    """`input * other`, elementwise, broadcast together.

    >>> import adjoint as torch
    >>> torch.tensor([1.0, 2.0]) * torch.tensor([3.0, 4.0])
    tensor([3., 8.])
    """

    def grad_self(grad, other):
        return grad * other.conj()

    def grad_other(grad, self):
        return grad * self.conj()


@operator(
    promote="float",
    simple=numpy.true_divide,
    kernel=arithmetic.div,
    inplace=True,
    dunder="__truediv__",
    alias=("divide", "true_divide"),
    integer_result=True,
)
class div:
    """`input / other`, elementwise, broadcast together; `rounding_mode` None, `"trunc"` or `"floor"`.

    Integers give the default floating-point dtype, unless the quotient is rounded.
    """

    def forward(self: Array, other: Array, *, rounding_mode=None): ...

    def grad_self(grad, other, rounding_mode):
        return grad / other.conj() if rounding_mode is None else grad * 0

    def grad_other(grad, self, other, rounding_mode):
        return -grad * ((self / other) / other).conj() if rounding_mode is None else (grad * 0)


@public(method=("__rtruediv__",), namespace=None)
def rtruediv(input, other):
    """`other / input`, as PyTorch computes it: by the reciprocal."""
    return input.reciprocal() * other
