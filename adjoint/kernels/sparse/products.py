"""Matrix products with sparse factors, computed by SciPy's sparse arrays if they support them, otherwise by NumPy."""

from __future__ import annotations

from typing import Any

import numpy

from ..._runtime.first_use import can_import, computed_once, import_late
from ..memory.copying import widen
from ..runtime.costs import PART
from ..runtime.floating import Array, type_name
from ..runtime.positions import as_places
from ..runtime.sparse_array import Compressed, Coordinates, SparseArray, sparse
from .layouts import coalesce, compress, coo, coordinates, layout_name, like, sparse_mask, to_dense

_BY_SCIPY = frozenset("fdFD")


class _Library:
    """SciPy's sparse arrays, if SciPy is installed."""

    @computed_once
    def available(self) -> bool:
        """Return whether SciPy is installed (the extra `scipy`) and can be imported."""
        return can_import("scipy.sparse", {})


_SCIPY = _Library()


def _by_scipy(array: SparseArray) -> Any:
    """Return a sparse matrix as SciPy's."""
    csr_array = import_late("scipy.sparse").csr_array
    parts = compress(array, "sparse_csr").parts
    return csr_array((parts.values, parts.places, parts.starts), shape=array.shape)


def _is_for_scipy(*arrays: Any) -> bool:
    return all(array.dtype.char in _BY_SCIPY for array in arrays) and _SCIPY.available


def check_matrices(self: Any, mat2: Any) -> None:
    """Raise an error unless the arguments are matrices of one dtype that can be multiplied."""
    if self.ndim != 2 or mat2.ndim != 2:
        wrong, which = (self, "self") if self.ndim != 2 else (mat2, "mat2")
        raise RuntimeError(f"mm: expected {which} to be a matrix, but got a {wrong.ndim}-D tensor")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )
    if self.dtype != mat2.dtype:
        raise RuntimeError("expected mat1 and mat2 to have the same dtype")


def mm(self: Any, mat2: Any) -> Any:
    """Return the product of two matrices, which is sparse if both are."""
    check_matrices(self, mat2)
    if isinstance(self, SparseArray) and isinstance(mat2, SparseArray):
        return _sparse_product(self, mat2)
    if isinstance(self, SparseArray):
        return _with_dense(self, mat2)
    return numpy.ascontiguousarray(_with_dense(_transposed(mat2), self.T).T)


def _transposed(array: SparseArray) -> SparseArray:
    from .shapes import t

    return t(array)


def _with_dense(self: SparseArray, mat2: Array) -> Array:
    """Return a sparse matrix times a dense matrix or vector."""
    if _is_for_scipy(self, mat2):
        return numpy.ascontiguousarray(_by_scipy(self) @ mat2)
    parts = compress(self, "sparse_csr").parts
    wide = numpy.float32 if self.dtype.itemsize == 2 and self.dtype.kind in "fV" else self.dtype
    terms = mat2[parts.places].astype(wide) * parts.values.astype(wide).reshape(-1, *(1,) * (mat2.ndim - 1))
    result = numpy.zeros((self.shape[0], *mat2.shape[1:]), wide)
    filled = numpy.flatnonzero(numpy.diff(parts.starts))
    if len(filled):
        result[filled] = numpy.add.reduceat(terms, as_places(parts.starts[filled]), axis=0)
    return result.astype(self.dtype, copy=False)


def _sparse_product(self: SparseArray, mat2: SparseArray) -> SparseArray:
    """Return the product of two sparse matrices, in the layout of the first."""
    if _is_for_scipy(self, mat2):
        product = _by_scipy(self) @ _by_scipy(mat2)
        product.sort_indices()
        rows = numpy.repeat(numpy.arange(self.shape[0]), as_places(numpy.diff(product.indptr)))
        indices = numpy.stack((rows, product.indices)).astype(numpy.int64)
        return like(coo(indices, product.data, (self.shape[0], mat2.shape[1]), True), self)
    left, right = coordinates(compress(self, "sparse_csr")).parts, compress(mat2, "sparse_csr").parts
    rows, inner = left.indices
    counts = as_places(numpy.diff(right.starts)[inner])
    within = numpy.arange(counts.sum()) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    chosen = numpy.repeat(right.starts[:-1][inner], counts) + within
    indices = numpy.stack((numpy.repeat(rows, counts), right.places[chosen]))
    values = numpy.repeat(left.values, counts) * right.values[chosen]
    return like(coalesce(coo(indices, values, (self.shape[0], mat2.shape[1]))), self)


def mv(self: Any, vec: Any) -> Any:
    """Return the product of a sparse matrix and a vector."""
    if self.ndim != 2 or vec.ndim != 1 or self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"mv: size mismatch, got input ({'x'.join(map(str, self.shape))}), vec ({vec.size})")
    return _with_dense(self, to_dense(vec))


