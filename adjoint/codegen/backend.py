"""Backends: what holds arrays and computes on them.

A backend is asked where an operator's arrays are computed, for the namespace `xp` of formulas that run on arrays, for constants
and for memory, and where gradients are accumulated; nothing else has to know which one there is. So far NumPy's is the only one.
Another one needs these five answers, and can make its kernels of pointwise operators from the `expression` of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy

from .kernel import Kernel


class Backend(Protocol):
    """What is asked of a backend."""

    array_type: type
    """The exact type of its arrays, which the straight-line code of operators tests its inputs for."""

    def allocate(self, shape: Any, dtype: Any) -> Any:
        """An array, row by row in memory, whose elements are yet to be written."""

    def add(self, first: Any, second: Any, out: Any) -> Any:
        """Write the sum of two arrays, broadcast together, into `out`, which may be one of them."""

    def constant(self, number: Any, dtype: Any) -> Any:
        """A number as an array without dimensions, which nobody writes to."""

    def kernel(self, name: str) -> Kernel:
        """What computes the operator of this name."""


class NumpyBackend:
    """Arrays of NumPy; every operator is declared with its kernel for them."""

    array_type = numpy.ndarray
    allocate: ClassVar[Callable[..., Any]] = staticmethod(numpy.empty)
    add: ClassVar[Callable[..., Any]] = staticmethod(numpy.add)

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
