"""Determinants, their logarithms and their derivatives, also for singular matrices."""

from __future__ import annotations

from typing import Any

import numpy

from ...codegen.plans import compiled
from ..runtime.costs import SCANNED
from ..runtime.floating import Array, unwarned
from .decompositions import check_matrix, inverse
from .elimination import is_small
from .stacks import by_lapack

_PIVOTS = compiled("linalg.elimination.pivots_of", least=SCANNED)


def _pivots(a: Array) -> Any:
    """Return the pivots of each matrix, and the sign of its row exchanges."""
    return _PIVOTS.run(a.size, a) if is_small(a) else by_lapack("pivots_of", a)


def _sign_and_logarithm(pivots: Array, sign: Array) -> tuple[Array, Array]:
    sizes = numpy.abs(pivots)
    return (pivots / sizes).prod(1) * sign, numpy.log(sizes.astype(numpy.float64), order="C").sum(1)


def det(self: Array) -> Array:
    """Return the determinant."""
    check_matrix("det", self, square=True)
    found = _pivots(self)
    if found is not NotImplemented:
        with unwarned():
            product = found[0].prod(1) * found[1]
            if not product.all() or not numpy.isfinite(product).all():  # a sum of logarithms may be finite
                sign, log = _sign_and_logarithm(*found)
                product = sign * numpy.exp(log)
            return numpy.asarray(product, self.dtype).reshape(self.shape[:-2])
    return numpy.asarray(numpy.linalg.det(self), dtype=self.dtype)


def slogdet(self: Array) -> tuple[Array, Array]:
    """Return the sign (or phase) of the determinant and the logarithm of its absolute value."""
    check_matrix("slogdet", self, square=True)
    found = _pivots(self)
    if found is not NotImplemented:
        sign, log = _sign_and_logarithm(*found)
        return sign.astype(self.dtype).reshape(self.shape[:-2]), log.astype(self.real.dtype).reshape(self.shape[:-2])
    sign, log = numpy.linalg.slogdet(self)
    return numpy.asarray(sign), numpy.asarray(log)


def cofactors(self: Array) -> Array:
    """Return the derivative of the determinant by each element, computed from singular values."""
    finite = numpy.isfinite(self).all((-2, -1), keepdims=True)
    u, s, vh = numpy.linalg.svd(numpy.where(finite, self, 0))
    others = numpy.ones_like(s)
    for index in range(s.shape[-1]):
        others[..., index] = numpy.prod(numpy.delete(s, index, axis=-1), axis=-1)
    phase = numpy.linalg.det(u) * numpy.linalg.det(vh)
    return numpy.where(finite, phase[..., None, None] * ((u.conj() * others[..., None, :]) @ vh.conj()), numpy.nan)


_REGULAR = 0.01
"""The largest condition number, times the precision, at which the inverse is as accurate as the singular values."""


def _inverse_of_regular(self: Array) -> Array | None:
    """Return the inverses of matrices, or None if one of them is nearly singular or has elements that are not finite."""
    try:
        found = inverse(self)
    except numpy.linalg.LinAlgError:
        return None
    condition = numpy.linalg.norm(self, 1, (-2, -1)) * numpy.linalg.norm(found, 1, (-2, -1))
    return found if (condition < _REGULAR / numpy.finfo(self.dtype).eps).all() else None


def det_gradient(grad: Array, A: Array, result: Array) -> Array:
    """Return `grad` times the conjugate of the derivative of the determinant `result`, also for singular matrices."""
    found = _inverse_of_regular(A) if A.size else None
    if found is not None:
        return grad.reshape((*grad.shape, 1, 1)) * (result.reshape((*grad.shape, 1, 1)) * found.mT).conj()
    return grad.reshape((*grad.shape, 1, 1)) * cofactors(A).conj()


def det_frame(self: Array) -> tuple[Array, Array, Array, Array]:
    """Return bases in which each matrix is diagonal, the mask of its regular singular values, and the number of the other values.

    `left @ self @ right` has the determinant of `self`. Each number becomes a row of zeros with a one at its position.
    The rows are as long as the largest number requires, so their length shows whether all matrices are regular. If all
    matrices are regular, the bases are empty.
    """
    finite = numpy.asarray(numpy.isfinite(self).all((-2, -1), keepdims=True))
    given = numpy.where(finite, self, 0)
    values = numpy.linalg.svd(given, compute_uv=False)
    kept = (values > numpy.finfo(values.dtype).eps ** (2 / 3) * values[..., :1]) | ~finite[..., 0]
    count = kept.shape[-1] - kept.sum(-1)
    order = (count[..., None] == numpy.arange(count.max(initial=0) + 1)).astype(self.dtype)
    if order.shape[-1] == 1:
        return self[..., :0, :0], self[..., :0, :0], kept.astype(self.dtype), order
    u, _, vh = numpy.linalg.svd(given)
    left = u.mT.conj()
    left[..., 0, :] *= (numpy.linalg.det(u) * numpy.linalg.det(vh))[..., None]
    return left, vh.mT.conj(), kept.astype(self.dtype), order
