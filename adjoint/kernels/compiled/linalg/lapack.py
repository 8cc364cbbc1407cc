"""LAPACK of the OpenBLAS that NumPy has loaded, called in the dtype of the matrices and on memory of this module.

NumPy computes most of these functions in double precision and on copies. Matrices are column-major for LAPACK, so they
are the rows of a transposed stack. All functions return NotImplemented for dtypes that LAPACK does not support, and for
small matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...._runtime.platform import ctypes
from ....codegen.llvm.language import CompilationError, address, i64
from ....codegen.plans import Plans
from ...linalg.stacks import shared
from .blas import BLAS

Array = numpy.ndarray[Any, Any]

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def _call(name: str, matrix: Array, *arguments: Any) -> int:
    """Call a function for the dtype of `matrix`. Return its last argument, the position at which it has failed."""
    size = ctypes.c_int64 if BLAS.size_type is i64 else ctypes.c_int32
    try:
        function = BLAS.function(f"{_LETTERS[matrix.dtype.char]}{name}_")
    except AttributeError as error:
        raise CompilationError(f"NumPy's OpenBLAS has no {name}") from error
    info = size()
    passed = [
        argument
        if isinstance(argument, bytes)
        else ctypes.c_void_p(address(argument))
        if isinstance(argument, numpy.ndarray)
        else ctypes.byref(size(argument))
        for argument in arguments
    ]
    # Fortran expects the lengths of strings after all arguments.
    function(
        *passed, ctypes.byref(info), *(ctypes.c_size_t(1) for argument in arguments if isinstance(argument, bytes))
    )
    return info.value


_WORK: Plans[int] = Plans()
"""The number of elements that functions require as scratch memory, by their names, dtypes, sizes and options."""


def _call_with_work(name: str, matrix: Array, *arguments: Any, more: tuple[Array, ...] = ()) -> int:
    """Call a function with the scratch memory that it requires and with `more` memory."""
    key = name, matrix.dtype.char, *(argument for argument in arguments if not isinstance(argument, numpy.ndarray))
    count = _WORK.get(key)
    if count is None:
        asked = numpy.empty(1, matrix.dtype)
        _call(name, matrix, *arguments, asked, -1, *more)
        count = _WORK.keep(key, math.ceil(asked.real[0] * (1 + 2**-22)))  # single precision rounds it
    return _call(name, matrix, *arguments, numpy.empty(count, matrix.dtype), count, *more)


def _each(function: Callable[[int], int], stack: Array) -> Array:
    """Return the number that LAPACK returns for each matrix of a stack."""
    info = numpy.zeros(len(stack), numpy.int64)

    def work(start: int, stop: int) -> None:
        for place in range(start, stop):
            info[place] = function(place)

    shared(work, stack)
    return info


def _turned(a: Array, *batch: int) -> Array:
    """Return a transposed copy of the matrices, broadcast to `batch`, because LAPACK's are column-major."""
    turned = a.mT
    if batch:
        turned = numpy.broadcast_to(turned, (*batch, *turned.shape[-2:]))
    return numpy.array(turned, order="C").reshape(-1, *turned.shape[-2:])


def _size_of_pivots() -> Any:
    return numpy.int64 if BLAS.size_type is i64 else numpy.int32


def factored(a: Array) -> tuple[Array, Array, Array]:
    """Return both factors in a transposed copy, the exchanged rows from 1 on, and each matrix's first zero pivot, or 0."""
    work = _turned(a)
    columns, rows = work.shape[1:]
    pivots = numpy.empty((len(work), min(rows, columns)), _size_of_pivots())
    info = _each(lambda i: _call("getrf", work, rows, columns, work[i], rows, pivots[i]), work)
    return work, pivots, info


def inverse(a: Array) -> Any:
    """Return the inverse."""
    work, pivots, info = factored(a.mT)
    if info.any():
        raise numpy.linalg.LinAlgError("Singular matrix")
    size = a.shape[-1]
    _each(lambda i: _call_with_work("getri", work, size, work[i], size, pivots[i]), work)
    return work.reshape(a.shape)


def solve(a: Array, b: Array) -> Any:
    """Return X with `a @ X = b`."""
    if not a.size or not b.size or a.dtype != b.dtype:
        return NotImplemented
    batch = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    work, result = _turned(a, *batch), _turned(b, *batch)
    size, columns = a.shape[-1], b.shape[-1]
    pivots = numpy.empty((len(work), size), _size_of_pivots())
    info = _each(lambda i: _call("gesv", work, size, columns, work[i], size, pivots[i], result[i], size), work)
    if info.any():
        raise numpy.linalg.LinAlgError("Singular matrix")
    return result.reshape(*batch, columns, size).mT


