"""The backend: the type of arrays, and the kernels that compute on them.

It computes the arrays of operators, creates constants, allocates memory, and accumulates gradients. No other code
depends on the backend. Another one needs the same five members, and can create its pointwise kernels from the
`expression` of NumPy's kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy

from ..kernels.runtime.floating import unwarned
from .kernel import Kernel


class NumpyBackend:
    """The backend of NumPy arrays. Every operator declares its kernel here."""

    array_type = numpy.ndarray
    """The exact type of its arrays, with which straight-line code compares the types of its inputs."""
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
