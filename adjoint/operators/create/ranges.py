"""Regular tensors: evenly spaced numbers, identity matrices, indices of triangles, grids and products of sequences."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy

from ... import dtypes
from ..._runtime.tracebacks import warn
from ...device import Size
from ...dispatch.annotations import Array
from ...dispatch.arguments import invalid_arguments, is_number, is_of_type, require, require_tensors
from ...dispatch.decorators import operator, public, tensors
from ...dispatch.sequential import sequential_fallback
from ...dispatch.signatures import NEW, OUT
from ...kernels.create import creation as kernels
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.shapes import broadcast_shapes as broadcast
from ...kernels.runtime.shapes import common_shape
from ...tensor import Tensor
from ..memory.conversion import checked_dtype
from ..shape.view import expand, view_shape
from .creation import leaf, made, result_dtype


def _number(value: Any) -> Any:
    """Return a Python number. NumPy scalars and zero-dimensional tensors are converted."""
    return value.item() if isinstance(value, (Tensor, numpy.generic)) else value


_REAL = frozenset((int, float))

# --- at equal distances ---------------------------------------------------------------------------------------

_END = 1 << 63  # of int64
_FEW = 1 << 15
"""Up to this many numbers, NumPy is as fast as a compiled kernel."""


@public(
    forms=(
        f"Number end, {OUT}, {NEW}",
        f"Number start, Number end, *, {NEW}",
        f"Number start, Number end, Number step = 1, {OUT}, {NEW}",
    )
)
def arange(
    *bounds, start=None, end=None, step=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False,
):  # fmt: skip
    """The numbers from `start` up to, but excluding, `end`, in steps of `step`. Call `arange(end)` or `arange(start, end, step)`.

    The dtype is int64 if all three are integers, otherwise the default dtype.

    >>> import adjoint as torch
    >>> torch.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if (
        len(bounds) == 1
        and type(bounds[0]) is int
        and _FEW > bounds[0] >= 0
        and start is end is step is dtype is out is None
    ):
        return leaf(numpy.arange(bounds[0], dtype=numpy.int64), requires_grad, device, pin_memory, layout)
    if start is end is step is None and 1 <= len(bounds) <= 3:
        start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    else:
        start, end, step = _named_bounds(bounds, start, end, step)
    if not (type(start) in _REAL and type(end) in _REAL and type(step) in _REAL):
        if not all(is_of_type(value, "Number") for value in (start, end, step)):
            if len(bounds) == 1:
                require("Number", end, "arange", "end", 1)
            raise invalid_arguments("arange", *bounds)
        start, end, step = map(_number, (start, end, step))
    kind = None if dtype is out is None else result_dtype("arange", dtype, out)
    if kind is None:
        kind = dtypes.get_default_dtype() if float in (type(start), type(end), type(step)) else dtypes.int64
    if kind is dtypes.int64 and any(type(each) is int and not -_END <= each < _END for each in (start, end, step)):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    size = kernels.range_length(start, end, step, kind)
    if out is not None and out._array.size not in (0, size):
        warn(
            f"The number of elements in the out tensor of shape {list(out._array.shape)} is {out._array.size} which "
            f"does not match the computed number of elements {size}. Note that this may occur as a result of rounding "
            f"error. The out tensor will be resized to a tensor of shape ({size},)."
        )
    compute = partial(kernels.arange, start, step, kind)
    return made("arange", (size,), kind, compute, out, requires_grad, device, pin_memory, layout)


def _named_bounds(bounds, start, end, step):
    """Return the bounds and the step of `arange` if some are given by name."""
    names = ("end",) if len(bounds) == 1 and end is None else ("start", "end", "step")
    given = {name: value for name, value in (("start", start), ("end", end), ("step", step)) if value is not None}
    if (
        len(bounds) > 3
        or any(name in given for name in names[: len(bounds)])
        or not {"end", *given} <= {*names[: len(bounds)], *given}
    ):
        raise invalid_arguments("arange", *bounds)
    given.update(zip(names, bounds, strict=False))
    return given.get("start", 0), given.get("end", 0), given.get("step", 1)