def pivots_of(a: Array) -> Any:
    """Compute `elimination.pivots_of` in double precision."""
    if not a.size:
        return NotImplemented
    work, pivots, _ = factored(a.mT)
    odd = numpy.count_nonzero(pivots != numpy.arange(1, a.shape[-1] + 1), 1) & 1
    diagonal = work.diagonal(0, 1, 2)
    if not diagonal.all() or not numpy.isfinite(diagonal).all():
        return NotImplemented
    wide = numpy.complex128 if a.dtype.kind == "c" else numpy.float64
    return diagonal.astype(wide), 1.0 - 2.0 * odd


def qr(a: Array, mode: str) -> Any:
    """Compute `numpy.linalg.qr` with results in column-major order."""
    work, batch = _turned(a), a.shape[:-2]
    columns, rows = work.shape[1:]
    least = min(rows, columns)
    factors = numpy.empty((len(work), least), a.dtype)
    _each(lambda i: _call_with_work("geqrf", work, rows, columns, work[i], rows, factors[i]), work)
    if mode == "raw":
        return work.reshape(*batch, columns, rows), factors.reshape(*batch, least)
    kept = rows if mode == "complete" else least
    r = numpy.tril(work[..., :kept]).reshape(*batch, columns, kept).mT
    if mode == "r":
        return r
    if kept > columns:
        q = numpy.zeros((len(work), kept, rows), a.dtype)
        q[:, :columns] = work
    else:
        q = work[:, :kept]
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    _each(lambda i: _call_with_work(name, q, rows, kept, least, q[i], rows, factors[i]), q)
    return q.reshape(*batch, kept, rows).mT, r


