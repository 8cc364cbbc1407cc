"""Products of Householder reflections: QR factorizations in LAPACK's format, and products of their factors with matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy
from numpy.linalg import _umath_linalg

from ..runtime.floating import Array, is_inexact, refuse, type_name
from ..shape.joining import tril, tril_, triu
from .elimination import column_major, substituted
from .stacks import by_lapack, of_stack


def orthogonal(self: Array, mode: str) -> Any:
    """Compute `numpy.linalg.qr`, by LAPACK or by NumPy."""
    found = by_lapack("qr", self, mode)
    return of_stack(lambda part: factor_orthogonal(part, mode), self) if found is NotImplemented else found


def factor_orthogonal(a: Array, mode: str) -> Any:
    """Compute `numpy.linalg.qr` in double precision by NumPy's loops. The columns of both factors are contiguous."""
    rows, columns = a.shape[-2:]
    kind = "D" if a.dtype.kind == "c" else "d"
    packed = numpy.array(a, kind)  # the loop replaces it by R and the reflections
    scales = _loop(rows <= columns)(packed, signature=f"{kind}->{kind}")
    if mode == "raw":
        return packed.mT.astype(a.dtype, copy=False), scales.astype(a.dtype, copy=False)
    whole = mode == "complete" and rows > columns
    r = numpy.array((packed if whole else packed[..., : min(rows, columns), :]).mT, a.dtype, order="C")
    tril_(r, 0)
    if mode == "r":
        return r.mT
    product = _umath_linalg.qr_complete if whole else _umath_linalg.qr_reduced
    q = product(packed, scales, signature=f"{kind}{kind}->{kind}")
    return numpy.ascontiguousarray(q.mT, a.dtype).mT, r.mT


@functools.cache
def _loop(wide: bool) -> Any:
    """Return NumPy's loop for QR factorizations. Before NumPy 2.3, matrices with more rows than columns had their own."""
    found = getattr(_umath_linalg, "qr_r_raw", None)
    return found or getattr(_umath_linalg, "qr_r_raw_m" if wide else "qr_r_raw_n")


def geqrf(self: Array) -> tuple[Array, Array]:
    """Return R in the upper triangle with the reflections below it, and their factors."""
    if self.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    _check_dtype("geqrf", self)
    if not self.size:
        return column_major(self.copy()), numpy.zeros((*self.shape[:-2], min(self.shape[-2:])), self.dtype)
    transposed, factors = orthogonal(self, "raw")
    return numpy.ascontiguousarray(transposed).mT, numpy.asarray(factors)


def householder_product(self: Array, tau: Array) -> Array:
    """Return the first columns of the product of reflections `1 - tau * v @ v.mH`, with v in `self` below the diagonal."""
    name = "torch.linalg.householder_product"
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if self.shape[-2] < self.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if self.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_factors(name, self, tau)
    if self.dtype != tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {type_name(tau.dtype)} does not match input dtype {type_name(self.dtype)}"
        )
    _check_dtype("orgqr", self)
    columns = self.shape[-1]
    vectors, coupling = _compact(self, tau)
    result = -(vectors @ (coupling @ vectors[..., :columns, :].mT.conj()))
    places = numpy.arange(columns)
    result[..., places, places] += 1
    return column_major(result)


def ormqr(self: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    """Return the product of `other` and Q, or its adjoint if `transpose`. Q is the product of all reflections."""
    _check_product(self, tau, other, left)
    vectors, coupling = _compact(self, tau)
    if transpose:
        coupling = coupling.mT.conj()
    turned = vectors.mT.conj()
    if left:
        return column_major(other - vectors @ (coupling @ (turned @ other)))
    return column_major(other - ((other @ vectors) @ coupling) @ turned)


def _compact(self: Array, tau: Array) -> tuple[Array, Array]:
    """Return V and T, where `1 - V @ T @ V.mH` is the product of all reflections.

    Puglisi (1992), "Modification of the Householder method based on the compact WY representation": T is the inverse of
    a triangular matrix. Here, the equation is multiplied by `tau`, which may be zero.
    """
    count = tau.shape[-1]
    vectors = tril(self[..., :count], -1)
    places = numpy.arange(min(count, self.shape[-2]))
    vectors[..., places, places] = 1
    scaled = numpy.zeros((*tau.shape, count), self.dtype)
    scaled[..., numpy.arange(count), numpy.arange(count)] = tau
    products = triu(vectors.mT.conj() @ vectors, 1)
    return vectors, substituted(tau[..., None] * products, scaled, upper=True, unitriangular=True)


def _check_dtype(name: str, array: Array) -> None:
    if not is_inexact(array.dtype) or array.dtype.itemsize == 2:
        raise refuse(f"{name}_cpu", array)


def _check_factors(name: str, self: Array, tau: Array) -> None:
    if self.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is "
            f"equal to {self.ndim}"
        )
    if tau.shape[:-1] != self.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )


def _check_product(self: Array, tau: Array, other: Array, left: bool) -> None:
    name, side = "torch.ormqr", -2 if left else -1
    for word, array in (("input", self), ("other", other)):
        if array.ndim < 2:
            raise RuntimeError(f"{name}: {word} must have at least 2 dimensions.")
    if other.shape[side] != self.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] != min(other.shape[side], self.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if self.ndim - tau.ndim != 1:
        _check_factors(name, self, tau)
    if self.ndim != other.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim equal to {other.ndim} "
            f"and input.ndim is equal to {self.ndim}"
        )
    _check_factors(name, self, tau)
    if other.shape[:-2] != self.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {list(other.shape[:-2])}"
        )
    for word, array, space in (("tau", tau, " "), ("other", other, "")):
        if array.dtype != self.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {word} to have the same dtype, but input has dtype{space}{type_name(self.dtype)} "
                f"and {word} has dtype {type_name(array.dtype)}"
            )
    _check_dtype("ormqr", self)
