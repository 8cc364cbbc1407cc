"""The kernel language: scalar expressions and row programs, traced once, scheduled, and run on NumPy arrays in tiles.

`expression` says what a graph is, `tracing` how a Python function becomes one, `schedule` the order of its steps and where each
result is kept, `source` the Python that these steps are written as, `numpy_tiles` how that runs over large arrays, `pointwise`
the decorator that makes a kernel of all this, `rows` the same for operators that look at whole rows, `kernel` what a kernel is,
and `backend` who is asked for one.
"""

from __future__ import annotations

from .elementary import elementary
from .kernel import Kernel
from .pointwise import pointwise
from .tracing import xp

__all__ = ["Kernel", "elementary", "pointwise", "xp"]
