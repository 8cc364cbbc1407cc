"""Orthogonal polynomials of a degree for each element: Chebyshev's of four kinds, Hermite's, Laguerre's and Legendre's."""

from __future__ import annotations

from ...dispatch.annotations import Array
from ...dispatch.arguments import invalid_arguments
from ...dispatch.decorators import operator
from ...dispatch.signatures import OUT
from ...kernels.math import orthogonal_polynomials as kernels
from ...tensor import Tensor

_FAMILIES = {
    "chebyshev_polynomial_t": (kernels.CHEBYSHEV_T, "Chebyshev's polynomials of the first kind"),
    "chebyshev_polynomial_u": (kernels.CHEBYSHEV_U, "Chebyshev's polynomials of the second kind"),
    "chebyshev_polynomial_v": (kernels.CHEBYSHEV_V, "Chebyshev's polynomials of the third kind"),
    "chebyshev_polynomial_w": (kernels.CHEBYSHEV_W, "Chebyshev's polynomials of the fourth kind"),
    "hermite_polynomial_h": (kernels.HERMITE_H, "Hermite's polynomials of physics"),
    "hermite_polynomial_he": (kernels.HERMITE_HE, "Hermite's polynomials of probability theory"),
    "laguerre_polynomial_l": (kernels.LAGUERRE_L, "Laguerre's polynomials"),
    "legendre_polynomial_p": (kernels.LEGENDRE_P, "Legendre's polynomials"),
}


def _declare(name, family, doc, shifted):
    class polynomial:
        def forward(x: Array, n: Array): ...

    polynomial.__doc__ = f"""{doc} of degree `n`, elementwise{", on the interval from 0 to 1" if shifted else ""}.

    A degree is rounded towards 0; a negative one gives 0. There is no derivative, as in PyTorch.
    """

    def check(x, n):
        if not isinstance(x, Tensor) and not isinstance(n, Tensor):
            raise invalid_arguments(f"special_{name}", x, n)

    operator(
        check=check,
        kernel=kernels.polynomials(family, name, shifted),
        name=name,
        function_name=f"special_{name}",
        namespace="special",
        method=(),
        promote="float",
        elementwise=True,
        number_first=True,
        forms=lambda op: (f"Tensor x, Tensor n, {OUT}", f"Number x, Tensor n, {OUT}", f"Tensor x, Number n, {OUT}"),
    )(polynomial)


for _name, (_family, _doc) in _FAMILIES.items():
    _declare(_name, _family, _doc, False)
    if _name.startswith("chebyshev"):
        _declare(f"shifted_{_name}", _family, _doc, True)
