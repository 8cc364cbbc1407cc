"""Backends: each defines the type of its arrays and the kernels that compute on them.

A backend computes the arrays of operators, provides the namespace `xp` of formulas on arrays, creates constants,
allocates memory, and accumulates gradients. No other code depends on the backend. NumPy's backend is the only one so
far. Another backend needs the five members of `Backend`, and can create its pointwise kernels from the `expression` of
NumPy's kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy

from ..kernels.runtime.floating import unwarned
from .kernel import Kernel


class Backend(Protocol):
    """The interface of a backend."""

    array_type: type
    """The exact type of its arrays. The straight-line code of operators compares the types of its inputs with this type."""

    def allocate(self, shape: Any, dtype: Any) -> Any:
        """Return an uninitialized array in row-major order."""

    def add(self, first: Any, second: Any, out: Any) -> Any:
        """Broadcast two arrays, and write their sum into `out`, which may be one of the arrays."""

    def constant(self, number: Any, dtype: Any) -> Any:
        """Return a number as a zero-dimensional array that must not be modified."""

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of the operator with this name."""


class NumpyBackend:
    """The backend of NumPy arrays. Every operator declares its kernel here."""

    array_type = numpy.ndarray
    allocate: ClassVar[Callable[..., Any]] = staticmethod(numpy.empty)
    add: ClassVar[Callable[..., Any]] = staticmethod(numpy.add)

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}

    def declare(self, name: str, kernel: Kernel) -> None:
        """Register the kernel of the operator with this name."""
        self._kernels[name] = kernel

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of the operator with this name."""
        return self._kernels[name]

    def constant(self, number: Any, dtype: Any) -> Any:
        """Return a number as a zero-dimensional array that must not be modified."""
        with unwarned():
            array = numpy.asarray(number, dtype=dtype)
        array.flags.writeable = False
        return array


NUMPY = NumpyBackend()
