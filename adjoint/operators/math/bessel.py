"""Bessel functions of orders 0 and 1, of both kinds, ordinary and modified, and the Airy function."""

from __future__ import annotations

from ...dispatch.annotations import Array
from ...dispatch.decorators import operator
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


def _declare(name, doc):
    class function:
        if name in ("airy_ai", "spherical_bessel_j0"):  # as in PyTorch

            def forward(x: Array): ...

    function.__doc__ = f"""{doc[0].upper()}{doc[1:]}, elementwise.

    There is no derivative, as in PyTorch.
    """
    operator(
        kernel=getattr(kernels, name),
        name=name,
        function_name=f"special_{name}",
        namespace="special",
        method=(),
        promote="float",
    )(function)


for _name, _doc in _FUNCTIONS.items():
    _declare(_name, _doc)
