"""Utilities for tests of numerical programs: comparison within tolerances, and random tensors; names, no logic."""

from ..tracebacks import end_public_at_caller
from ._comparison import assert_allclose, assert_close
from .creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]


end_public_at_caller(globals())
