"""Discrete distributions: `bernoulli_`, dropout masks, `geometric_`, `multinomial`, `poisson`."""

import functools
import math
from typing import Any

import numpy
from numpy import ndarray

from .... import dtypes
from ....codegen.plans import compiled
from ...math.fma import each
from ...memory.copying import empty_like
from ...reduce.counting import searchsorted
from ...reduce.sorting import topk
from ...runtime.costs import PIECEWISE, TILE
from ...runtime.floating import FLOAT32, FLOAT64, compute_dtype, is_floating, is_inexact, refuse, type_name, unwarned
from ...runtime.narrow_array import is_narrow
from ...runtime.parallel import parallel_rows
from ..mt19937 import UINT32, Stream
from .continuous import exponential_
from .gamma import run_in_python
from .targets import memory_order, require_floating
from .uniform import UNSIGNED, fractions, fractions53, in_parts, in_tiles

ONE_BITS = numpy.float32(1.0).view(numpy.uint32)


def bernoulli(stream: Stream, p: ndarray) -> ndarray:
    """Return a new array with the shape and type of `p`. Its elements are 1 with probability `p` and 0 otherwise."""
    return bernoulli_(stream, numpy.empty(p.shape, p.dtype), p)


def bernoulli_(stream: Stream, out: ndarray, p: float | ndarray = 0.5) -> ndarray:
    """Set each element of `out`, which has any real type, to 1 with probability `p`, otherwise to 0. Return `out`.

    `p` is a number or a floating-point array that broadcasts to the shape of `out`. A float64 array or a number is
    compared with 53 random bits, and an array of another type with 24 random bits.
    """
    if isinstance(p, ndarray):
        return _bernoulli_each(stream, out, p)
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if not out.size:
        return out
    _require_real("bernoulli_scalar_cpu_", out.dtype)
    with stream.lock:
        return in_parts(out, lambda n: fractions(stream, n, FLOAT64) < p)


def _bernoulli_each(stream: Stream, out: ndarray, p: ndarray) -> ndarray:
    if not out.size:
        return out
    _require_real("bernoulli_tensor_cpu_self_", out.dtype)
    require_floating("bernoulli_tensor_cpu_p_", p.dtype)
    if not _within_unit(p):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to adjoint.)"
        )
    if p.shape == out.shape and out.flags.c_contiguous and (p.dtype is FLOAT32 or p.dtype is FLOAT64):
        flat, limits = out.reshape(-1), p.reshape(-1)
        with stream.lock:
            for start in range(0, out.size, TILE):
                part = slice(start, start + TILE)
                drawn = fractions(stream, len(limits[part]), p.dtype)
                numpy.less(drawn, limits[part], flat[part], casting="unsafe")
        return out
    order = memory_order(out)
    target, limits = out.transpose(order), numpy.broadcast_to(p, out.shape).transpose(order)
    with stream.lock:
        drawn = fractions(stream, out.size, p.dtype)
    target[...] = drawn.reshape(target.shape) < limits.astype(drawn.dtype, copy=False)
    return out


def _within_unit(p: ndarray) -> bool:
    """Return whether all numbers are between 0 and 1. Except for -0, their bits are then no larger than the bits of 1."""
    if p.dtype is FLOAT32 and numpy.maximum.reduce(p.view(UINT32), None) <= ONE_BITS:
        return True
    return bool(((p >= 0) & (p <= 1)).all())


def _require_real(kernel: str, dtype: "numpy.dtype[Any]") -> None:
    if dtype.kind == "c" or (dtype.kind == "u" and dtype in UNSIGNED) or is_narrow(dtype):
        raise refuse(kernel, dtype)


def dropout_mask(stream: Stream, out: ndarray, p: float) -> ndarray:
    """Fill `out` with the factors of dropout: 0 with probability `p`, otherwise 1 / (1 - p). Return `out`.

    Nothing is drawn if `p` is 0 or 1. `out` has the type of the dropout's input, and its order of dimensions in memory
    (`numpy.empty_like(input)`), so that the same positions get the same numbers. For `dropout2d` and similar functions,
    it has the shape (N, C, 1, 1).
    """
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p in (0.0, 1.0):
        out[...] = 1.0 - p
        return out
    scale = _dropout_scale(p, out.dtype)
    bernoulli_(stream, out, 1.0 - p)
    if math.isinf(scale):
        numpy.multiply(out, scale, out=out, where=out != 0)
    else:
        out *= scale
    return out


@functools.lru_cache(16)
def _dropout_scale(p: float, dtype: "numpy.dtype[Any]") -> Any:
    """Return 1 / (1 - p), which may be infinite in half precision."""
    work = compute_dtype(dtype)
    with unwarned():
        return (numpy.ones((), work) / work.type(1.0 - p)).astype(dtype)


