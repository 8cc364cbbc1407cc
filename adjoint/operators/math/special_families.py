"""Special functions without a derivative, as in PyTorch: Bessel functions, the Airy function, orthogonal polynomials."""

from __future__ import annotations

from typing import Any

from ...dispatch.annotations import Array
from ...dispatch.decorators import operator
from ...dispatch.signatures import number_either_way
from ...kernels.math import special as kernels

_FUNCTIONS = {
    "bessel_j0": "the Bessel function of the first kind and order 0",
    "bessel_j1": "the Bessel function of the first kind and order 1",
    "bessel_y0": "the Bessel function of the second kind and order 0; nan for negative numbers",
    "bessel_y1": "the Bessel function of the second kind and order 1; nan for negative numbers",
    "modified_bessel_i0": "the modified Bessel function of the first kind and order 0",
    "modified_bessel_i1": "the modified Bessel function of the first kind and order 1",
    "modified_bessel_k0": "the modified Bessel function of the second kind and order 0; nan for negative numbers",
    "modified_bessel_k1": "the modified Bessel function of the second kind and order 1; nan for negative numbers",
    "scaled_modified_bessel_k0": "`exp(x) * modified_bessel_k0(x)`",
    "scaled_modified_bessel_k1": "`exp(x) * modified_bessel_k1(x)`",
    "spherical_bessel_j0": "the spherical Bessel function of the first kind and order 0, `sin(x) / x`",
    "airy_ai": "the Airy function Ai",
}

_FAMILIES = {
    "chebyshev_polynomial_t": "Chebyshev's polynomials of the first kind",
    "chebyshev_polynomial_u": "Chebyshev's polynomials of the second kind",
    "chebyshev_polynomial_v": "Chebyshev's polynomials of the third kind",
    "chebyshev_polynomial_w": "Chebyshev's polynomials of the fourth kind",
    "hermite_polynomial_h": "Hermite's polynomials of physics",
    "hermite_polynomial_he": "Hermite's polynomials of probability theory",
    "laguerre_polynomial_l": "Laguerre's polynomials",
    "legendre_polynomial_p": "Legendre's polynomials",
}


def _of_x(x: Array): ...


def _of_degree(x: Array, n: Array): ...


def _declare(name, doc, kernel, forward=None, more="", **options):
    doc = f"{doc}, elementwise.\n\n    {more}There is no derivative, as in PyTorch."
    members = {"__doc__": doc, "__module__": __name__}
    function = type(name, (), members if forward is None else {**members, "forward": forward})
    shared: Any = {"function_name": f"special_{name}", "namespace": "special", "method": (), "promote": "float"}
    operator(kernel=kernel, **shared, **options)(function)


def _declare_polynomial(name, doc, kernel):
    more = "A degree is rounded towards 0. Negative degrees give 0. "
    options: Any = {"overloaded": True, "elementwise": True, "numbers": "first", "more": more}
    _declare(name, doc, kernel, _of_degree, forms=lambda op: number_either_way(op, out=True), **options)


for _name, _doc in _FUNCTIONS.items():
    _named_x = _name in ("airy_ai", "spherical_bessel_j0")  # as in PyTorch
    _declare(_name, f"{_doc[0].upper()}{_doc[1:]}", getattr(kernels, _name), _of_x if _named_x else None)

for _name, _doc in _FAMILIES.items():
    _declare_polynomial(_name, f"{_doc} of degree `n`", kernels.polynomials(_name))
    if _name.startswith("chebyshev"):
        _doc = f"{_doc} of degree `n` on the interval from 0 to 1"
        _declare_polynomial(f"shifted_{_name}", _doc, kernels.polynomials(_name, True))
