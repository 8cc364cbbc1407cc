"""Orthogonal polynomials with one degree per element: Chebyshev (four kinds), Hermite, Laguerre and Legendre."""

from __future__ import annotations

from ...dispatch.annotations import Array
from ...dispatch.decorators import operator
from ...dispatch.signatures import OUT
from ...kernels.math import special as kernels

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


def _declare(name, doc, kernel, shifted):
    class polynomial:
        def forward(x: Array, n: Array): ...

    polynomial.__doc__ = f"""{doc} of degree `n`, elementwise{", on the interval from 0 to 1" if shifted else ""}.

    A degree is rounded towards 0; a negative one gives 0. There is no derivative, as in PyTorch.
    """

    operator(
        overloaded=True,
        kernel=kernel,
        name=name,
        function_name=f"special_{name}",
        namespace="special",
        method=(),
        promote="float",
        elementwise=True,
        numbers="first",
        forms=lambda op: (f"Tensor x, Tensor n, {OUT}", f"Number x, Tensor n, {OUT}", f"Tensor x, Number n, {OUT}"),
    )(polynomial)


for _name, _doc in _FAMILIES.items():
    _declare(_name, _doc, kernels.polynomials(_name), False)
    if _name.startswith("chebyshev"):
        _declare(f"shifted_{_name}", _doc, kernels.polynomials(_name, True), True)
