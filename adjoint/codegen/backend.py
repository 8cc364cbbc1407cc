"""Backends: what holds arrays and computes on them.

A backend is asked where an operator's arrays are computed, for the namespace `xp` of formulas that run on arrays, and for
constants; nothing else has to know which one there is. So far NumPy's is the only one. Another one needs these three answers, and
can make its kernels of pointwise operators from the `expression` of NumPy's.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy

from .kernel import Kernel


class Backend(Protocol):
    """What is asked of a backend."""

    array_type: type
    """The exact type of its arrays, which the straight-line code of operators tests its inputs for."""

    def constant(self, number: Any, dtype: Any) -> Any:
        """A number as an array without dimensions, which nobody writes to."""

    def kernel(self, name: str) -> Kernel:
        """What computes the operator of this name."""


class NumpyBackend:
    """Arrays of NumPy; every operator is declared with its kernel for them."""

    array_type = numpy.ndarray

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}

    def declare(self, name: str, kernel: Kernel) -> None:
        """Note what computes the operator of this name."""
        self._kernels[name] = kernel

    def kernel(self, name: str) -> Kernel:
        """What computes the operator of this name."""
        return self._kernels[name]

    def constant(self, number: Any, dtype: Any) -> Any:
        """A number as an array without dimensions, which nobody writes to."""
        with numpy.errstate(all="ignore"):
            array = numpy.asarray(number, dtype=dtype)
        array.flags.writeable = False
        return array


NUMPY = NumpyBackend()
