"""Derive the coefficients of the elementary functions of compiled kernels (`adjoint/codegen/llvm/elementary_*.py`).

    python scripts/fit_polynomials.py [NAME ...]

Each row contains a function, its interval, and the numbers of coefficients for float32 and float64. The function is
interpolated at Chebyshev's points with 50 digits (`mpmath.chebyfit`). The error is at most twice the error of the best
polynomial. The script prints the largest error on the interval, and the coefficients from the highest power down.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mp, mpf

mp.dps = 50


def _series(function: Callable[[Any], Any], at_zero: Any, limit: float = 1e-12) -> Callable[[Any], Any]:
    """Return the quotient, or the limit of the quotient at 0."""
    return lambda x: at_zero if abs(x) < limit else function(x)


HALF_LN2 = float(mpmath.log(2) / 2) * 1.0005
LOG_RANGE = [float(mpmath.sqrt(0.5)) - 1 - 1e-4, float(mpmath.sqrt(2)) - 1 + 1e-4]


def _root(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return (f(x) / x - 1) / z for an odd function f, as a function of z = x * x."""
    return lambda z: (function(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z


def _scaled_complement(t: Any) -> Any:
    """Return (1 + 2 x) exp(x * x) erfc(x) as a function of t = (x - 4) / (x + 4)."""
    if t > 0.999999:
        return 2 / mpmath.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mpmath.exp(x * x) * mpmath.erfc(x)


ROWS: dict[str, tuple[Callable[[Any], Any], list[float], int, int]] = {
    "EXPM1": (_series(lambda r: (mpmath.expm1(r) - r) / r**2, mpf("0.5")), [-HALF_LN2, HALF_LN2], 6, 11),
    "EXP": (_series(lambda r: (mpmath.expm1(r) - r) / r**2, mpf("0.5")), [-HALF_LN2, HALF_LN2], 5, 10),
    "LOG1P": (_series(lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3, 1 / mpf(3)), LOG_RANGE, 9, 20),
    "ATANH": (
        _series(lambda z: (2 * mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 2) / z, 2 / mpf(3)), [0, 0.02945], 3, 7,
    ),
    "ATANH_TAIL": (
        _series(lambda z: 2 * (mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1 - z / 3) / z**2, 2 / mpf(5)), [0, 0.02945], 3, 7,
    ),
    "TANH": (_series(_root(mpmath.tanh), -1 / mpf(3)), [0, 0.625**2], 6, 12),
    "SINH": (_series(_root(mpmath.sinh), 1 / mpf(6)), [0, 1], 4, 8),
    "SIN": (_series(_root(mpmath.sin), -1 / mpf(6)), [0, 0.6169], 4, 6),
    "COS": (_series(lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2, 1 / mpf(24)), [0, 0.6169], 3, 6),
    "ASIN": (_series(_root(mpmath.asin), 1 / mpf(6)), [0, 0.25], 6, 13),
    "ATAN": (_series(_root(mpmath.atan), -1 / mpf(3)), [0, 0.17158], 6, 11),
    "ERF": (_series(_root(lambda x: mpmath.erf(x) * mpmath.sqrt(mp.pi) / 2), -1 / mpf(3)), [0, 1], 6, 12),
    "LOG_ERFC": (lambda x: mpmath.log(mpmath.erfc(x)), [0.98, 4.0], 9, 9),
    "ERFCX": (_scaled_complement, [-0.78, 1], 12, 24),
}  # fmt: skip


def main(names: list[str]) -> None:
    """Print the selected rows."""
    for name in names or ROWS:
        function, interval, single, double = ROWS[name]
        for suffix, count in (("32", single), ("64", double)):
            coefficients, error = mpmath.chebyfit(function, interval, count, error=True)
            rounded = [repr(float(item)) for item in coefficients]
            print(f"# {name}{suffix}: error {mpmath.nstr(error, 3)} = 2**{mpmath.nstr(mpmath.log(error, 2), 4)}")
            print(f"{name}{suffix} = (\n    {', '.join(rounded)},\n)")


if __name__ == "__main__":
    main(sys.argv[1:])
