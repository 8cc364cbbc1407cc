"""Samples of operators that draw random numbers. The derivatives of these operators are constant, and mostly zero."""

import numpy

from .sampling import constant, exactly, fraction, positive, real, sample

_EMPTY, _NUMBER = real(0, 3), real()


def _in_place(*args):
    return [sample(tensor, *args, seeded=True) for tensor in (real(2, 3), _EMPTY, _NUMBER)]


SAMPLES = {
    "normal_of_mean": _in_place(0.5),
    "normal_of_std": [sample(0.5, tensor, seeded=True) for tensor in (positive(2, 3), positive(0, 3), positive())],
    "normal_of_both": [
        sample(real(2, 3), positive(3), seeded=True),
        sample(_EMPTY, positive(0, 3), seeded=True),
        sample(_NUMBER, positive(), seeded=True),
    ],
    "bernoulli_of_each": [sample(tensor, seeded=True) for tensor in (fraction(2, 3), fraction(0, 3), fraction())],
    "bernoulli_of_one": _in_place(0.3),
    "poisson": [sample(tensor, seeded=True) for tensor in (positive(2, 3), positive(0, 3), positive())],
    "binomial": [
        sample(exactly([5.0, 20.0, 80.0], [3.0, 0.0, 9.0], dtype=numpy.float64), fraction(3), seeded=True),
        sample(exactly(4.0, 5.0, dtype=numpy.float64), fraction(3, 2), seeded=True),
        *(sample(constant(positive(*shape)), fraction(*shape), seeded=True) for shape in ((0, 3), ())),
    ],
    "_standard_gamma": [sample(tensor, seeded=True) for tensor in (positive(2, 3), positive(0, 3), positive())],
    "_standard_gamma_grad": [sample(positive(*shape), positive(*shape)) for shape in ((2, 3), (0, 3), ())],
    "_sample_dirichlet": [sample(constant(positive(*shape)), seeded=True) for shape in ((2, 3), (0, 3), ())],
    "_dirichlet_grad": [
        sample(constant(fraction(*shape)), constant(positive(*shape)), constant(real(*shape, low=3.0, high=4.0)))
        for shape in ((2, 3), (0, 3), ())
    ],
    "multinomial": [
        sample(constant(positive(2, 3)), 2, seeded=True),
        sample(constant(positive(3)), 5, True, seeded=True),
    ],
    **{name: _in_place() for name in "normal log_normal cauchy exponential uniform random bernoulli".split()},
    "geometric": _in_place(0.3),
    "random_to": _in_place(7),
    "random_between": _in_place(2, 7),
    "bernoulli_of_tensor": [
        sample(tensor, constant(fraction(*tensor.shape)), seeded=True) for tensor in (real(2, 3), _EMPTY, _NUMBER)
    ],
}
