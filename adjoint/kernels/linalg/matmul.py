"""Products of matrices and vectors, by BLAS if NumPy supports it for the type."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import asarray

from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import of_any_size
from ...codegen.plans import compiled
from ...codegen.pointwise import pointwise
from ...dtypes import from_numpy
from ..memory.copying import convert, widen
from ..runtime.costs import LARGE, MOVED, NARROW, ON_ONE_THREAD, PART
from ..runtime.floating import FLOAT32, FLOAT64, HALVES, Array, c_name, type_name
from ..runtime.layout import fits, laid_out
from ..runtime.scalar import scalar_array
from ..runtime.shapes import broadcast_shapes, can_expand, normalize_dim, require_dims
from ..shape.view import expand

_BLAS = "fdFD"


def product(a: Array, b: Array) -> Array:
    """Return `a @ b` of equal types. Half types are multiplied in float32, and bool is rejected."""
    kind = a.dtype
    if kind.kind in "iu" and a.size * b.shape[-1] > ON_ONE_THREAD and _is_exact_in_float64(a, b):
        return _in_blocks(a, b, lambda block, _: block.astype(numpy.int64).astype(kind, copy=False), FLOAT64)
    if kind.char in _BLAS or kind.kind in "iu":
        return a.dot(b) if a.ndim <= 2 and b.ndim <= 2 else numpy.matmul(a, b)
    return _in_blocks(a, b, lambda block, _: convert(block, kind))


_LONGEST = 1 << 10
"""The maximum number of rows or columns of a block."""


def _in_blocks(a: Array, b: Array, finish: Callable[[Array, Any], Array], kind: Any = FLOAT32) -> Array:
    """Return `a @ b`, computed in `kind`. `finish` returns a block of the result from the block of the product and its index.

    Large arrays are converted block by block. Larger results have larger blocks, which are converted less often.
    """
    if max(a.size, b.size, a.size // max(a.shape[-1], 1) * b.shape[-1]) <= PART:
        return finish(_product_in(kind, a, b), ...)
    if a.ndim == 1 == b.ndim:
        return asarray(_in_blocks(a[None], b, finish, kind)[0])
    if a.ndim == 2 == b.ndim + 1:
        return _in_blocks(a, b[:, None], lambda block, part: finish(block[:, 0], part[:1])[:, None], kind)[:, 0]
    *stack, rows, depth = a.shape
    if a.ndim not in (2, 3) or [*b.shape[:-1]] != [*stack, depth]:
        return finish(_product_in(kind, a, b), ...)
    columns, count = b.shape[-1], math.prod(stack)
    size = max(PART, count * rows * columns // 16)
    deep = min(depth, _LONGEST)
    across = min(columns, 2 * size // deep, _LONGEST)
    down = min(rows, size // max(deep, across))
    several = max(size // max(down * deep, deep * across, down * across), 1)
    result = numpy.empty((*stack, rows, columns), a.dtype)
    for some, right, below in itertools.product(_parts(count, several), _parts(columns, across), _parts(rows, down)):
        lead = (some,) if stack else ()
        block: Any = None
        for inner in _parts(depth, deep):
            more = _product_in(kind, a[(*lead, below, inner)], b[(*lead, inner, right)])
            block = more if block is None else numpy.add(block, more, block)
        result[(*lead, below, right)] = finish(block, (*lead, below, right))
    return result


def _product_in(kind: Any, a: Array, b: Array) -> Array:
    """Return `a @ b` in float32, or in another `kind`."""
    return asarray(wide_product(a, b) if kind is FLOAT32 else wide_product(convert(a, kind), convert(b, kind)))


def _parts(size: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def _is_exact_in_float64(a: Array, b: Array) -> bool:
    """Return whether float64 represents all sums in a product of integers exactly."""
    largest = [max(int(array.max()), -int(array.min())) for array in (a, b) if array.size]
    return len(largest) == 2 and largest[0] * largest[1] * a.shape[-1] < 1 << 53


def wide_product(a: Array, b: Array) -> Array:
    """Return `product`, except that half types give float32, which the caller must round."""
    if a.dtype.kind == "b" and ((a.size and b.size) or b.ndim == 1 == a.ndim):
        name = "dot" if b.ndim == 1 == a.ndim else "addmm_impl_cpu_" if a.ndim < 3 else "bmm"
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    if a.dtype in HALVES:
        found = _product_of_halves(a, b)
        if found is not NotImplemented:
            return asarray(found)
        a, b = widen(a), widen(b)
    if a.dtype is b.dtype and a.dtype.char in "fd":
        if a.ndim == 2 == b.ndim and a.shape[1] == b.shape[0]:
            result = shared_product(a, b)
            return a.dot(b) if result is NotImplemented else asarray(result)
        if a.ndim == 3 == b.ndim and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1]:
            return product_of_stacks(a, b)
    return numpy.matmul(a, b)


def _product_of_halves(a: Array, b: Array) -> Any:
    """Return `a @ b` in float32 if the processor multiplies half types."""
    if a.dtype is not b.dtype or a.ndim != b.ndim or a.ndim > 3 or a.shape[:-2] + a.shape[-1:] != b.shape[:-1]:
        return NotImplemented
    return _PRODUCT.run(a.size * b.shape[-1], a, b) if a.ndim > 1 else NotImplemented


def mm(self: Array, mat2: Array, out: Array | None = None) -> Array:
    """Return the product of two matrices."""
    kind = self.dtype
    if kind is mat2.dtype and kind.char in _BLAS and self.ndim == 2 == mat2.ndim:
        if self.size * mat2.shape[1] > LARGE or LOOPS.every_size:
            result = shared_product(self, mat2)
            if result is not NotImplemented:
                return result
        try:
            return self.dot(mat2, out if out is not None and out.dtype is kind and out.flags.c_contiguous else None)
        except ValueError:
            pass  # the shapes do not match: raise PyTorch's error below
    _check_mm(self, mat2)
    return product(self, mat2)


_SMALL_PRODUCT = compiled("linalg.small_products.product", least=MOVED)
_PRODUCT = compiled("linalg.products.product", least=ON_ONE_THREAD + 1)
_PRODUCT_WITH_VECTOR = compiled("linalg.products.product", least=LARGE)


def shared_product(a: Array, b: Array, added: Array | None = None) -> Any:
    """Return `a @ b` plus a vector in each row, on the threads of compiled kernels.

    Return NotImplemented if one thread is enough, as for the product of two vectors. After each product, BLAS's own
    threads keep their processors from other kernels for a while.
    """
    (rows, depth), (same, columns) = a.shape, b.shape
    if depth != same or rows == columns == 1:
        return NotImplemented
    product = _PRODUCT if rows > 1 and columns > 1 else _PRODUCT_WITH_VECTOR
    return product.run(rows * depth * columns, a, b, added)


def _check_mm(self: Array, mat2: Array) -> None:
    if self.ndim != 2 or mat2.ndim != 2:
        which = "self" if self.ndim != 2 else "mat2"
        raise RuntimeError(f"{which} must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )
    if self.dtype != mat2.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(self.dtype)} != {c_name(mat2.dtype)}"
        )


def bmm(self: Array, mat2: Array, out: Array | None = None) -> Array:
    """Return the products of two stacks of matrices."""
    _check_bmm(self, mat2)
    return product_of_stacks(self, mat2, out) if self.dtype.char in "fd" else product(self, mat2)


def product_of_stacks(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return `a @ b`.

    Compiled loops multiply small matrices. Larger products on several threads use BLAS or register tiles, except that
    NumPy multiplies pairs of vectors, which one thread reads as fast as memory.
    """
    (_, rows, depth), columns = a.shape, b.shape[2]
    found: Any = NotImplemented
    if rows * columns > 1:
        kernel = _SMALL_PRODUCT if rows * depth * columns <= NARROW else _PRODUCT
        found = kernel.run(a.size * columns, a, b)
    if found is not NotImplemented:
        return asarray(found)
    return numpy.matmul(a, b, out if fits(out, (*a.shape[:2], columns), a.dtype) else None)


