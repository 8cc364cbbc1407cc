"""Describe sample inputs of operators, and create them for a dtype.

A sample holds the arguments of one call, with tensors as descriptions. Many functions have kinks at multiples of 0.5. Samples of
real numbers keep a distance from them, so finite differences are precise.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

import adjoint as torch

Make = Callable[[numpy.random.RandomState, tuple[int, ...]], numpy.ndarray]


@dataclass(frozen=True)
class Input:
    """One tensor: its shape, a function that draws its elements, and whether it is differentiable."""

    shape: tuple[int, ...]
    make: Make
    differentiable: bool = True
    always_real: bool = False

    def array(self, generator, complex_numbers=False):
        values = numpy.asarray(self.make(generator, self.shape))
        if self.differentiable and complex_numbers and not self.always_real:
            return values + 1j * numpy.asarray(self.make(generator, self.shape))
        return values


@dataclass(frozen=True)
class Value:
    """An argument that is created anew for each call."""

    make: Callable[[], Any]


@dataclass(frozen=True)
class Sample:
    """One call: its arguments, and its properties.

    `complex_numbers`: whether the call is differentiable for complex numbers too, or "only" for complex numbers. `second`:
    whether to test the second derivative by finite differences. `seeded`: whether the call draws random numbers. `dims`: the
    number of dimensions from which negative dimensions are counted, by default the number of the first tensor. `before`: a
    function applied to the tensors before the call, so that changed tensors stay symmetric, for instance. `after`: a function
    applied to the result, to remove undetermined signs, for instance.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    complex_numbers: bool | str = False
    second: bool = True
    seeded: bool = False
    dims: int | None = None
    before: Callable[[torch.Tensor], torch.Tensor] | None = None
    after: Callable[..., Any] | None = None

    def build(self, complex_numbers=False, requires_grad=True):
        """Create the arguments. Return the arguments and the differentiable tensors among them."""
        generator = numpy.random.RandomState(zlib.crc32(repr([*map(_shape, self.args)]).encode()))
        tensors = []

        def built(value):
            if isinstance(value, list) and any(isinstance(item, Input) for item in value):
                return [built(item) for item in value]
            if isinstance(value, Value):
                return value.make()
            if not isinstance(value, Input):
                return value
            tensor = torch.from_numpy(numpy.array(value.array(generator, complex_numbers)))
            if value.differentiable:
                tensors.append(tensor.requires_grad_(requires_grad))
            return tensor

        args = [built(value) for value in self.args]
        kwargs = {name: built(value) for name, value in self.kwargs.items()}
        return args, kwargs, tensors

    def inputs(self):
        """Return the descriptions of the call's tensors."""
        for value in (*self.args, *self.kwargs.values()):
            if isinstance(value, Input):
                yield value
            elif isinstance(value, list):
                yield from (item for item in value if isinstance(item, Input))


def _shape(value):
    return value.shape if isinstance(value, Input) else type(value).__name__


def sample(*args, complex_numbers=False, second=True, seeded=False, dims=None, before=None, after=None, **kwargs):
    return Sample(args, kwargs, complex_numbers, second, seeded, dims, before, after)


def both(*args, **options):
    """Return one sample for both real and complex numbers."""
    return sample(*args, complex_numbers=True, **options)


# --- tensors --------------------------------------------------------------------------------------------------------


def real(*shape, low=-2.0, high=2.0):
    """Describe numbers between `low` and `high` whose distance from multiples of 0.5 is at least 0.05."""

    def make(generator, shape):
        cells = generator.randint(round(2 * low), round(2 * high), shape)
        return cells / 2 + 0.05 + 0.4 * generator.uniform(size=shape)

    return Input(shape, make)


def only_real(*shape, low=-2.0, high=2.0):
    """Describe numbers that are real even if other tensors are complex."""
    return Input(shape, real(low=low, high=high).make, always_real=True)


def positive(*shape):
    return real(*shape, low=0.5, high=2.0)


def fraction(*shape):
    """Describe numbers between 0 and 1."""
    return real(*shape, low=0.0, high=1.0)


def unit(*shape):
    """Describe numbers between -1 and 1."""
    return real(*shape, low=-1.0, high=1.0)


def distinct(*shape):
    """Describe numbers that are far from each other."""

    def make(generator, shape):
        count = int(numpy.prod(shape))
        return (generator.permutation(count).reshape(shape) - count / 2) * 0.31 + 0.1

    return Input(shape, make)


def constant(tensor):
    """Describe a tensor that is not differentiated."""
    return Input(tensor.shape, tensor.make, differentiable=False)


def index(limit, *shape):
    """Integers below `limit`."""
    return Input(shape, lambda generator, shape: generator.randint(0, limit, shape, numpy.int64), differentiable=False)


def permutation(*shape):
    """Describe a permutation of integers in each row."""

    def make(generator, shape):
        return numpy.argsort(generator.uniform(size=shape), axis=-1).astype(numpy.int64)

    return Input(shape, make, differentiable=False)


def exactly(*values, dtype=numpy.int64, shape=None):
    """Describe a tensor of these numbers."""
    array = numpy.array(values, dtype)
    if shape is not None:
        array = array.reshape(shape)
    return Input(array.shape, lambda generator, shape: array.copy(), differentiable=False)


def mask(*shape):
    return Input(shape, lambda generator, shape: generator.uniform(size=shape) < 0.5, differentiable=False)


def matrix(*shape):
    """Describe matrices that are far from singular, with distinct singular values."""

    def make(generator, shape):
        ordered = numpy.zeros(shape)
        diagonal = numpy.arange(min(shape[-2:]))
        ordered[..., diagonal, diagonal] = 2.0 + diagonal
        return ordered + generator.uniform(-0.4, 0.4, shape)

    return Input(shape, make)


def definite(*shape):
    """Describe symmetric positive definite matrices."""

    def make(generator, shape):
        half = matrix().make(generator, shape)
        return half @ half.swapaxes(-1, -2)

    return Input(shape, make)
