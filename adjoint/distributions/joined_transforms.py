"""Transforms of parts of a tensor, concatenated or stacked along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .transform import Transform
from .utils import _sum_rightmost, formula

__all__ = ["CatTransform", "StackTransform"]


class _Joined(Transform):
    """Transforms of the parts of a tensor along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    bijective = formula(lambda self: all(t.bijective for t in self.transforms))

    def _checked_dim(self, x: Tensor) -> int:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        return self.dim


class CatTransform(_Joined):
    """Transforms `tseq` of parts with `lengths` along `dim`.

    >>> import adjoint as torch
    >>> from adjoint.distributions import ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(torch.zeros(3))
    tensor([1., 0., 0.])
    """

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
        dim = self._checked_dim(x)
        if x.size(dim) != self.length:
            raise AssertionError(f"x.size({dim}) = {x.size(dim)} must equal length {self.length}")
        return x.split(self.lengths, dim)

    def _call(self, x: Tensor) -> Tensor:
        return torch.cat([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)], self.dim)

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

    def _arguments(self) -> dict[str, Any]:
        return {"tseq": self.transforms, "dim": self.dim}

    def _slices(self, x: Tensor) -> tuple[Tensor, ...]:
        dim = self._checked_dim(x)
        count = len(self.transforms)
        if x.size(dim) != count:
            raise AssertionError(f"x.size({dim}) = {x.size(dim)} must equal len(transforms) {count}")
        return x.unbind(dim)

    def _call(self, x: Tensor) -> Tensor:
        return torch.stack([t(part) for t, part in zip(self.transforms, self._slices(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.stack([t.inv(part) for t, part in zip(self.transforms, self._slices(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return torch.stack([t.log_abs_det_jacobian(x_part, y_part) for t, x_part, y_part in slices], self.dim)

    domain = formula(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = formula(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))
