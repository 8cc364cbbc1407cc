"""Kinds of dtype, and which precision kernels compute in: half types in float32."""

from typing import Any

import ml_dtypes
import numpy
from numpy import ndarray

from .. import dtypes

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
FLOAT16 = numpy.dtype(numpy.float16)
FLOAT32 = numpy.dtype(numpy.float32)
HALVES = (FLOAT16, BFLOAT16)


def compute_dtype(dtype: "numpy.dtype[Any]") -> "numpy.dtype[Any]":
    """The type that arithmetic on `dtype` is done in: float32 for the half types, otherwise `dtype`."""
    return FLOAT32 if dtype.itemsize == 2 and dtype in HALVES else dtype


def widen(x: ndarray) -> ndarray:
    """`x` in the type that arithmetic on it is done in; `x` itself unless it is of a half type."""
    dtype = x.dtype
    if dtype.itemsize != 2 or dtype not in HALVES:
        return x
    return x.astype(FLOAT32)


def is_floating(dtype: "numpy.dtype[Any]") -> bool:
    """Whether `dtype` is a real floating-point type (bfloat16, whose NumPy kind is void, included)."""
    return dtype.kind == "f" or dtype == BFLOAT16


def is_inexact(dtype: "numpy.dtype[Any]") -> bool:
    """Whether `dtype` is a floating-point or complex type."""
    return dtype.kind in "fc" or dtype == BFLOAT16


def type_name(dtype: "numpy.dtype[Any]") -> str:
    """The name of a type in error messages, as in `'Float'` or `'ComplexDouble'`."""
    return dtypes.from_numpy(dtype).scalar_type
