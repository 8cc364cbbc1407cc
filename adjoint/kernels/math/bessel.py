"""Bessel functions and modified Bessel functions of both kinds and orders 0 and 1, and the Airy function.

Their formulas are in the language of kernels (`codegen.llvm.elementary_bessel`), which also computes NumPy arrays.
"""

from __future__ import annotations

import math
from typing import Any

from ...codegen.elementary import in_kernels
from ...codegen.pointwise import of_operation, pointwise
from ...codegen.tracing import xp
from ..runtime.floating import Array


def _declared(name: str, kinds: str) -> Any:
    in_kernels("elementary_bessel", name)
    return of_operation(name, f"{name}_cpu", kinds)


i0, i0e, i1, i1e = [_declared(name, "f") for name in ("i0", "i0e", "i1", "i1e")]
bessel_j0, bessel_j1 = _declared("bessel_j0", "fd"), _declared("bessel_j1", "fd")
bessel_y0, bessel_y1 = _declared("bessel_y0", "fd"), _declared("bessel_y1", "fd")
modified_bessel_k0, modified_bessel_k1 = [_declared(f"modified_bessel_k{order}", "fd") for order in (0, 1)]
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = [
    _declared(f"scaled_modified_bessel_k{order}", "fd") for order in (0, 1)
]
airy_ai = _declared("airy_ai", "fd")


@pointwise("modified_bessel_i0_cpu", "fd")
def modified_bessel_i0(self: Array) -> Any:
    """Return `i0`, but NaN at infinity."""
    return xp.where(xp.abs(self) == math.inf, math.nan, xp.i0(self))


@pointwise("modified_bessel_i1_cpu", "fd")
def modified_bessel_i1(self: Array) -> Any:
    """Return `i1`, but NaN at infinity."""
    return xp.where(xp.abs(self) == math.inf, math.nan, xp.i1(self))


@pointwise("spherical_bessel_j0_cpu", "fd")
def spherical_bessel_j0(x: Array) -> Any:
    """Return `sin(x) / x`, which is 1 at 0 and 0 at infinity."""
    return xp.where(x == 0, 1.0, xp.where(xp.abs(x) == math.inf, 0.0, xp.sin(x) / x))
