"""Names of argument types, for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO, TypeAlias

from adjoint.device import Size, layout
from adjoint.device import device as _device
from adjoint.dtypes import dtype
from adjoint.kernels.memory.storages import UntypedStorage as Storage
from adjoint.tensor import Tensor

_int, _float, _bool, _complex, _str, _bytes = int, float, bool, complex, str, bytes
_dtype, _layout = dtype, layout
_Number = (int, float, bool)

_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]

Number: TypeAlias = int | float | bool
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | BinaryIO
"""A path, or a file opened in binary mode."""

__all__ = [
    "BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number", "Size", "Storage", "Tensor",
]  # fmt: skip
