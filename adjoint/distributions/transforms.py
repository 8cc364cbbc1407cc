"""Functions with an inverse and the log-determinant of their Jacobian, for transformed distributions.

>>> import adjoint as torch
>>> transform = ComposeTransform([AffineTransform(1.0, 2.0), ExpTransform()])
>>> x = torch.tensor([0.0, 1.0])
>>> transform(x)
tensor([ 2.7183, 20.0855])
>>> transform.log_abs_det_jacobian(x, transform(x))
tensor([1.6931, 3.6931])
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import adjoint as torch
from adjoint import Size, Tensor
from adjoint.nn import functional as F

from . import constraints
from .matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from .transform import Transform, _InverseTransform, _OfNumbers  # noqa: F401  PyTorch has these names here
from .utils import _sum_rightmost, formula, lazy_property

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


# --- transforms of transforms ---------------------------------------------------------------------------------


class ComposeTransform(Transform):
    """The composition of transforms."""

    _given_names = ("parts",)

    def __init__(self, parts: Iterable[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_event_dim(domain, event_dim)

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_event_dim(codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def __call__(self, x: Any) -> Any:
        """Return the value at `x`."""
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return torch.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        event_dim = self.domain.event_dim
        terms = []
        for part, before, after in zip(self.parts, points, points[1:], strict=False):
            terms.append(_sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return sum(terms[1:], terms[0])

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {parts}\n)"


def _with_event_dim(constraint: Any, event_dim: int) -> Any:
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


identity_transform: Transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event. `log_abs_det_jacobian` sums over these dimensions."""

    _given_names = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = formula(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = formula(lambda self: self.base_transform.bijective)
    sign = formula(lambda self: self.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Reshapes an event from `in_shape` to `out_shape`."""

    bijective = True
    _given_names = ("in_shape", "out_shape")

    def __init__(self, in_shape: Iterable[int], out_shape: Iterable[int], cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    domain = formula(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = formula(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _exchanged(shape, self.out_shape, self.in_shape)


def _exchanged(shape: Any, tail: Size, other: Size) -> Any:
    if len(shape) < len(tail):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(tail)
    if tuple(shape[cut:]) != tuple(tail):
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {tail}")
    return shape[:cut] + other


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution. It maps samples to uniform numbers in [0, 1]."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1
    _given_names = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = formula(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


# --- transforms of numbers ------------------------------------------------------------------------------------


class ExpTransform(_OfNumbers):
    """`y = exp(x)`."""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """Return the sigmoid, clamped so that rounding cannot give 0 or 1. Libraries use it too."""
    limits = torch.finfo(x.dtype)
    return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_OfNumbers):
    """`y = 1 / (1 + exp(-x))`, clamped to values with a finite inverse."""

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = torch.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_OfNumbers):
    """`y = log(1 + exp(x))`."""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_OfNumbers):
    """`y = tanh(x)`, which is better conditioned than a sigmoid transform scaled to (-1, 1)."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))  # 1 - tanh² = 4 / (e^x + e^-x)²


class AbsTransform(_OfNumbers):
    """`y = |x|`. The inverse accepts nonnegative numbers."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """`y = x ** exponent` for positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _given_names = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else torch.tensor(exponent)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = None

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return torch.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """`y = loc + scale * x` for numbers or, depending on `event_dim`, for vectors or matrices."""

    bijective = True
    _given_names = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    event_dim = formula(lambda self: self._event_dim)
    domain = formula(lambda self: _with_event_dim(constraints.real, self._event_dim))

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and bool(torch.as_tensor(self.loc == other.loc).all())
            and bool(torch.as_tensor(self.scale == other.scale).all())
        )

    __hash__ = None

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log()
        else:
            result = torch.full_like(x, math.log(abs(self.scale)))
        if self._event_dim:
            result = result.expand(torch.broadcast_shapes(result.shape, x.shape[x.dim() - self._event_dim :]))
            result = _sum_rightmost(result, self._event_dim)
        return result.expand(x.shape[: x.dim() - self._event_dim])

    def forward_shape(self, shape: Any) -> Any:
        shapes = [each.shape for each in (self.loc, self.scale) if isinstance(each, Tensor)]
        return torch.broadcast_shapes(shape, *shapes)

    inverse_shape = forward_shape


# --- transforms of vectors ------------------------------------------------------------------------------------


# --- transforms of the parts of a tensor ----------------------------------------------------------------------


class _Joined(Transform):
    """Transforms of the parts of a tensor along a dimension."""

    _join: Any
    _parts: Any

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    bijective = formula(lambda self: all(t.bijective for t in self.transforms))

    def _check(self, x: Tensor, size: int, meaning: str) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        if x.size(self.dim) != size:
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal {meaning} {size}")

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)], self.dim)


class CatTransform(_Joined):
    """Transforms `tseq` of parts with `lengths` along `dim`.

    >>> import adjoint as torch
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(torch.zeros(3))
    tensor([1., 0., 0.])
    """

    _join = staticmethod(torch.cat)

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    def _arguments(self) -> dict[str, Any]:
        return {"tseq": self.transforms, "dim": self.dim, "lengths": self.lengths}

    event_dim = formula(lambda self: max(t.event_dim for t in self.transforms))
    length = formula(lambda self: sum(self.lengths), "The size of the dimension that is divided into parts.")

    def _parts(self, x: Tensor) -> tuple[Tensor, ...]:
        self._check(x, self.length, "length")
        return x.split(self.lengths, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        logarithms = []
        for transform, x_part, y_part in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            logarithm = transform.log_abs_det_jacobian(x_part, y_part)
            logarithms.append(_sum_rightmost(logarithm, self.event_dim - transform.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return torch.cat(logarithms, dim) if dim < 0 else sum(logarithms[1:], logarithms[0])

    domain = formula(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = formula(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))


class StackTransform(_Joined):
    """Transforms `tseq` of the slices along `dim`."""

    _join = staticmethod(torch.stack)

    def _arguments(self) -> dict[str, Any]:
        return {"tseq": self.transforms, "dim": self.dim}

    def _parts(self, x: Tensor) -> tuple[Tensor, ...]:
        self._check(x, len(self.transforms), "len(transforms)")
        return x.unbind(self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return torch.stack([t.log_abs_det_jacobian(x_part, y_part) for t, x_part, y_part in parts], self.dim)

    domain = formula(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = formula(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))
