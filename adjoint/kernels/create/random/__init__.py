"""Random numbers that equal the numbers of PyTorch's CPU generator bit for bit, from the same seed.

A `Stream` is the generator's state. Samplers with a trailing underscore fill a given array in the order of its memory,
and return it. Other samplers create an array. All samplers have the stream as first parameter and hold its lock while
they draw.

>>> import numpy
>>> stream = Stream(0)
>>> random_(stream, numpy.empty(8, numpy.int64), 0, 10).tolist()
[4, 9, 3, 0, 3, 9, 7, 3]
"""

from ..mt19937 import DEFAULT_SEED, STATE_BYTES, Stream
from .continuous import cauchy_, check_deviations, exponential_, log_normal_, normal, normal_
from .discrete import bernoulli, bernoulli_, dropout, dropout_backward, dropout_mask, geometric_, multinomial, poisson
from .gamma import binomial, sample_dirichlet, standard_gamma
from .uniform import random_, randperm, uniform_

__all__ = [
    "DEFAULT_SEED",
    "STATE_BYTES",
    "Stream",
    "bernoulli",
    "bernoulli_",
    "binomial",
    "cauchy_",
    "check_deviations",
    "dropout",
    "dropout_backward",
    "dropout_mask",
    "exponential_",
    "geometric_",
    "log_normal_",
    "multinomial",
    "normal",
    "normal_",
    "poisson",
    "random_",
    "randperm",
    "sample_dirichlet",
    "standard_gamma",
    "uniform_",
]