def geometric_(stream: Stream, out: ndarray, p: float) -> ndarray:
    """Fill `out`, which has any real type except bool, with the number of trials until the first success with probability `p`.

    The numbers are computed by inversion: log(u) / log(1 - p), rounded up. Return `out`.
    """
    if not 0.0 < p < 1.0:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if not out.size:
        return out
    if out.dtype.kind == "b":
        raise refuse("geometric_cpu", out.dtype)
    _require_real("geometric_cpu", out.dtype)
    base = math.log1p(-p)

    def make(n: int) -> ndarray:
        drawn = fractions53(stream, n)
        quotients = numpy.log(drawn) / base
        nearest = numpy.rint(quotients)
        doubtful = (numpy.abs(quotients - nearest) <= nearest * 2.0**-48) & (drawn > 0.0)
        quotients[doubtful] = each(math.log, drawn[doubtful]) / base
        return numpy.ceil(quotients)

    with stream.lock, unwarned():
        return in_parts(out, make)


def multinomial(stream: Stream, probs: ndarray, num_samples: int, replacement: bool = False) -> ndarray:
    """Return a new int64 array of indices, drawn with the probabilities in each row of `probs`. The sum of a row need not be 1.

    `probs` has the shape (m, n) or (n,), and the result has the shape (m, num_samples) or (num_samples,). Without
    replacement, or for one sample, the indices of the largest `probs / e` are taken, where `e` is exponentially
    distributed. With replacement, the cumulative sum is searched.
    """
    _check_probabilities(probs, num_samples, replacement)
    if not probs.size:
        return numpy.empty((*probs.shape[:-1], num_samples), numpy.int64)
    with stream.lock:
        if replacement and num_samples > 1:
            return _with_replacement(stream, probs, num_samples)
        ranks = exponential_(stream, empty_like(probs))
    work = compute_dtype(probs.dtype)
    rows, shares = ranks.reshape(-1, ranks.shape[-1]), probs.reshape(-1, ranks.shape[-1])
    result = numpy.empty((len(rows), num_samples), numpy.int64)

    def choose(start: int, stop: int) -> None:
        waiting = rows[start:stop]
        with unwarned():
            waiting[...] = shares[start:stop].astype(work, copy=False) / waiting.astype(work, copy=False)
        result[start:stop] = waiting.argmax(-1)[:, None] if num_samples == 1 else topk(waiting, num_samples)[1]

    parallel_rows(choose, len(rows), (8 + 4 * work.itemsize) * rows.shape[1])
    return result.reshape(*probs.shape[:-1], num_samples)


def _check_probabilities(probs: ndarray, num_samples: int, replacement: bool) -> None:
    if probs.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not is_floating(probs.dtype):
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {type_name(probs.dtype)}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > probs.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if probs.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if not probs.shape[-1] and num_samples == 1:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    with unwarned():
        negative, endless = probs.size and not probs.min() >= 0, probs.size and not probs.max() < math.inf
    if replacement and num_samples > 1:
        if negative:
            raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
        if endless:
            raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    elif negative or endless:
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (probs.sum(-1, dtype=numpy.float64) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _with_replacement(stream: Stream, probs: ndarray, num_samples: int) -> ndarray:
    rows, work = probs.reshape(-1, probs.shape[-1]), compute_dtype(probs.dtype)
    result = numpy.empty((len(rows), num_samples), numpy.int64)
    step = max(TILE // rows.shape[1], 1)
    for start in range(0, len(rows), step):
        sums = numpy.add.accumulate(rows[start : start + step].astype(work, copy=False), -1)
        sums /= sums[:, -1:].copy()
        sums[:, -1] = 1.0
        drawn = fractions53(stream, len(sums) * num_samples).reshape(len(sums), num_samples)
        result[start : start + step] = searchsorted(sums.astype(numpy.float64), drawn)
    return result.reshape(*probs.shape[:-1], num_samples)


def poisson(stream: Stream, rate: ndarray) -> ndarray:
    """Return Poisson numbers of events as a new array.

    `rate` contains the expected numbers, and determines the shape and the type. For a rate below 10, uniform numbers
    are multiplied (Knuth, The Art of Computer Programming, volume 2, 3.4.1). For a larger rate, transformed rejection
    is used (Hörmann, "The transformed rejection method for generating Poisson random variables", 1993). Both methods
    consume a random number of words, so numbers are drawn one by one.
    """
    require_floating("poisson_cpu", rate.dtype)
    if not (rate >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return in_tiles(_poisson_counts, stream, rate)


@compiled("create.rejection.poisson", least=PIECEWISE)
def _poisson_counts(rates: ndarray, stream: Stream) -> ndarray:
    """Return numbers of events for rates in float64."""
    return run_in_python("poisson_kernel", stream, rates)


def dropout_backward(grad_output: ndarray, mask: ndarray, scale: float) -> ndarray:
    """Return the gradient of dropout's input. For integers, it has the default dtype."""
    dtype = grad_output.dtype if is_inexact(grad_output.dtype) else dtypes.get_default_dtype().numpy
    return (grad_output * mask).astype(dtype, copy=False) * dtype.type(scale)


def dropout(stream: Stream, x: ndarray, p: float, train: bool | None) -> tuple[ndarray, ndarray]:
    """Return the elements times a `dropout_mask` (unless `train` is False), and which elements are kept."""
    if train is False:
        return x.copy(), numpy.ones(x.shape, numpy.bool_)
    noise = dropout_mask(stream, empty_like(x), p)
    return x * noise, numpy.asarray(noise != 0)