def _check_bmm(self: Array, mat2: Array) -> None:
    if self.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(f"batch{1 if self.ndim != 3 else 2} must be a 3D tensor")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{self.shape[0]}, {self.shape[2]}] but got: "
            f"[{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    if self.dtype != mat2.dtype:
        raise RuntimeError(f"expected scalar type {type_name(self.dtype)} but found {type_name(mat2.dtype)}")


def mv(self: Array, vec: Array) -> Array:
    """Return the product of a matrix and a vector."""
    require_dims(self, 0)
    _check_mv(vec, self, vec, self.shape[:1])
    return product(self, vec)


def _check_mv(self: Array, mat: Array, vec: Array, added: tuple[int, ...]) -> None:
    if mat.ndim != 2 or vec.ndim != 1 or len(added) > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {len(added)}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or added not in ((), (1,), mat.shape[:1]):
        if not added:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
        raise RuntimeError(
            f"size mismatch, got input ({added[0]}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    if not self.dtype == mat.dtype == vec.dtype:
        kinds = [type_name(array.dtype) for array in (self, mat, vec)]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {kinds[0]}, {kinds[1]}, and {kinds[2]}"
        )


def dot(self: Array, tensor: Array) -> Array:
    """Return the sum of the products of corresponding elements of two vectors."""
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.dtype != tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {type_name(self.dtype)} and {type_name(tensor.dtype)}"
        )
    if self.size != tensor.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.size}] and src [{tensor.size}] to have the same number of "
            f"elements, but got {self.size} and {tensor.size} elements respectively"
        )
    return numpy.asarray(product(self, tensor))


