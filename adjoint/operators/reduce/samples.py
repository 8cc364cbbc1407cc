"""Functions of samples along a dimension: covariances, integrals by the trapezoidal rule, derivatives by differences."""

from __future__ import annotations

from numbers import Number

import numpy

from ..._runtime.tracebacks import warn
from ...dispatch.arguments import MISSING, invalid_arguments, require
from ...dispatch.decorators import public, tensors
from ...dispatch.numpy_names import with_numpy_names
from ...dispatch.sequential import is_readable, read_array
from ...tensor import Tensor, wrap_dim
from ..shape.parts import select, slice


@public(method=True, numpy_names=True)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of the rows of `input`.

    Rows are variables, and columns are observations. A one-dimensional input is one variable.

    `fweights` contains the number of occurrences of each observation, and `aweights` contains the weights. `correction`
    is subtracted from the number of observations, as in `numpy.cov`.

    >>> import adjoint as torch
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("cov", input)
    if type(correction) is not int:
        require("Int", correction, "cov", "correction")
    if input._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.view((1, input._array.size)) if input._array.ndim < 2 else input
    count = rows._array.shape[1]
    weights = _weights(fweights, aweights, count)
    if weights is None:
        total, degrees = count, count - correction
        weighted = rows
    else:
        total = weights.sum()
        degrees = total - correction if aweights is None else _effective(total, weights, aweights, correction)
        weighted = rows * weights
    centered = rows - (weighted.sum(1) / total).unsqueeze(1)
    other = centered if weights is None else centered * weights
    if not (degrees if weights is None else degrees.item()) > 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        degrees = 0 if weights is None else degrees.zero_()
    return (tensors.mm(centered, other.t().conj()) / degrees).squeeze()


def _check_variables(name, input):
    require("Tensor", input, name, "input", 1)
    if input._array.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input._array.ndim} dimensions"
        )


def _effective(total, weights, aweights, correction):
    """Return the degrees of freedom of weighted observations."""
    if correction == 0:
        return total
    return total - tensors.mul_number((weights * aweights).sum(), correction) / total


def _weights(fweights, aweights, count):
    """Return the weights of the observations, which are products of both kinds of weights, or None without weights."""
    for name, weights, kind, words in (
        ("fweights", fweights, "iu", "integral"),
        ("aweights", aweights, "fV", "floating point"),
    ):
        if weights is None:
            continue
        require("Tensor", weights, "cov", name)
        array = weights._array
        if array.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {array.ndim} dimensions"
            )
        if array.dtype.kind not in kind:
            raise RuntimeError(
                f"cov(): expected {name} to have {words} dtype but got {name} with {weights.dtype.scalar_type} dtype"
            )
        if array.size != count:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got {array.size} "
                f"!= {count}"
            )
        if count and is_readable(weights) and (read_array(weights) < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        weights = aweights if fweights is None else fweights
    else:
        weights = fweights * aweights
    if weights is not None and is_readable(weights) and not read_array(weights).sum():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    return weights


@public(method=True, numpy_names=True)
def corrcoef(input):
    """The Pearson correlation coefficients of the rows of `input`: covariances divided by both standard deviations.

    >>> import adjoint as torch
    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("corrcoef", input)
    covariance = cov(input)
    if covariance._array.ndim == 0:
        return covariance / covariance
    variances = covariance.diagonal()
    deviations = tensors.sqrt(tensors.real(variances) if variances.is_complex() else variances)
    result = covariance / deviations.view((-1, 1)) / deviations.view((1, -1))
    if result.is_complex():
        return tensors.complex(tensors.real(result).clamp(-1, 1), tensors.imag(result).clamp(-1, 1))
    return result.clamp(-1, 1)


# --- integrals ------------------------------------------------------------------------------------------------


@public()
def trapezoid(y, x=None, *, dx=None, dim=-1, **names):
    """The integral of `y` along `dim` by the trapezoidal rule.

    The samples are at `x`, or at distance `dx` (default 1).

    `x` has one point for each sample, or broadcasts with `y`.

    >>> import adjoint as torch
    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]), dx=2)
    tensor(8.)
    """
    if names:
        return with_numpy_names(trapezoid, names, y, x, dx=dx, **({} if "axis" in names else {"dim": dim}))
    return _trapezoid("trapezoid", y, x, dx, dim)


@public()
def trapz(y, x=None, *, dx=None, dim=-1, **names):
    """The older name of `trapezoid`."""
    if names:
        return with_numpy_names(trapz, names, y, x, dx=dx, **({} if "axis" in names else {"dim": dim}))
    if isinstance(dx, complex):
        raise invalid_arguments("trapz", y, dx)
    return _trapezoid("trapz", y, x, float(dx) if isinstance(dx, bool) else dx, dim)


def _trapezoid(name, y, x, dx, dim):
    dx = _checked_samples(name, y, x, dx)
    size = y._array.shape[wrap_dim(dim, y._array.ndim)] if y._array.ndim else 1
    if size == 0:
        return tensors.zeros_like(tensors.sum(y, dim), dtype=y.dtype)
    if x is None:
        if y._array.ndim == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        ends = tensors.mul_number(select(y, dim, 0) + select(y, dim, -1), 0.5)
        return tensors.mul_number(tensors.sum(y, dim) - ends, dx)
    return tensors.div_number(tensors.sum(_doubled_areas(name, y, x, dim), dim), 2.0)


@public()
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1, **names):
    """The integrals of `y` along `dim` from the first sample to each later sample, by the trapezoidal rule.

    >>> import adjoint as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    if names:
        return with_numpy_names(cumulative_trapezoid, names, y, x, dx=dx, **({} if "axis" in names else {"dim": dim}))
    dx = _checked_samples("cumulative_trapezoid", y, x, dx)
    if y._array.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if x is None:
        return tensors.cumsum(tensors.mul_number(slice(y, dim, 0, -1) + slice(y, dim, 1), dx / 2.0), dim)
    return tensors.div_number(tensors.cumsum(_doubled_areas("cumulative_trapezoid", y, x, dim), dim), 2.0)


