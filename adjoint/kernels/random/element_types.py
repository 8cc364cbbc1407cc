"""Which types a sampler accepts, and PyTorch's words for those it does not."""

from typing import Any, NoReturn

import numpy
from numpy import ndarray

from ..precision import BFLOAT16, is_floating, type_name

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
