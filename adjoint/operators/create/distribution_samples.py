"""Samples of distributions with tensors as parameters: Poisson, multinomial, binomial, gamma, Dirichlet.

With the same seed, the samples equal PyTorch's samples bit for bit.
"""

from __future__ import annotations

from ... import dtypes
from ...dispatch.annotations import Array
from ...dispatch.arguments import require
from ...dispatch.decorators import internal, operator, public
from ...kernels.create import random as kernels
from ...kernels.math import incomplete
from ..declaring.formulas import underived, unwritten, zero
from .random import drawing


@operator(kernel=drawing(kernels.poisson), method=True, batch="leading")
class poisson:
    """Poisson-distributed numbers of events. The elements of `self` are the expected numbers."""

    def forward(self: Array, generator=None): ...

    grad_self = zero


@internal(drawing(kernels.multinomial), name="multinomial", batch="samples of 1")
class indices_of_chances:
    """Indices drawn with the probabilities in each row of `self`."""

    def forward(self: Array, num_samples, replacement=False, *, generator=None): ...


@public(method=True)
def multinomial(input=None, num_samples=None, replacement=False, *, generator=None, out=None, x=None):
    """Indices drawn with the probabilities (not necessarily of sum 1) in each row of `input`.

    >>> import adjoint as torch
    >>> torch.multinomial(torch.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    input = x if input is None else input
    require("Int", num_samples, "multinomial", "num_samples", 2)
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_type}")
    return indices_of_chances(input, int(num_samples), replacement, generator=generator, out=out)


def _check_trials(count, prob, generator=None):
    for name, tensor in (("count", count), ("prob", prob)):
        if not tensor.dtype.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {tensor.dtype.scalar_type}"
            )


@operator(
    kernel=drawing(kernels.binomial),
    method=(),
    out=False,
    node="NotImplemented",
    batch="elementwise",
    check=_check_trials,
)
class binomial:
    """The number of successes in `count` trials, each with probability `prob`. Both tensors have the same dtype."""

    def forward(count: Array, prob: Array, generator=None): ...

    grad_count = grad_prob = underived("binomial")


@operator(kernel=drawing(kernels.standard_gamma), method=(), out=False, batch="leading")
class _standard_gamma:
    """Numbers from gamma distributions with concentrations `self` and rate 1.

    The numbers have a derivative with respect to `self` (`kernels.incomplete`).
    """

    def forward(self: Array, generator=None): ...

    def grad_self(grad, self, result, xp):
        return grad * xp._standard_gamma_grad(self, result)


@operator(kernel=incomplete.standard_gamma_grad, method=(), out=False)
class _standard_gamma_grad:
    """The derivative of the sample `output` of a gamma distribution with respect to its concentration `self`."""

    def forward(self: Array, output: Array): ...

    grad_self = grad_output = unwritten("_standard_gamma_grad")


@operator(kernel=drawing(kernels.sample_dirichlet), method=(), out=False, batch="leading")
class _sample_dirichlet:
    """Samples of Dirichlet distributions along the last dimension."""

    differentiable = ()

    def forward(self: Array, generator=None): ...


@operator(kernel=incomplete.dirichlet_grad, method=(), out=False)
class _dirichlet_grad:
    """The derivative of components `x` of Dirichlet samples with respect to their concentrations, divided by `1 - x`.

    `alpha` contains the concentrations, and `total` contains the sums of concentrations.
    """

    differentiable = ()

    def forward(x: Array, alpha: Array, total: Array): ...