def _checked_samples(name, y, x, dx):
    """Check the arguments, and return the distance between samples."""
    if not isinstance(y, Tensor) or (x is not None and (not isinstance(x, Tensor) or dx is not None)):
        raise invalid_arguments(name, *(value for value in (y, x, dx) if value is not None))
    kinds = [value._array.dtype.kind for value in (y, x) if value is not None]
    shown = name if name == "cumulative_trapezoid" else "trapezoid"
    if "b" in kinds:
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{shown}: received a bool input for {which}, but bool is not supported")
    dx = dx.item() if isinstance(dx, Tensor) else 1 if dx is None else dx
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{shown}: Currently, we only support dx as a real number.")
    return dx


def _doubled_areas(name, y, x, dim):
    """Return twice the area of each trapezoid."""
    ndim = y._array.ndim
    dim = wrap_dim(dim, ndim)
    if x._array.ndim == 1:
        if ndim and x._array.shape[0] != y._array.shape[dim]:
            shown = name if name == "cumulative_trapezoid" else "trapezoid"
            raise RuntimeError(f"{shown}: There must be one `x` value for each sample point")
        x = x.view([x._array.shape[0] if d == dim else 1 for d in range(ndim)])
    elif x._array.ndim < ndim:
        x = x.view((1,) * (ndim - x._array.ndim) + x._array.shape)
    steps = slice(x, dim, 1) - slice(x, dim, 0, -1)
    return (slice(y, dim, 0, -1) + slice(y, dim, 1)) * steps


# --- derivatives ----------------------------------------------------------------------------------------------


