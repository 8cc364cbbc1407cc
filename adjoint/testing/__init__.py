"""Utilities for tests of numerical programs: comparison within tolerances, and random tensors; names, no logic."""

from ._comparison import assert_allclose, assert_close
from .creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