def vdot(self: Array, other: Array) -> Array:
    """Return `dot` with the first vector conjugated."""
    return dot(self.conj(), other)


def addmm(self: Array, mat1: Array, mat2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Return `beta * self + alpha * (mat1 @ mat2)`. An operand times a factor of 0 is 0, even if it is not finite."""
    if mat1.dtype != mat2.dtype and self.dtype == mat2.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {type_name(mat1.dtype)} and {type_name(mat2.dtype)}"
        )
    _same_as_added(self, mat2 if self.dtype == mat1.dtype else mat1)
    _check_mm(mat1, mat2)
    return _combined(self, mat1, mat2, beta, alpha)


def _same_as_added(self: Array, factor: Array) -> None:
    if self.dtype != factor.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {type_name(self.dtype)} and {type_name(factor.dtype)}"
        )


def addmm_plain(self: Array, mat1: Array, mat2: Array) -> Array:
    """Return `self + mat1 @ mat2`."""
    kind = self.dtype
    if not (kind is mat1.dtype is mat2.dtype and kind.char in _BLAS and mat1.ndim == 2 == mat2.ndim):
        return addmm(self, mat1, mat2)
    if mat1.size * mat2.shape[1] <= LARGE and not LOOPS.every_size:
        try:
            result = mat1.dot(mat2)
        except ValueError:
            return addmm(self, mat1, mat2)  # the shapes do not match: raises PyTorch's error
        return numpy.add(result, self, result)
    if self.shape == mat2.shape[1:]:
        result = shared_product(mat1, mat2, self)
        if result is not NotImplemented:
            return result
    result = mm(mat1, mat2)
    return asarray(_ADD(result, self, out=result))


_ADD = of_any_size(numpy.add)


def addmv(self: Array, mat: Array, vec: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Return `beta * self + alpha * (mat @ vec)`."""
    _check_mv(self, mat, vec, self.shape)
    return _combined(self, mat, vec, beta, alpha)


def baddbmm(self: Array, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Return `beta * self + alpha * bmm(batch1, batch2)`."""
    require_dims(batch1, 0, 1)
    require_dims(batch2, 2)
    _check_bmm(batch1, batch2)
    if self.dtype != batch1.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {c_name(self.dtype)}, batch1: {c_name(batch1.dtype)}, "
            f"batch2: {c_name(batch2.dtype)}"
        )
    return _combined(self, batch1, batch2, beta, alpha)


def addbmm(self: Array, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Return `beta * self + alpha * bmm(batch1, batch2).sum(0)`, computed as one product of matrices."""
    require_dims(batch1, 1)
    require_dims(batch2, 2)
    if batch1.ndim != 3 or batch2.ndim != 3:
        raise RuntimeError(f"batch{1 if batch1.ndim != 3 else 2} must be a 3D tensor")
    count, rows, inner = batch1.shape
    if batch2.shape[0] != count:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {count} and {batch2.shape[0]}")
    if batch2.shape[1] != inner:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({rows}x{inner} and {batch2.shape[1]}x{batch2.shape[2]})"
        )
    _same_as_added(self, batch2 if self.dtype == batch1.dtype else batch1)
    left = batch1.swapaxes(0, 1).reshape(rows, count * inner)
    return _combined(self, left, batch2.reshape(count * inner, batch2.shape[2]), beta, alpha)


@pointwise("addr_cpu")
def _added_outer(self: Array, column: Array, row: Array, beta: float, alpha: float) -> Any:
    return self * beta + column * row * alpha


def addr(self: Array, vec1: Array, vec2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Return `beta * self + alpha * outer(vec1, vec2)`."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        which, array = ("vec1", vec1) if vec1.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"addr: Expected 1-D argument {which}, but got {array.ndim}-D")
    if self.dtype.kind in "biu":
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, float):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool) and self.dtype.kind != "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    shape = vec1.shape + vec2.shape
    if (
        beta != 0
        and self.dtype.char in "fd"
        and can_expand(self.shape, shape)
        and LOOPS.takes(vec1.size * vec2.size, LARGE)
    ):
        return laid_out(asarray(_added_outer.general(expand(self, shape), vec1[:, None], vec2, beta, alpha)), (self,))
    return laid_out(_combine(self, numpy.multiply.outer(widen(vec1), widen(vec2)), beta, alpha), (self,))