@public(name="range")
def range_with_end(
    start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """The numbers from `start` to `end`, both included, in steps of `step`. Deprecated: use `arange`."""
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    for position, (name, value) in enumerate((("start", start), ("end", end), ("step", step)), 1):
        require("Number", value, "range", name, position)
    values = [*map(_number, (start, end, step))]
    kind = result_dtype("range", dtype, out) or dtypes.get_default_dtype()
    size = kernels.inclusive_length(*values, kind)  # type: ignore[call-arg]
    compute = partial(kernels.inclusive_range, values[0], values[2])
    return made("range", (size,), kind, compute, out, requires_grad, device, pin_memory, layout)


def _spaced_forms(base):
    """Return the forms of `linspace`, or with the parameter `base` the forms of `logspace`."""
    ends = itertools.product(("Tensor", "Number"), repeat=2)
    return tuple(f"{first} start, {last} end, int steps{base}, {OUT}, {NEW}" for last, first in ends)


def _spaced_arguments(function, start, end, steps, dtype, out):
    if type(steps) is int and steps >= 0 and type(start) in _REAL and type(end) in _REAL and dtype is out is None:
        return start, end, steps, dtypes.get_default_dtype()
    sizes = [(name, value._array.ndim) for name, value in (("start", start), ("end", end)) if isinstance(value, Tensor)]
    if any(ndim for _, ndim in sizes):
        got = " and ".join(f"{name} with {ndim} dimension(s)" for name, ndim in sizes)
        raise RuntimeError(f"{function} only supports 0-dimensional start and end tensors, but got {got}.")
    if not (is_of_type(steps, "Int") and all(is_number(end) or isinstance(end, Tensor) for end in (start, end))):
        raise invalid_arguments(function, *(value for value in (start, end, steps) if value is not None))
    start, end = _number(start), _number(end)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    kind = result_dtype(function, dtype, out)
    if isinstance(start, complex) or isinstance(end, complex):
        inferred = dtypes.get_default_complex()
        if kind is not None and not kind.is_complex:
            raise RuntimeError(
                f"torch.{function}(): inferred dtype "
                f"c10::complex<{'float' if inferred is dtypes.complex64 else 'double'}> can't be "
                f"safely cast to passed dtype {kind.scalar_type}"
            )
        kind = kind or inferred
    return start, end, int(steps), kind or dtypes.get_default_dtype()


@public(forms=_spaced_forms(""))
@sequential_fallback
def linspace(
    start, end, steps=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """`steps` evenly spaced numbers from `start` to `end`, both included.

    >>> import adjoint as torch
    >>> torch.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    start, end, steps, kind = _spaced_arguments("linspace", start, end, steps, dtype, out)
    compute = partial(kernels.linspace, start, end, kind)
    return made("linspace", (steps,), kind, compute, out, requires_grad, device, pin_memory, layout)


@public(forms=_spaced_forms(", float base = 10.0"))
@sequential_fallback
def logspace(
    start,
    end,
    steps=None,
    base=10.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """`base` to the powers `linspace(start, end, steps)`."""
    start, end, steps, kind = _spaced_arguments("logspace", start, end, steps, dtype, out)
    compute = partial(kernels.logspace, start, end, base, kind)
    return made("logspace", (steps,), kind, compute, out, requires_grad, device, pin_memory, layout)


# --- matrices and their indices -------------------------------------------------------------------------------


@public()
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """An n by m matrix with ones on the diagonal and zeros elsewhere. By default m is n.

    >>> import adjoint as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    for position, (name, size) in enumerate((("n", n), ("m", n if m is None else m)), 1):
        require("Int", size, "eye", name, position)
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    kind = result_dtype("eye", dtype, out) or dtypes.get_default_dtype()
    shape = int(n), int(n if m is None else m)
    return made("eye", shape, kind, kernels.eye, out, requires_grad, device, pin_memory, layout)


def _triangle(name, kernel, doc):
    def indices(row, col, offset=0, *, dtype=dtypes.int64, device=None, layout=None):
        for argument, size in (("row", row), ("col", col)):
            if size < 0:
                raise RuntimeError(f"{argument} must be non-negative, got{size}")
        kind = checked_dtype(dtype, name)
        if kind not in (dtypes.int64, dtypes.int32):
            raise refuse(f"{name}", kind)
        return leaf(kernel(row, col, offset).astype(kind.numpy, copy=False), False, device)

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = doc
    return public()(indices)


tril_indices = _triangle(
    "tril_indices",
    kernels.tril_indices,
    "The rows and columns, as a 2 by n tensor, of the elements of a matrix on and below diagonal `offset`, row by row.",
)
triu_indices = _triangle(
    "triu_indices",
    kernels.triu_indices,
    "The rows and columns, as a 2 by n tensor, of the elements of a matrix on and above diagonal `offset`, row by row.",
)


@public()
def vander(x, N=None, increasing: bool = False):
    """The Vandermonde matrix. Its columns are the powers of `x`, in descending order unless `increasing` is true."""
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")
    size = x._array.shape[0]
    count = size if N is None else N
    if not (x.is_floating_point() or x.is_complex()):
        x = x.long()
    result = x.new_ones((size, count))
    if count > 1:
        powers = tensors.cumprod(x.unsqueeze(1).expand(size, count - 1), 1)
        result = tensors.cat([result[:, :1], powers], 1)
    return result if increasing else result.flip(1)


# --- grids and products ---------------------------------------------------------------------------------------


@public()
def broadcast_shapes(*shapes):
    """The shape to which tensors of the given shapes broadcast.

    >>> import adjoint as torch
    >>> torch.broadcast_shapes((2,), (3, 1))
    torch.Size([3, 2])
    """
    for shape in shapes:
        if isinstance(shape, str):
            raise TypeError("'<' not supported between instances of 'str' and 'int'")
        if not isinstance(shape, (int, tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
    whole = ((shape,) if isinstance(shape, int) else shape for shape in shapes)
    return Size(common_shape([shape if isinstance(shape, tuple) else tuple(shape) for shape in whole]))


@public()
def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape."""
    require_tensors(tensors)
    shape = broadcast(*(tensor._array.shape for tensor in tensors))
    return tuple(tensor if tensor._array.shape == shape else tensor.expand(shape) for tensor in tensors)


def _sequence(values):
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = values[0]
    require_tensors(values)
    return tuple(values)


@public()
def meshgrid(*tensors, indexing=None):
    """The coordinates of a grid, one tensor for each one-dimensional input.

    With `indexing="ij"` the first input varies along the rows, and with `"xy"` along the columns.

    >>> import adjoint as torch
    >>> torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[1]
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    vectors = _sequence(tensors)
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
        indexing = "ij"
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for vector in vectors:
        if vector._array.dtype != vectors[0]._array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if vector._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {vector!r}")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swapped = indexing == "xy" and len(vectors) >= 2
    if swapped:
        vectors = (vectors[1], vectors[0], *vectors[2:])
    shape = tuple(vector._array.size for vector in vectors)
    grids = [
        expand(view_shape(vector, (1,) * position + (size,) + (1,) * (len(shape) - position - 1)), shape)
        for position, (vector, size) in enumerate(zip(vectors, shape, strict=True))
    ]
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public()
def cartesian_prod(*tensors_):
    """All tuples with one element from each one-dimensional tensor, as rows."""
    vectors = _sequence(tensors_)
    for vector in vectors:
        if vector._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(vector._array.shape)}")
    if len(vectors) == 1:
        return vectors[0]
    return tensors.stack([grid.flatten() for grid in meshgrid(*vectors, indexing="ij")], 1)


@public()
def combinations(input=None, r=2, with_replacement: bool = False, *, x=None):
    """All combinations of `r` elements of a one-dimensional tensor, in order, as rows.

    >>> import adjoint as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    input = x if input is None else input
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return leaf(numpy.empty(0, input._array.dtype))
    grids = meshgrid(*[input] * r, indexing="ij")
    positions = numpy.ogrid[(slice(input._array.size),) * r]
    mask = numpy.ones((input._array.size,) * r, numpy.bool_)
    for first, second in itertools.pairwise(positions):
        mask &= first <= second if with_replacement else first < second
    return tensors.stack([grid.masked_select(leaf(mask)) for grid in grids], 1)


# --- complex numbers ------------------------------------------------------------------------------------------


_COMPLEX = "Expected object of scalar type {wanted} but got scalar type {given} for argument 'out'"


@operator(kernel=kernels.complex_from_parts, method=False, name="complex", same_out=_COMPLEX, batch="elementwise")
class complex_:
    """Complex numbers with the given real and imaginary parts."""

    def forward(real: Array, imag: Array): ...

    def grad_real(grad, real, xp):
        return xp.real(grad)

    def grad_imag(grad, imag, xp):
        return xp.real(grad * -1j)


@operator(kernel=kernels.polar, method=False, same_out=_COMPLEX, batch="elementwise")
class polar:
    """Complex numbers with the given absolute values, and angles in radians."""

    def forward(abs: Array, angle: Array): ...

    def grad_abs(grad, abs, angle, xp):
        return xp.real(grad * xp.polar(xp.ones_like(abs), angle).conj())

    def grad_angle(grad, result, xp):
        return xp.real(grad * (result * 1j).conj())
