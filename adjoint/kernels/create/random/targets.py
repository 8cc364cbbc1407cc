"""Arrays that samplers fill: of which types, in PyTorch's words for others, and in the order of their memory."""

from typing import Any, NoReturn

import numpy
from numpy import ndarray

from ...runtime.floating import BFLOAT16, is_floating, type_name, unwarned

C_NAMES = {
    numpy.dtype(name): c_name
    for name, c_name in {
        "bool": "bool", "uint8": "unsigned char", "uint16": "short unsigned int", "uint32": "unsigned int",
        "uint64": "long unsigned int", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
        "float16": "c10::Half", "float32": "float", "float64": "double",
        "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    }.items()
}  # fmt: skip
C_NAMES[BFLOAT16] = "c10::BFloat16"


def c_name(dtype: "numpy.dtype[Any]") -> str:
    """The name of a type in those messages that use the C++ one, as in `'long int'`."""
    return C_NAMES[dtype]


def refuse(kernel: str, dtype: "numpy.dtype[Any]") -> NoReturn:
    """Raise the NotImplementedError of a sampler that does not know `dtype`."""
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(dtype)}'")


def require_floating(kernel: str, dtype: "numpy.dtype[Any]") -> None:
    """Raise NotImplementedError unless `dtype` is a real floating-point type."""
    if not is_floating(dtype):
        refuse(kernel, dtype)


def real_dtype(dtype: "numpy.dtype[Any]") -> "numpy.dtype[Any]":
    """The type of the parts of a complex type; a real type gives itself."""
    return numpy.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def as_real(x: ndarray) -> ndarray:
    """A view of a complex array with a last dimension of 2 for the real and the imaginary part."""
    return x[..., None].view(real_dtype(x.dtype))


def memory_order(array: ndarray) -> list[int]:
    """The dimensions sorted so that the memory of `array` is walked from front to back."""
    strides = array.strides
    return sorted(range(array.ndim), key=lambda dim: -strides[dim])


def store(out: ndarray, values: ndarray) -> ndarray:
    """Write one-dimensional `values` into `out` in the order of its memory, rounded to its type; returns `out`."""
    values = round_to(values, out.dtype)
    if out.flags.c_contiguous:
        out[...] = values.reshape(out.shape)
        return out
    target = out.transpose(memory_order(out))
    target[...] = values.reshape(target.shape)
    return out


def round_to(values: ndarray, dtype: "numpy.dtype[Any]") -> ndarray:
    """`values` as `dtype`; the half types are reached through float32, as PyTorch's conversions do."""
    if values.dtype == dtype:
        return values
    if values.dtype.kind in "bui" and dtype.kind in "bui":
        return values.astype(dtype)
    if dtype.itemsize == 2 and (dtype.kind == "f" or dtype == BFLOAT16):
        values = values.astype(numpy.float32, copy=False)
    with unwarned():
        return values.astype(dtype)
