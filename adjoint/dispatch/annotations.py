"""What declarations annotate the parameters of `forward` with. An operator is called with arguments of these kinds.

The names are read as text, by `declaration` and `signatures`; for type checkers they stand for what `forward` is given.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
"""A tensor, of which `forward` is given the array; where a formula is recorded, the tensor: no class is that of both."""

Arrays: TypeAlias = list[Any]
"""Several tensors."""

Number: TypeAlias = Any
"""A Python or NumPy number, or a tensor of zero dimensions in its place."""

Int: TypeAlias = int
Ints: TypeAlias = tuple[int, ...]
Float: TypeAlias = float
Bool: TypeAlias = bool
Str: TypeAlias = str

Dtype: TypeAlias = Any
"""A dtype, which `forward` is given as NumPy's."""

Dims: TypeAlias = Any
"""One dimension, several, or None for all."""
