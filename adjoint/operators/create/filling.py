"""Tensors filled in place with random numbers, bit for bit PyTorch's from the same seed. The gradient of the numbers is zero."""

from __future__ import annotations

from typing import Any

import numpy

from ...codegen.kernel import Kernel
from ...dispatch.decorators import operator, public
from ...kernels.create import random as kernels
from ...tensor import Tensor
from .random import stream_of, zero


def drawn(sampler: Any, node: str, **options: Any) -> Any:
    """Declare an operator that fills its tensor with what `sampler(stream, array, ...)` draws."""

    def declare(declaration: Any) -> Any:
        def changing(array: Any, *parameters: Any, generator: Any = None) -> Any:
            return sampler(stream_of(generator), array, *parameters)

        def kernel(array: Any, *parameters: Any, generator: Any = None) -> Any:
            return changing(numpy.empty_like(array), *parameters, generator=generator)

        declaration.grad_self = zero
        return operator(
            namespace=None,
            method=False,
            out=False,
            inplace=True,
            kernel=Kernel(kernel, inplace=changing),
            node=node,
            batch="leading",
            **options,
        )(declaration).inplace

    return declare


@drawn(kernels.normal_, "NormalBackward0")
class normal:
    """Fill the tensor with normally distributed numbers."""

    def forward(self: Array, mean: Float = 0.0, std: Float = 1.0, *, generator=None): ...


@drawn(kernels.log_normal_, "LogNormalBackward0")
class log_normal:
    """Fill the tensor with numbers whose logarithms are normally distributed."""

    def forward(self: Array, mean: Float = 1.0, std: Float = 2.0, *, generator=None): ...


@drawn(kernels.cauchy_, "CauchyBackward0")
class cauchy:
    """Fill the tensor with numbers from the Cauchy distribution."""

    def forward(self: Array, median: Float = 0.0, sigma: Float = 1.0, *, generator=None): ...


@drawn(kernels.exponential_, "ExponentialBackward0")
class exponential:
    """Fill the tensor with numbers from the exponential distribution of rate `lambd`."""

    def forward(self: Array, lambd: Float = 1.0, *, generator=None): ...


@drawn(kernels.geometric_, "GeometricBackward0")
class geometric:
    """Fill the tensor with how many trials of success probability `p` the first success takes."""

    def forward(self: Array, p, *, generator=None): ...


@drawn(kernels.uniform_, "UniformBackward0")
class uniform:
    """Fill the tensor with numbers evenly spread over [low, high)."""

    def forward(self: Array, low: Float = 0.0, high: Float = 1.0, *, generator=None): ...


@drawn(kernels.random_, "RandomBackward2")
class random:
    """Fill the tensor with integers from 0 to the largest that its dtype holds all integers up to."""

    def forward(self: Array, *, generator=None): ...


@drawn(
    lambda stream, array, to: kernels.random_(stream, array, 0, to),
    "RandomBackward1",
    aten_name="random",
    aten_inplace="to",
)
class random_to:
    """Fill the tensor with integers in [0, to)."""

    def forward(self: Array, to, *, generator=None): ...


@drawn(kernels.random_, "RandomBackward0", aten_name="random", aten_inplace="from")
class random_between:
    """Fill the tensor with integers in [low, high)."""

    def forward(self: Array, low, high, *, generator=None): ...


@drawn(kernels.bernoulli_, "BernoulliBackward2", aten_inplace="float")
class bernoulli:
    """Fill the tensor with 1 with probability `p`, otherwise 0."""

    def forward(self: Array, p=0.5, *, generator=None): ...


@operator(
    kernel=Kernel(
        lambda array, p, generator=None: kernels.bernoulli_(stream_of(generator), numpy.empty_like(array), p),
        inplace=lambda array, p, generator=None: kernels.bernoulli_(stream_of(generator), array, p),
    ),
    namespace=None,
    method=(),
    out=False,
    inplace=True,
    node="BernoulliBackward1",
)
class bernoulli_of_tensor:
    """Fill the tensor with 1 with the probability that the element of `p` gives, otherwise 0."""

    def forward(self: Array, p: Array, *, generator=None): ...

    grad_self = zero
    grad_p = zero


def _interval(function, limits, names, defaults):
    """The arguments `from` and `to`; the first is no name that Python allows."""
    given = dict(zip(("from", "to"), limits, strict=False))
    for name in names:
        if name not in ("from", "to") or name in given:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    return {**defaults, **given, **names}


@public(namespace=None, method=True)
def uniform_(input, *limits, generator=None, **names):
    """Fill the tensor with numbers evenly spread over [from, to): `uniform_(from=0, to=1)`."""
    interval = _interval("uniform_", limits, names, {"from": 0.0, "to": 1.0})
    return uniform(input, interval["from"], interval["to"], generator=generator)


@public(namespace=None, method=True)
def random_(input, *limits, generator=None, **names):
    """Fill the tensor with integers: `random_()`, `random_(to)` in [0, to), `random_(from, to)` in [from, to).

    Without limits, up to the largest that the dtype holds all integers up to.
    """
    if len(limits) == 1 and not names:
        return random_to(input, limits[0], generator=generator)
    interval = _interval("random_", limits, names, {})
    if not interval:
        return random(input, generator=generator)
    if "from" in interval:
        return random_between(input, interval["from"], interval.get("to"), generator=generator)
    return random_to(input, interval["to"], generator=generator)


@public(namespace=None, method=True)
def bernoulli_(input, p=0.5, *, generator=None):
    """Fill the tensor with 1 with probability `p` (a number, or a tensor of them), otherwise 0."""
    if isinstance(p, Tensor):
        if p._array.ndim > input._array.ndim:
            return bernoulli_of_tensor.inplace(input, p.expand(input._array.shape), generator=generator)
        return bernoulli_of_tensor.inplace(input, p, generator=generator)
    return bernoulli(input, p, generator=generator)


for _name in ("random_to_", "random_between_"):
    delattr(Tensor, _name)
