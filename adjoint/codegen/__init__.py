"""The kernel language: scalar expressions and row programs, traced once, scheduled, and run on NumPy arrays in tiles.

`expression` defines the graph, `tracing` makes it from a Python function, `schedule` orders its steps and assigns registers,
`source` writes the steps as Python, `numpy_tiles` runs that code over large arrays, `rows` runs row programs, `pointwise` is the
decorator that makes a `Kernel` of an expression, and `backend` knows which kernel computes an operator.
"""

from __future__ import annotations

from .elementary import elementary
from .kernel import Kernel
from .pointwise import pointwise
from .tracing import xp

__all__ = ["Kernel", "elementary", "pointwise", "xp"]
