"""Comparisons, logic and bits. Their results are constant almost everywhere, so nothing here is differentiable."""

from __future__ import annotations

import numpy

from ..kernels import comparison as kernels
from .build import binary, public, unary

# ruff: noqa: D101, N801, F821  (declarations are named as the functions they become)


# --- order ----------------------------------------------------------------------------------------------------


@binary(numpy.equal, dunder="__eq__")
class eq:
    """Whether elements are equal.

    >>> import adjoint as torch
    >>> torch.tensor([1, 2, 3]) == 2
    tensor([False,  True, False])
    """


@binary(numpy.not_equal, dunder="__ne__", alias=("not_equal",))
class ne:
    """Whether elements differ."""


@binary(kernels.lt, simple=numpy.less, fast="float", dunder="__lt__", alias=("less",))
class lt:
    """Whether elements of `input` are less than those of `other`."""


@binary(kernels.le, simple=numpy.less_equal, fast="float", dunder="__le__", alias=("less_equal",))
class le:
    """Whether elements of `input` are less than those of `other` or equal."""


@binary(kernels.gt, simple=numpy.greater, fast="float", dunder="__gt__", alias=("greater",))
class gt:
    """Whether elements of `input` are greater than those of `other`."""


@binary(kernels.ge, simple=numpy.greater_equal, fast="float", dunder="__ge__", alias=("greater_equal",))
class ge:
    """Whether elements of `input` are greater than those of `other` or equal."""


# --- logic: what is not 0 is true -----------------------------------------------------------------------------


@binary(numpy.logical_and)
class logical_and:
    """Whether both elements are true."""


@binary(numpy.logical_or)
class logical_or:
    """Whether one of the elements is true."""


@binary(numpy.logical_xor)
class logical_xor:
    """Whether exactly one of the elements is true."""


@unary(kernels.logical_not, promote=None)
class logical_not:
    """Whether elements are not true."""


# --- bits -----------------------------------------------------------------------------------------------------


@binary(kernels.bitwise_and, number_first=True, dunder="__and__", reflected="__rand__")
class bitwise_and:
    """The bits that both integers have; of bools, `and`.

    >>> import adjoint as torch
    >>> torch.tensor([1, 2, 3]) & 2
    tensor([0, 2, 2])
    """


@binary(kernels.bitwise_or, number_first=True, dunder="__or__", reflected="__ror__")
class bitwise_or:
    """The bits that one of the integers has; of bools, `or`."""


@binary(kernels.bitwise_xor, number_first=True, dunder="__xor__", reflected="__rxor__")
class bitwise_xor:
    """The bits that exactly one of the integers has; of bools, whether they differ."""


@unary(kernels.bitwise_not, promote=None)
class bitwise_not:
    """The complement of the bits; of bools, `not`."""


@binary(kernels.bitwise_left_shift, number_first=True, dunder="__lshift__")
class bitwise_left_shift:
    """`input` times 2 to the power `other`, of integers."""


@binary(kernels.bitwise_right_shift, number_first=True, dunder="__rshift__")
class bitwise_right_shift:
    """`input` divided by 2 to the power `other` and rounded down, of integers."""


@public(namespace=None, method=("__invert__",))
def invert(input):
    """`~input`, of integers and bools."""
    if input._array.dtype.kind not in "iub":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(input)


@public(namespace=None, method=("__rlshift__",))
def reflected_left_shift(input, other):
    """`other << input`."""
    return bitwise_left_shift(other, input)


@public(namespace=None, method=("__rrshift__",))
def reflected_right_shift(input, other):
    """`other >> input`."""
    return bitwise_right_shift(other, input)