def addmv(self: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * self + alpha * (mat @ vec)` for a sparse `mat`."""
    if isinstance(self, SparseArray) or isinstance(vec, SparseArray):
        return NotImplemented
    return _combined(self, mv(mat, vec), beta, alpha)


def _combined(added: Array, product: Array, beta: Any, alpha: Any) -> Array:
    """Return `beta * added + alpha * product` in the dtype of the product. If `beta` is 0, `added` is ignored."""
    product = product if alpha == 1 else product * numpy.asarray(alpha).astype(product.dtype)
    if beta == 0:
        return product
    return (added if beta == 1 else added * numpy.asarray(beta).astype(product.dtype)) + product


def bmm(self: Any, mat2: Any) -> Any:
    """Return the products of two stacks of matrices. The first stack is sparse."""
    if isinstance(mat2, SparseArray):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    parts = self.parts
    if not isinstance(parts, Coordinates):
        return NotImplemented
    count, dense = len(parts.indices), self.ndim - len(parts.indices)
    if dense:
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 0 dense dims, but has {dense}")
    if count != 3:
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 3 sparse dims, but has {count}")
    if mat2.ndim != 3:
        raise RuntimeError(f"bmm_sparse: Tensor 'mat2' must have 3 dims, but has {mat2.ndim}")
    for one, other in ((0, 0), (2, 1)):
        if self.shape[one] != mat2.shape[other]:
            raise RuntimeError(f"bmm_sparse: 'self.size({one})' and 'mat2.size({other})' must match")
    if self.dtype != mat2.dtype:
        names = [type_name(array.dtype) for array in (self, mat2)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    batch, height, inner = self.shape
    numbers, rows, columns = parts.indices
    diagonal = coo(
        numpy.stack((numbers * height + rows, numbers * inner + columns)), parts.values, (batch * height, batch * inner)
    )
    return _with_dense(diagonal, mat2.reshape(batch * inner, mat2.shape[2])).reshape(batch, height, mat2.shape[2])


def addmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * self + alpha * (mat1 @ mat2)`."""
    product = mm(mat1, mat2)
    if not isinstance(self, SparseArray) and isinstance(product, SparseArray) and isinstance(product.parts, Compressed):
        product = to_dense(product)
    if isinstance(product, SparseArray) != isinstance(self, SparseArray):
        names = [layout_name(x.parts.layout) if isinstance(x, SparseArray) else "Strided" for x in (mat1, mat2, self)]
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {names[2]} + {names[0]} @ {names[1]} without MKL"
        )
    if isinstance(product, SparseArray):
        from .arithmetic import add

        scaled = sparse(self.parts.with_values(self.parts.values * beta), self.shape)
        return add(scaled, product, alpha=alpha)
    return _combined(self, product, beta, alpha)


def sampled_addmm(self: SparseArray, mat1: Array, mat2: Array, *, beta: Any = 1, alpha: Any = 1) -> SparseArray:
    """Return `beta * self + alpha * (mat1 @ mat2)` at the coordinates that `self` stores."""
    parts = self.parts
    if parts.layout != "sparse_csr":
        raise RuntimeError(f"sampled_addmm: Expected sparse_csr layout for self but got {layout_name(parts.layout)}")
    if self.dtype.char not in _BY_SCIPY:
        raise RuntimeError(
            "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got "
            f"{type_name(self.dtype)}"
        )
    rows = numpy.repeat(numpy.arange(self.shape[0]), as_places(numpy.diff(parts.starts)))
    terms = numpy.einsum("ij,ji->i", mat1[rows], mat2[:, parts.places])
    return sparse(parts.with_values((beta * parts.values + alpha * terms).astype(self.dtype)), self.shape)


def product_gradient(grad: Any, mat2: Any, mask: Any) -> Any:
    """Return `grad @ mat2.mH` at the coordinates that `mask` stores, once for each."""
    mask = coalesce(mask) if isinstance(mask, SparseArray) else mask
    if isinstance(mask, SparseArray) and not isinstance(grad, SparseArray) and not isinstance(mat2, SparseArray):
        whole = coordinates(mask)
        rows, columns = whole.parts.indices
        values = numpy.einsum("ij,ij->i", widen(grad)[rows], widen(mat2).conj()[columns])
        whole = coo(whole.parts.indices, values.astype(mask.dtype, copy=False), mask.shape, whole.parts.coalesced)
        if mask.parts.layout == "sparse_coo":
            return whole
        return sparse_mask(whole, mask)
    product = mm(grad, _transposed(mat2).conj() if isinstance(mat2, SparseArray) else mat2.conj().T)
    return sparse_mask(product, mask) if isinstance(mask, SparseArray) else to_dense(product)


def row_lengths(self: SparseArray) -> Array:
    """Return a column with the number of stored elements in each row of a matrix with compressed rows."""
    return numpy.diff(self.parts.starts)[:, None]


def extreme_entries(self: SparseArray, mat2: Array, largest: bool) -> Array:
    """Return the index of the largest (or smallest) term of each element of the product. `self` compresses rows.

    The result is the first of equal terms, or the first NaN. For rows without elements, it is arbitrary.
    """
    parts = self.parts
    filled = numpy.flatnonzero(numpy.diff(parts.starts))
    chosen = numpy.zeros((self.shape[0], mat2.shape[1]), numpy.int64)
    starts, lengths = as_places(parts.starts[filled]), as_places(numpy.diff(parts.starts)[filled])
    step = max(1, 16 * PART // max(len(parts.places), 1))
    for start in range(0, mat2.shape[1] if len(filled) else 0, step):
        columns = slice(start, start + step)
        terms = widen(parts.values)[:, None] * widen(mat2[:, columns])[parts.places]
        extremes = (numpy.maximum if largest else numpy.minimum).reduceat(terms, starts, axis=0)
        hit = (terms == numpy.repeat(extremes, lengths, axis=0)) | numpy.isnan(terms)
        numbers = numpy.where(hit, numpy.arange(len(terms))[:, None], len(terms))
        chosen[filled, columns] = numpy.minimum.reduceat(numbers, starts, axis=0)
    return chosen
