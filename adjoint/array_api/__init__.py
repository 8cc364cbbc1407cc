"""The Python array API standard, version 2024.12: the functions of `torch` under the names and rules that array libraries share.

Libraries that are written for the standard find this namespace through `Tensor.__array_namespace__`. PyTorch does not
have this namespace.

Where the standard differs, the operators and methods of tensors follow PyTorch: `x.size` is a method, slices have no
negative steps (`flip` reverses), a zero-dimensional tensor does not widen other tensors, and unsigned integers of more
than 8 bits do not promote. The functions here promote according to the standard.

>>> import adjoint as torch
>>> xp = torch.ones(2).__array_namespace__()
>>> xp.sum(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0, keepdims=True)
tensor([[4., 6.]])
"""

from __future__ import annotations

from types import ModuleType

from adjoint import (
    Tensor,
    bool,
    complex64,
    complex128,
    e,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)

from .._runtime.tracebacks import end_public_at_caller
from . import (
    creation,
    data_types,
    elementwise,
    fft,
    linalg,
    manipulation,
    searching,
    statistics,
)
from .creation import *
from .data_types import *
from .elementwise import *
from .linalg import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import *
from .searching import *
from .statistics import *

__array_api_version__ = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)

__all__ = [
    *"bool complex64 complex128 e fft float32 float64 inf int8 int16 int32 int64 linalg nan newaxis pi".split(),
    *"matmul matrix_transpose tensordot uint8 uint16 uint32 uint64 vecdot".split(),
    "__array_api_version__",
    *creation.__all__,
    *data_types.__all__,
    *elementwise.__all__,
    *manipulation.__all__,
    *searching.__all__,
    *statistics.__all__,
]


def _namespace(api_version: str | None) -> ModuleType:
    """Return the module `adjoint.array_api`, which implements all versions of the standard up to 2024.12."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"unsupported version of the array API standard: {api_version!r}; there is {VERSIONS[-1]}")
    import adjoint.array_api

    return adjoint.array_api


Tensor._array_namespace = staticmethod(_namespace)


for _names in (globals(), vars(fft), vars(linalg)):
    end_public_at_caller(_names)
