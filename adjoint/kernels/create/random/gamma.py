"""Distributions drawn by rejection of normal and uniform numbers: `standard_gamma`, `sample_dirichlet`, `binomial`.

All of them consume a random number of words, so numbers are drawn one by one, in float64. PyTorch rounds some intermediate
results to the type of its parameters. This module rounds these results too, so that the numbers are equal.

The algorithms are written in the language of kernels (`kernels.compiled.create.rejection`). Without compiled code they
run in Python.
"""

import functools
import math
from functools import partial
from typing import Any

import numpy
from numpy import ndarray

from ...._runtime.first_use import import_late
from ....codegen.elementary import on_arrays
from ....codegen.plans import compiled
from ...runtime.costs import PIECEWISE
from ...runtime.floating import FLOAT32, FLOAT64, refuse, type_name
from ..mt19937 import Stream
from .uniform import in_tiles


def _logarithm(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


_MEANINGS: dict[str, Any] = {
    "f64": float, "f32": lambda x: float(numpy.float32(x)), "fraction": Stream.double, "log": _logarithm, "floor": _floor,
    "log1p": math.log1p, "exp": math.exp, "lgamma": math.lgamma, "sine": math.sin, "cosine": math.cos, "power": math.pow,
    "sqrt": math.sqrt, "fabs": abs,
}  # fmt: skip
"""The meanings of names of the kernel language for Python's numbers."""


@functools.cache
def _in_python(name: str) -> Any:
    return on_arrays(getattr(import_late("adjoint.kernels.compiled.create.rejection"), name), _MEANINGS)


def run_in_python(kernel: str, stream: Stream, values: ndarray, *others: Any) -> ndarray:
    """Return the result of a kernel of `kernels.compiled.create.rejection`, run in Python, for values in float64."""
    numbers = values.ravel().tolist()
    _in_python(kernel)(stream, numbers, *others, len(numbers))
    return numpy.array(numbers)


def _require_single_or_double(name: str, array: ndarray) -> None:
    if array.dtype not in (FLOAT32, FLOAT64):
        raise refuse(name, array.dtype)


def standard_gamma(stream: Stream, concentration: ndarray) -> ndarray:
    """Return numbers from gamma distributions with the given concentrations and rate 1, in a new array of their shape and type.

    The method is from Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. A number with a
    concentration below 1 is drawn with a concentration that is larger by 1, and multiplied by a power of a uniform
    number. No number is less than the smallest normal floating-point number.
    """
    _require_single_or_double("gamma_cpu", concentration)
    result = in_tiles(partial(_gammas, single=concentration.dtype == FLOAT32), stream, concentration)
    return numpy.maximum(result, numpy.finfo(result.dtype).tiny, out=result)


@compiled("create.rejection.standard_gamma", least=PIECEWISE)
def _gammas(concentrations: ndarray, stream: Stream, single: bool) -> ndarray:
    """Return gamma distributed numbers. `single`: whether the concentrations, which are float64 here, were float32."""
    waiting, has_waiting = [stream.normal or 0.0], [stream.normal is not None]
    drawn = run_in_python("gamma_kernel", stream, concentrations, waiting, has_waiting, single)
    stream.normal = waiting[0] if has_waiting[0] else None
    return drawn


def sample_dirichlet(stream: Stream, concentration: ndarray) -> ndarray:
    """Return points of the simplex from Dirichlet distributions along the last dimension: gamma samples over their sum."""
    _require_single_or_double("dirichlet", concentration)
    gammas = standard_gamma(stream, concentration.astype(FLOAT64))
    total = gammas.sum(-1, keepdims=True) if gammas.ndim else gammas
    result = (gammas / total).astype(concentration.dtype)
    limits = numpy.finfo(result.dtype)
    return numpy.clip(result, limits.tiny, 1.0 - limits.epsneg)


def binomial(stream: Stream, count: ndarray, prob: ndarray) -> ndarray:
    """Return the number of successes among `count` trials that succeed with probability `prob`.

    The result is a new array of their common shape and type. If 10 or more successes are expected, the method is the
    algorithm BTRS of Hörmann, "The generation of binomial random variates", 1993. Otherwise, geometric waiting times
    are added up.
    """
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {type_name(prob.dtype)} but expected {type_name(count.dtype)}")
    _require_single_or_double("binomial_cpu", count)
    return in_tiles(partial(_binomials, single=count.dtype == FLOAT32), stream, *numpy.broadcast_arrays(count, prob))


@compiled("create.rejection.binomial", least=PIECEWISE)
def _binomials(counts: ndarray, probs: ndarray, stream: Stream, single: bool) -> ndarray:
    """Return numbers of successes. `single`: whether the numbers of trials, which are float64 here, were float32."""
    return run_in_python("binomial_kernel", stream, counts, probs.ravel().tolist(), single)
