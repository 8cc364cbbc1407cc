"""Of what kind elements are: nan, infinite, real; and `nan_to_num`, which replaces those that are not finite."""

from __future__ import annotations

import numpy

from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array, Float
from ...dispatch.decorators import operator, unary
from ...kernels.math import pointwise as kernels


@unary(
    Kernel(kernels.isnan, small=numpy.isnan, dtypes=FLOATS, quiet=True),
    promote=None,
    inplace=False,
    out=False,
    sparse="values",
    narrow="reads",
)
class isnan:
    """Whether elements are nan."""


@unary(
    Kernel(kernels.isinf, small=numpy.isinf, dtypes=FLOATS, quiet=True),
    promote=None,
    inplace=False,
    out=False,
    sparse="values",
    narrow="halves",
)
class isinf:
    """Whether elements are infinite."""


@unary(
    Kernel(kernels.isfinite, small=numpy.isfinite, dtypes=FLOATS),
    promote=None,
    inplace=False,
    out=False,
    narrow="halves",
)
class isfinite:
    """Whether elements are neither infinite nor nan."""


@unary(kernels.isposinf, promote=None, inplace=False, same_out=True, sparse="values")
class isposinf:
    """Whether elements are infinite and positive."""


@unary(kernels.isneginf, promote=None, inplace=False, same_out=True, sparse="values")
class isneginf:
    """Whether elements are infinite and negative."""


@unary(kernels.isreal, promote=None, inplace=False, out=False, narrow="reads")
class isreal:
    """Whether the imaginary part is 0."""


@unary(kernels.signbit, promote=None, inplace=False, same_out=True, sparse="values")
class signbit:
    """Whether the sign is set, also that of zeros and nans."""


@operator(
    kernel=kernels.nan_to_num, inplace=True, same_out=True, tangent="elementwise", public_inplace=True, sparse="values"
)
class nan_to_num:
    """Finite numbers in place of nans (by default 0) and infinities (the dtype's extremes), elementwise."""

    def forward(self: Array, nan: Float = None, posinf: Float = None, neginf: Float = None): ...

    def grad_self(grad, self, xp):
        return xp.zero_where(grad, xp.isnan(self) | xp.isinf(self))
