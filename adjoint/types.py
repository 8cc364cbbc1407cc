"""Names of argument types, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .device import Size
from .device import device as _device
from .kernels.memory.storage import UntypedStorage as Storage
from .tensor import Tensor

_int, _float, _bool, _complex = int, float, bool, complex

_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None

__all__ = ["Device", "Number", "Size", "Storage", "Tensor"]
