"""The annotations for parameters of `forward` in declarations, which determine the arguments of an operator."""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
"""A tensor. If a formula is recorded, `forward` receives the tensor itself instead of its array. No class covers both."""

Arrays: TypeAlias = list[Any]
"""Several tensors."""

Number: TypeAlias = Any
"""A Python or NumPy number, or a zero-dimensional tensor."""

Int: TypeAlias = int
Ints: TypeAlias = tuple[int, ...]
Float: TypeAlias = float
Bool: TypeAlias = bool
Str: TypeAlias = str

Dtype: TypeAlias = Any
"""A dtype. `forward` receives NumPy's dtype."""

Dims: TypeAlias = Any
"""One dimension, several dimensions, or None for all."""
