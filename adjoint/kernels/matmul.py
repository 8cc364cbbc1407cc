"""Products of matrices and vectors, by BLAS wherever NumPy has it for the type."""

from __future__ import annotations

from typing import Any

import numpy

from ..dtypes import from_numpy

Array = numpy.ndarray[Any, Any]

_BLAS = "fdFD"


def _name(array: Array) -> str:
    kind = from_numpy(array.dtype)
    return {
        "Float": "float",
        "Double": "double",
        "Long": "long long",
        "Int": "int",
        "BFloat16": "c10::BFloat16",
        "Half": "c10::Half",
    }.get(kind.scalar_type, kind.scalar_type)


def _same_types(a: Array, b: Array, names: str = "m1 and m2") -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected {names} to have the same dtype, but got: {_name(a)} != {_name(b)}")


def product(a: Array, b: Array) -> Array:
    """`a @ b` of equal types; half types are multiplied in float32, bool is refused."""
    kind = a.dtype
    if kind.char in _BLAS or kind.kind in "iu":
        return a.dot(b) if a.ndim <= 2 and b.ndim <= 2 else numpy.matmul(a, b)
    if kind.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    return numpy.matmul(a.astype(numpy.float32), b.astype(numpy.float32)).astype(kind)


def mm(self: Array, mat2: Array) -> Array:
    """The product of two matrices."""
    kind = self.dtype
    if kind is mat2.dtype and kind.char in _BLAS and self.ndim == 2 == mat2.ndim:
        try:
            return self.dot(mat2)
        except ValueError:
            pass  # the shapes do not fit: raise below, in PyTorch's words
    if self.ndim != 2 or mat2.ndim != 2:
        which = "self" if self.ndim != 2 else "mat2"
        raise RuntimeError(f"{which} must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )
    _same_types(self, mat2)
    return product(self, mat2)


def bmm(self: Array, mat2: Array) -> Array:
    """The products of two stacks of matrices."""
    if self.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(f"batch{1 if self.ndim != 3 else 2} must be a 3D tensor")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{self.shape[0]}, {self.shape[2]}] but got: "
            f"[{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    _same_types(self, mat2)
    return product(self, mat2)


def mv(self: Array, vec: Array) -> Array:
    """The product of a matrix and a vector."""
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {vec.ndim}, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}), vec ({vec.shape[0]})"
        )
    if self.dtype != vec.dtype:
        _same_types(self, vec, "vec and mat")
    return product(self, vec)


def dot(self: Array, tensor: Array) -> Array:
    """The sum of products of two vectors' elements."""
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.dtype != tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {_capital(self)} and {_capital(tensor)}"
        )
    if self.size != tensor.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.size}] and src [{tensor.size}] to have the same number of "
            f"elements, but got {self.size} and {tensor.size} elements respectively"
        )
    return numpy.asarray(product(self, tensor))


def _capital(array: Array) -> str:
    return from_numpy(array.dtype).scalar_type


def vdot(self: Array, other: Array) -> Array:
    """`dot` with the first vector conjugated."""
    return dot(self.conj(), other)


def addmm(self: Array, mat1: Array, mat2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """`beta * self + alpha * (mat1 @ mat2)`; what is multiplied by 0 does not count, even if it is not finite."""
    if self.dtype != mat1.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {_capital(self)} and {_capital(mat1)}")
    result = mm(mat1, mat2)
    return _combine(self, result, beta, alpha, "addmm")


def addmm_plain(self: Array, mat1: Array, mat2: Array) -> Array:
    """`self + mat1 @ mat2`."""
    result = mm(mat1, mat2)
    if result.dtype is not self.dtype:
        return addmm(self, mat1, mat2)
    result += self
    return result


def addmv(self: Array, mat: Array, vec: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """`beta * self + alpha * (mat @ vec)`."""
    return _combine(self, mv(mat, vec), beta, alpha, "addmv")


def baddbmm(self: Array, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """`beta * self + alpha * bmm(batch1, batch2)`."""
    return _combine(self, bmm(batch1, batch2), beta, alpha, "baddbmm")


def addbmm(self: Array, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """`beta * self + alpha * bmm(batch1, batch2).sum(0)`."""
    summed = numpy.add.reduce(bmm(batch1, batch2), axis=0)
    return _combine(self, summed.astype(self.dtype, copy=False), beta, alpha, "addbmm")


def addr(self: Array, vec1: Array, vec2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """`beta * self + alpha * outer(vec1, vec2)`."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        which, array = ("vec1", vec1) if vec1.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"addr: Expected 1-D argument {which}, but got {array.ndim}-D")
    return _combine(self, numpy.multiply.outer(vec1, vec2), beta, alpha, "addr")


def _combine(self: Array, result: Array, beta: Any, alpha: Any, name: str) -> Array:
    if alpha != 1:
        result = result * result.dtype.type(alpha)
    if beta != 0:
        added = result + (self if beta == 1 else self * self.dtype.type(beta))
        if added.shape != result.shape:
            raise RuntimeError(
                f"The expanded size of the tensor ({result.shape[-1]}) must match the existing size ({self.shape[-1]})"
            )
        result = added
    return result