@public()
def gradient(input=MISSING, *, spacing=None, dim=None, edge_order=1, **names):
    """Estimates of the derivatives along `dim` (one dimension, several, or all by default) by central differences.

    `spacing` is the distance between samples: one number, or a sequence with one number per dimension. `spacing` may
    also be a sequence of tensors of coordinates. At the boundaries the differences are one-sided and have order
    `edge_order` (1 or 2). The formulas are the same as in `numpy.gradient`.

    >>> import adjoint as torch
    >>> torch.gradient(torch.tensor([1.0, 2.0, 4.0, 7.0]))
    (tensor([1.0000, 1.5000, 2.5000, 3.0000]),)
    """
    if names:
        options = {"spacing": spacing, "edge_order": edge_order, **({} if "axis" in names else {"dim": dim})}
        return with_numpy_names(gradient, names, input, **options)
    if input is MISSING:
        raise TypeError('gradient() missing 1 required positional arguments: "input"')
    require("Tensor", input, "gradient", "input", 1)
    if isinstance(spacing, Tensor) and spacing._array.ndim == 0:
        spacing = spacing.item()
    if not (spacing is None or isinstance(spacing, (Number, list, tuple))) or not hasattr(edge_order, "__index__"):
        raise invalid_arguments("gradient", input, spacing, edge_order)
    ndim = input._array.ndim
    dims = [dim] if isinstance(dim, int) else list(range(ndim)) if dim is None else list(dim)
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    _check_spacings(input, spacing, spacings, dim, dims, edge_order)
    wrapped = [wrap_dim(d, ndim) for d in dims]
    if wrapped and not ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if any(input._array.shape[d] <= edge_order for d in wrapped):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(
        tensors.cat((_uneven if isinstance(step, Tensor) else _even)(input, d, step, edge_order), d)
        for d, step in zip(wrapped, spacings, strict=True)
    )


def _check_spacings(input, spacing, spacings, dim, dims, edge_order):
    ndim = input._array.ndim
    if isinstance(spacing, (list, tuple)) and len(spacings) != len(dims):
        if dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
                f"{ndim}', since dim argument was not given, but got a list of length {len(spacings)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
            f"length, but got a spacing argument of length {len(spacings)} and a dim argument of length {len(dims)}."
        )
    if input._array.dtype == numpy.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    for step in spacings:
        if isinstance(step, Tensor) and step.device != input.device:
            raise RuntimeError(
                f"torch.gradient expected each tensor to be on the same device, but got devices {input.device} and {step.device}!"
            )
        if isinstance(step, Tensor) and step._array.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{step._array.ndim} dimensions!"
            )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    wrapped = [wrap_dim(d, ndim) for d in dims]
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")


def _even(input, dim, step, edge_order):
    """Return the derivatives at the first, the inner and the last samples, with spacing `step`."""
    size = input._array.shape[dim]

    def part(start, end):
        return slice(input, dim, start, end)

    def over(difference, number):
        return tensors.div_number(difference, number)

    def times(number, samples):
        return tensors.mul_number(samples, number)

    inner = over(over(part(2, size) - part(0, size - 2), step), 2)
    if edge_order == 1:
        return (
            over(part(1, 2) - part(0, 1), step),
            inner,
            over(part(size - 1, size) - part(size - 2, size - 1), step),
        )
    first = times(-1.5, part(0, 1)) + times(2, part(1, 2)) - times(0.5, part(2, 3))
    last = times(0.5, part(size - 3, size - 2)) - times(2, part(size - 2, size - 1)) + times(1.5, part(size - 1, size))
    return over(first, step), inner, over(last, step)


def _uneven(input, dim, coordinates, edge_order):
    """Return the derivatives at the first, the inner and the last samples, whose positions are `coordinates`."""
    size = input._array.shape[dim]
    steps = slice(coordinates, 0, 1) - slice(coordinates, 0, 0, -1)
    steps = steps.view([-1 if d == dim else 1 for d in range(input._array.ndim)])
    count = steps._array.shape[dim]

    def part(start, end):
        return slice(input, dim, start, end)

    def step(start, end):
        return slice(steps, dim, start, end)

    left, right = step(0, count - 1), step(1, count)
    inner = (
        -right / (left * (left + right)) * part(0, size - 2)
        + (right - left) / (left * right) * part(1, size - 1)
        + left / (right * (left + right)) * part(2, size)
    )
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / step(0, 1)
        return first, inner, (part(size - 1, size) - part(size - 2, size - 1)) / step(count - 1, count)
    left, right = step(0, 1), step(1, 2)
    first = (
        -(2.0 * left + right) / (left * (left + right)) * part(0, 1)
        + (left + right) / (left * right) * part(1, 2)
        + -left / (right * (left + right)) * part(2, 3)
    )
    left, right = step(count - 2, count - 1), step(count - 1, count)
    last = (
        right / (left * (left + right)) * part(size - 3, size - 2)
        + -(right + left) / (left * right) * part(size - 2, size - 1)
        + (2.0 * right + left) / (right * (left + right)) * part(size - 1, size)
    )
    return first, inner, last
