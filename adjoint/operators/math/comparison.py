"""Comparisons, logic and bits. Their results are constant almost everywhere, so nothing here is differentiable."""

from __future__ import annotations

import numpy

from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.decorators import binary, public, unary
from ...dispatch.overloads import overloads
from ...kernels.math import comparison as kernels
from .arithmetic import NUMBER_EITHER_WAY, WITH_NUMBER

# --- order ----------------------------------------------------------------------------------------------------


@binary(numpy.equal, dunder="__eq__", overloaded=True, inplace=False, aten="Tensor", forms=WITH_NUMBER)
class eq:
    """Whether elements are equal.

    >>> import adjoint as torch
    >>> torch.tensor([1, 2, 3]) == 2
    tensor([False,  True, False])
    """


@binary(
    numpy.not_equal,
    dunder="__ne__",
    alias=("not_equal",),
    overloaded=True,
    inplace=False,
    aten="Tensor",
    forms=WITH_NUMBER,
)
class ne:
    """Whether elements differ."""


@binary(
    Kernel(kernels.lt, small=numpy.less, dtypes=FLOATS, quiet=True),
    dunder="__lt__",
    alias=("less",),
    overloaded=True,
    inplace=False,
    aten="Tensor",
    forms=WITH_NUMBER,
)
class lt:
    """Whether elements of `input` are less than those of `other`."""


@binary(
    Kernel(kernels.le, small=numpy.less_equal, dtypes=FLOATS, quiet=True),
    dunder="__le__",
    alias=("less_equal",),
    overloaded=True,
    inplace=False,
    aten="Tensor",
    forms=WITH_NUMBER,
)
class le:
    """Whether elements of `input` are less than those of `other` or equal."""


@binary(
    Kernel(kernels.gt, small=numpy.greater, dtypes=FLOATS, quiet=True),
    dunder="__gt__",
    alias=("greater",),
    overloaded=True,
    inplace=False,
    aten="Tensor",
    forms=WITH_NUMBER,
)
class gt:
    """Whether elements of `input` are greater than those of `other`."""


@binary(
    Kernel(kernels.ge, small=numpy.greater_equal, dtypes=FLOATS, quiet=True),
    dunder="__ge__",
    alias=("greater_equal",),
    overloaded=True,
    inplace=False,
    aten="Tensor",
    forms=WITH_NUMBER,
)
class ge:
    """Whether elements of `input` are greater than those of `other` or equal."""


def _declare_in_place(name, kernel, alias=()):
    """The comparison in place, which writes 0 and 1 over the numbers and lets no gradient through."""

    def grad_self(grad, xp):
        return xp.zeros_like(grad)

    def grad_other(grad, other_shape, other_dtype, xp):
        return xp.zeros_like(xp.sum_to_size(grad, other_shape))

    doc = f"`{name}` in place: 1 where it holds, elsewhere 0."
    overloads(
        kernel,
        by_tensor={"node": f"{name.capitalize()}Backward1", "aten": "Tensor"},
        by_number={"node": f"{name.capitalize()}Backward0", "aten": "Scalar"},
        alias_inplace=alias,
        only_inplace=True,
    )(type(name, (), {"__doc__": doc, "__module__": __name__, "grad_self": grad_self, "grad_other": grad_other}))


_declare_in_place("eq", numpy.equal)
_declare_in_place("ne", numpy.not_equal, ("not_equal_",))
_declare_in_place("lt", Kernel(kernels.lt, quiet=True), ("less_",))
_declare_in_place("le", Kernel(kernels.le, quiet=True), ("less_equal_",))
_declare_in_place("gt", Kernel(kernels.gt, quiet=True), ("greater_",))
_declare_in_place("ge", Kernel(kernels.ge, quiet=True), ("greater_equal_",))


# --- logic: what is not 0 is true -----------------------------------------------------------------------------


@binary(numpy.logical_and, numbers=False, vmap_name="inplace arithmetic")
class logical_and:
    """Whether both elements are true."""


@binary(numpy.logical_or, numbers=False, vmap_name="inplace arithmetic")
class logical_or:
    """Whether one of the elements is true."""


@binary(numpy.logical_xor, numbers=False, vmap_name="inplace arithmetic")
class logical_xor:
    """Whether exactly one of the elements is true."""


@unary(Kernel(kernels.logical_not, quiet=True), promote=None, public_inplace=False)
class logical_not:
    """Whether elements are not true."""


# --- bits -----------------------------------------------------------------------------------------------------


@binary(
    Kernel(kernels.bitwise_and, quiet=True),
    number_first=True,
    dunder="__and__",
    reflected="__rand__",
    overloaded=True,
    aten="Tensor",
    aten_number="Scalar",
    vmap_name="inplace arithmetic",
    forms=NUMBER_EITHER_WAY,
)
class bitwise_and:
    """The bits that both integers have; of bools, `and`.

    >>> import adjoint as torch
    >>> torch.tensor([1, 2, 3]) & 2
    tensor([0, 2, 2])
    """


@binary(
    Kernel(kernels.bitwise_or, quiet=True),
    number_first=True,
    dunder="__or__",
    reflected="__ror__",
    overloaded=True,
    aten="Tensor",
    aten_number="Scalar",
    vmap_name="inplace arithmetic",
    forms=NUMBER_EITHER_WAY,
)
class bitwise_or:
    """The bits that one of the integers has; of bools, `or`."""


@binary(
    Kernel(kernels.bitwise_xor, quiet=True),
    number_first=True,
    dunder="__xor__",
    reflected="__rxor__",
    overloaded=True,
    aten="Tensor",
    aten_number="Scalar",
    forms=NUMBER_EITHER_WAY,
)
class bitwise_xor:
    """The bits that exactly one of the integers has; of bools, whether they differ."""


@unary(kernels.bitwise_not, promote=None, same_out=True, public_inplace=False)
class bitwise_not:
    """The complement of the bits; of bools, `not`."""


@binary(
    kernels.bitwise_left_shift,
    number_first=True,
    dunder="__lshift__",
    overloaded=True,
    aten="Tensor",
    aten_number="Tensor_Scalar",
    forms=NUMBER_EITHER_WAY,
)
class bitwise_left_shift:
    """`input` times 2 to the power `other`, of integers."""


@binary(
    kernels.bitwise_right_shift,
    number_first=True,
    dunder="__rshift__",
    overloaded=True,
    aten="Tensor",
    aten_number="Tensor_Scalar",
    forms=NUMBER_EITHER_WAY,
)
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