def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Compute `numpy.linalg.svd` with results in column-major order."""
    work, batch = _turned(a), a.shape[:-2]
    columns, rows = work.shape[1:]
    least, most = min(rows, columns), max(rows, columns)
    values = numpy.empty((len(work), least), a.real.dtype)
    kept = ((rows, columns) if full_matrices else (least, least)) if compute_uv else (0, 0)
    u, v = numpy.empty((len(work), kept[0], rows), a.dtype), numpy.empty((len(work), columns, kept[1]), a.dtype)
    job = (b"A" if full_matrices else b"S") if compute_uv else b"N"
    reals = least * max(5 * least + 7, 2 * most + 2 * least + 1) if compute_uv else 7 * least

    def decompose(i: int) -> int:
        more: tuple[Array, ...] = (numpy.empty(8 * least, _size_of_pivots()),)
        if a.dtype.kind == "c":
            more = (numpy.empty(reals, a.real.dtype), *more)
        shapes = job, rows, columns, work[i], rows, values[i], u[i], rows, v[i], max(kept[1], 1)
        return _call_with_work("gesdd", work, *shapes, more=more)

    if _each(decompose, work).any():
        raise numpy.linalg.LinAlgError("SVD did not converge")
    values = values.reshape(*batch, least)
    if not compute_uv:
        return values
    return u.reshape(*batch, *u.shape[1:]).mT, values, v.reshape(*batch, *v.shape[1:]).mT


def eigh(a: Array, triangle: str, compute_v: bool) -> Any:
    """Return the eigenvalues of Hermitian matrices, and the eigenvectors in column-major order (or an undefined array)."""
    work, size, batch = _turned(a), a.shape[-1], a.shape[:-2]
    values = numpy.empty((len(work), size), a.real.dtype)
    reals = 1 + 5 * size + 2 * size**2 if compute_v else size
    integers = 3 + 5 * size if compute_v else 1

    def decompose(i: int) -> int:
        more: tuple[Any, ...] = (numpy.empty(integers, _size_of_pivots()), integers)
        if a.dtype.kind == "c":
            more = (numpy.empty(reals, a.real.dtype), reals, *more)
        job = b"V" if compute_v else b"N"
        name = "heevd" if a.dtype.kind == "c" else "syevd"
        return _call_with_work(name, work, job, triangle.encode(), size, work[i], size, values[i], more=more)

    if _each(decompose, work).any():
        raise numpy.linalg.LinAlgError("Eigenvalues did not converge")
    return values.reshape(*batch, size), work.reshape(a.shape).mT


def cholesky_inverse(factor: Array, upper: bool) -> Any:
    """Return the inverse of `L @ L.mH` in column-major order."""
    work, size = _turned(factor), factor.shape[-1]
    _each(lambda i: _call("potri", work, b"U" if upper else b"L", size, work[i], size), work)
    half = numpy.tril if upper else numpy.triu  # rows that LAPACK interprets as columns
    for matrix in work:
        matrix[...] = half(matrix)
        matrix += half(matrix, -1 if upper else 1).T.conj()
    return work.reshape(factor.shape).mT


def least_squares(a: Array, b: Array, tolerance: float, driver: str) -> Any:
    """Compute `decompositions._without_lapack` with a driver of LAPACK."""
    if not a.size or not b.size or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return NotImplemented
    work, batch, (rows, columns), sides = _turned(a), a.shape[:-2], a.shape[-2:], b.shape[-1]
    least, most = min(rows, columns), max(rows, columns)
    result = numpy.zeros((len(work), sides, most), a.dtype)
    result[..., :rows] = b.mT.reshape(-1, sides, rows)
    limit, ranks = numpy.array(tolerance, a.real.dtype), numpy.zeros((len(work), 1), _size_of_pivots())
    values = numpy.empty((len(work), least), a.real.dtype)
    is_complex = a.dtype.kind == "c"

    def decompose(i: int) -> int:
        given = rows, columns, sides, work[i], rows, result[i], most
        if driver == "gels":
            return _call_with_work("gels", work, b"N", *given)
        if driver == "gelsy":
            free = numpy.zeros(columns, _size_of_pivots())
            reals = (numpy.empty(2 * columns, a.real.dtype),) if is_complex else ()
            return _call_with_work("gelsy", work, *given, free, limit, ranks[i], more=reals)
        more: tuple[Array, ...] = ()
        if driver == "gelsd":
            levels = max(0, int(math.log2(max(least, 1) / 26)) + 1)
            more = (numpy.empty(3 * least * levels + 11 * least + 1, _size_of_pivots()),)
            if is_complex:
                size = (
                    10 * most
                    + 2 * most * 25
                    + 8 * most * levels
                    + 3 * 25 * sides
                    + max(26**2, most * (1 + sides) + 2 * sides)
                )
                more = (numpy.empty(size, a.real.dtype), *more)
        elif is_complex:
            more = (numpy.empty(5 * least, a.real.dtype),)
        return _call_with_work(driver, work, *given, values[i], limit, ranks[i], more=more)

    if _each(decompose, work).any():
        return NotImplemented
    result = result.reshape(*batch, sides, most)
    return result, result[..., columns:rows], ranks.astype(numpy.int64).reshape(batch), values.reshape(*batch, least)


def substituted(a: Array, b: Array, upper: bool, unitriangular: bool) -> Any:
    """Return X with `a @ X = b` for triangular matrices."""
    if not a.size or not b.size or a.dtype != b.dtype:
        return NotImplemented
    batch = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, columns = b.shape[-2:]
    result = numpy.array(numpy.broadcast_to(b, (*batch, rows, columns)), order="C").reshape(-1, rows, columns)
    by_columns = a.strides[-2] == a.itemsize and a.strides[-1] >= rows * a.itemsize
    turned = a.mT if by_columns else a
    if turned.strides[-1] != a.itemsize or turned.strides[-2] < rows * a.itemsize:
        turned = numpy.ascontiguousarray(turned)
    matrices = numpy.broadcast_to(turned, (*batch, rows, rows)).reshape(-1, rows, rows)
    size = ctypes.c_int64 if BLAS.size_type is i64 else ctypes.c_int32
    function = BLAS.function(f"cblas_{_LETTERS[a.dtype.char]}trsm")
    one: Any = {"f": ctypes.c_float(1), "d": ctypes.c_double(1)}.get(a.dtype.char)
    unit = numpy.ones(1, a.dtype)
    if one is None:
        one = ctypes.c_void_p(address(unit))
    step = size(matrices.strides[-2] // a.itemsize)
    options = 101, 141, 121 if upper != by_columns else 122, 112 if by_columns else 111, 132 if unitriangular else 131

    def solve(i: int) -> int:
        places = ctypes.c_void_p(address(matrices[i])), step, ctypes.c_void_p(address(result[i])), size(columns)
        function(*options, size(rows), size(columns), one, *places)
        return 0

    _each(solve, result)
    return result.reshape(*batch, rows, columns)
