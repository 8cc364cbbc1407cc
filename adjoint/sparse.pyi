"""Types of functions of tensors. Written by scripts/write_type_stubs.py; do not edit."""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy

from adjoint.device import device as _device
from adjoint.device import layout as _layout
from adjoint.device import memory_format as _memory_format
from adjoint.dtypes import dtype as _dtype

_Number: TypeAlias = _bool | _int | _float | _complex
_Dims: TypeAlias = _int | Sequence[_int]

from adjoint.tensor import Tensor

from adjoint.settings import check_sparse_tensor_invariants as check_sparse_tensor_invariants

def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor: ...
def log_softmax(input: Tensor, dim: _Dims | None, *, dtype: _dtype | None = None) -> Tensor: ...
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = ...) -> Tensor: ...
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor: ...
def softmax(input: Tensor, dim: _Dims | None, *, dtype: _dtype | None = None) -> Tensor: ...
def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: _layout | None = None) -> Tensor: ...
def sum(input: Tensor, dim: _Dims | None = None, dtype: _dtype | None = None) -> Tensor: ...
