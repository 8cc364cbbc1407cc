"""Comparisons, logic, bits, tests for NaN, infinite and real numbers, and `nan_to_num`, which replaces NaN and infinity.

Except for `nan_to_num`, the results are constant almost everywhere, so they are not differentiable.
"""

from __future__ import annotations

import numpy

from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array, Float
from ...dispatch.decorators import binary, operator, public, unary
from ...dispatch.signatures import number_either_way, with_number
from ...kernels.math import comparison as kernels
from ...kernels.math import pointwise
from ..declaring.formulas import zero
from ..declaring.overloads import overloads

# --- order ----------------------------------------------------------------------------------------------------


def _comparison(kernel, alias=(), narrow=None, **options):
    """Declare a comparison and its in-place form. The in-place form writes 0 and 1, and passes no gradient."""
    grad_self = zero

    def grad_other(grad, other_shape, other_dtype, xp):
        return xp.zeros_like(xp.sum_to_size(grad, other_shape))

    def declare(declaration):
        name = declaration.__name__
        function = binary(
            kernel,
            dunder=f"__{name}__",
            alias=alias,
            overloaded=True,
            inplace=False,
            aten="Tensor",
            forms=with_number,
            narrow=narrow,
            **options,
        )(declaration)
        overloads(
            kernel if isinstance(kernel, numpy.ufunc) else Kernel(kernel.general, quiet=True),
            by_tensor={"node": f"{name.capitalize()}Backward1", "aten": "Tensor", "narrow": narrow},
            by_number={"node": f"{name.capitalize()}Backward0", "aten": "Scalar", "narrow": narrow},
            alias_inplace=tuple(f"{other}_" for other in alias),
            only_inplace=True,
        )(
            type(
                name,
                (),
                {
                    "__doc__": f"`{name}` in place: 1 where it holds, elsewhere 0.",
                    "__module__": __name__,
                    "grad_self": grad_self,
                    "grad_other": grad_other,
                },
            )
        )
        return function

    return declare


@_comparison(numpy.equal, narrow="reads")
class eq:
    """Whether elements are equal.

    >>> import adjoint as torch
    >>> torch.tensor([1, 2, 3]) == 2
    tensor([False,  True, False])
    """


@_comparison(numpy.not_equal, alias=("not_equal",), narrow="reads")
class ne:
    """Whether elements differ."""


@_comparison(Kernel(kernels.lt, small=numpy.less, dtypes=FLOATS, quiet=True), alias=("less",))
class lt:
    """Whether elements of `input` are less than elements of `other`."""


@_comparison(Kernel(kernels.le, small=numpy.less_equal, dtypes=FLOATS, quiet=True), alias=("less_equal",))
class le:
    """Whether elements of `input` are less than or equal to elements of `other`."""


@_comparison(Kernel(kernels.gt, small=numpy.greater, dtypes=FLOATS, quiet=True), alias=("greater",))
class gt:
    """Whether elements of `input` are greater than elements of `other`."""


@_comparison(Kernel(kernels.ge, small=numpy.greater_equal, dtypes=FLOATS, quiet=True), alias=("greater_equal",))
class ge:
    """Whether elements of `input` are greater than or equal to elements of `other`."""


# --- logic: what is not 0 is true -----------------------------------------------------------------------------


@binary(numpy.logical_and, numbers=False, vmap_name="inplace arithmetic")
class logical_and:
    """Whether both elements are true."""


@binary(numpy.logical_or, numbers=False, vmap_name="inplace arithmetic")
class logical_or:
    """Whether at least one of the elements is true."""


@binary(numpy.logical_xor, numbers=False, vmap_name="inplace arithmetic")
class logical_xor:
    """Whether exactly one of the elements is true."""


@unary(Kernel(kernels.logical_not, quiet=True), promote=None, public_inplace=False)
class logical_not:
    """The logical negation of the elements."""


# --- bits -----------------------------------------------------------------------------------------------------


