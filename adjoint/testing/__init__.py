"""Utilities for tests of numerical programs: comparison within tolerances, random tensors, checks of text.

This file contains names only.
"""

from ._comparison import assert_allclose, assert_close
from .creation import make_tensor
from .file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