def _combined(self: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
    """Return `beta * self + alpha * (a @ b)`, which is rounded once."""
    if self.dtype not in HALVES:
        return _combine(self, wide_product(a, b), beta, alpha)
    added = expand(self, a.shape[:-1] + b.shape[a.ndim - 1 :])
    return _in_blocks(a, b, lambda block, part: _combine(added[part], block, beta, alpha))


@pointwise("addmm_impl_cpu_")
def _plus_scaled(self: Array, other: Array, factor: float) -> Any:
    return self + other * factor


def _combine(self: Array, result: Array, beta: Any, alpha: Any) -> Array:
    """Return `beta * self + alpha * result` in the type of `self`. Half types are rounded from float32 here."""
    if not can_expand(self.shape, result.shape):
        expand(self, result.shape)  # raises
    kind = from_numpy(result.dtype)
    if alpha != 1:
        result *= scalar_array(alpha, kind)
    if beta == 1:
        result += self
    elif beta != 0 and result.dtype.char in "fd":
        _plus_scaled.inplace(result, expand(widen(self), result.shape), scalar_array(beta, kind).item())
    elif beta != 0:
        result += self * scalar_array(beta, kind)
    return result if result.dtype == self.dtype else convert(asarray(result), self.dtype)


def cross(self: Array, other: Array, dim: int = -1) -> Array:
    """Return the cross products of vectors of three elements along `dim`. The other dimensions are broadcast."""
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    require_dims(self, dim)
    axis = normalize_dim(dim, self.ndim)
    if self.shape[axis] != 3 or other.shape[axis] != 3:
        sizes = self.shape[axis], other.shape[axis]
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    shape = broadcast_shapes(self.shape, other.shape)
    if self.dtype != other.dtype:
        raise RuntimeError(f"expected scalar type {type_name(self.dtype)} but found {type_name(other.dtype)}")
    result = numpy.empty(shape, self.dtype)
    before: Any = (slice(None),) * axis
    x, y, z = [self[(*before, k, ...)] for k in range(3)]
    u, v, w = [other[(*before, k, ...)] for k in range(3)]
    for k, (first, second, third, fourth) in enumerate(((y, w, z, v), (z, u, x, w), (x, v, y, u))):
        part = result[(*before, k, ...)]
        numpy.multiply(first, second, part)
        part -= third * fourth
    return result