def _of_bits(kernel, **options):
    """Declare a function of the bits of integers. Either operand may be a number."""
    shared = {"numbers": "first", "overloaded": True, "aten": "Tensor, Tensor, Scalar", "vmap_name": ""}
    return binary(kernel, forms=number_either_way, **{**shared, **options})


@_of_bits(Kernel(kernels.bitwise_and, small=numpy.bitwise_and, quiet=True), dunder="__and__", reflected="__rand__")
class bitwise_and:
    """The bits that are set in both integers. For bools, the result is the logical "and".

    >>> import adjoint as torch
    >>> torch.tensor([1, 2, 3]) & 2
    tensor([0, 2, 2])
    """


@_of_bits(Kernel(kernels.bitwise_or, small=numpy.bitwise_or, quiet=True), dunder="__or__", reflected="__ror__")
class bitwise_or:
    """The bits that are set in at least one of the integers. For bools, the result is the logical "or"."""


@_of_bits(Kernel(kernels.bitwise_xor, small=numpy.bitwise_xor, quiet=True), dunder="__xor__", reflected="__rxor__")
class bitwise_xor:
    """The bits that are set in exactly one of the integers. For bools, the result is true if the operands differ."""


@unary(Kernel(kernels.bitwise_not, small=numpy.invert, quiet=True), promote=None, same_out=True, public_inplace=False)
class bitwise_not:
    """The complement of the bits. For bools, the result is the logical negation."""


@_of_bits(kernels.bitwise_left_shift, dunder="__lshift__", aten="Tensor, Tensor, Tensor_Scalar")
class bitwise_left_shift:
    """Integers `input` times 2 to the power `other`."""


@_of_bits(kernels.bitwise_right_shift, dunder="__rshift__", aten="Tensor, Tensor, Tensor_Scalar")
class bitwise_right_shift:
    """Integers `input` divided by 2 to the power `other` and rounded down."""


@public(namespace=None, method=("__invert__",))
def invert(input):
    """`~input`, for integers and bools."""
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


# --- kinds of elements ----------------------------------------------------------------------------------------


def _kind(kernel, **options):
    """Declare a function that returns which elements are of a kind."""
    return unary(kernel, promote=None, inplace=False, **options)


@_kind(
    Kernel(pointwise.isnan, small=numpy.isnan, dtypes=FLOATS, quiet=True), out=False, sparse="values", narrow="reads"
)
class isnan:
    """Whether elements are nan."""


@_kind(
    Kernel(pointwise.isinf, small=numpy.isinf, dtypes=FLOATS, quiet=True), out=False, sparse="values", narrow="halves"
)
class isinf:
    """Whether elements are infinite."""


@_kind(Kernel(pointwise.isfinite, small=numpy.isfinite, dtypes=FLOATS), out=False, narrow="halves")
class isfinite:
    """Whether elements are neither infinite nor nan."""


BOOLEAN = "{name} does not support non-boolean outputs."


@_kind(pointwise.isposinf, same_out=BOOLEAN, sparse="values")
class isposinf:
    """Whether elements are infinite and positive."""


@_kind(pointwise.isneginf, same_out=BOOLEAN, sparse="values")
class isneginf:
    """Whether elements are infinite and negative."""


@_kind(pointwise.isreal, out=False, narrow="reads")
class isreal:
    """Whether the imaginary part is 0."""


@_kind(pointwise.signbit, same_out=True, sparse="values")
class signbit:
    """Whether the sign bit is set, including the sign bits of zeros and NaNs."""


@operator(
    kernel=pointwise.nan_to_num,
    inplace=True,
    same_out=True,
    tangent="elementwise",
    public_inplace=True,
    sparse="values",
)
class nan_to_num:
    """`input` with NaNs replaced by a number (0 by default) and infinities by other numbers (the dtype's extremes by default)."""

    real_derivative = "nan_to_num"

    def forward(self: Array, nan: Float = None, posinf: Float = None, neginf: Float = None): ...

    def grad_self(grad, self, xp):
        return xp.zero_where(grad, xp.isnan(self) | xp.isinf(self))
