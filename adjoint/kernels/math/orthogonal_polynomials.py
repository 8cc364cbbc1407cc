"""Orthogonal polynomials with a separate degree for each element.

Their formulas are in the language of kernels (`codegen.llvm.elementary_polynomials`), which also computes NumPy arrays.
"""

from __future__ import annotations

from typing import Any

from ...codegen.elementary import in_kernels
from ...codegen.pointwise import of_operation, pointwise
from ...codegen.tracing import apply
from ..runtime.floating import Array


def polynomials(name: str, shifted: bool = False) -> Any:
    """Return the kernel of a family. If `shifted`, the argument is `2 x - 1`, so that the interval is from 0 to 1."""
    if not shifted:
        in_kernels("elementary_polynomials", name, 2, wide=False)
        return of_operation(name, f"{name}_cpu", "fd", 2)

    def polynomial(x: Array, n: Array) -> Any:
        return apply(name, x + x - 1, n)

    polynomial.__name__ = f"shifted_{name}"
    return pointwise(f"{name}_cpu", "fd")(polynomial)
