"""The negative log-likelihood of classes: what targets pick from log-probabilities, and their gradient, which is 0 elsewhere."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.language import Int, Pointer, S, Static, T, address, i64, loops, minimum, type_of, vectorized
from ....codegen.llvm.launch import launch
from ...memory.copying import contiguous
from ...runtime.floating import compute_dtype

_TILE = 512
"""Positions that are computed together where something lies below the classes."""

_FAR = 64
"""How many bytes are moved in the time that one element takes which lies apart."""


@loops
def pick(
    losses: Pointer[S], factors: Pointer[S], x: Pointer[T], target: Pointer[i64], weight: Pointer[T], classes: Int, inner: Int,
    ignored: Int, WEIGHTED: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """From (outer, classes, inner): the loss at each target times the weight of its class, and that weight; 0 where ignored."""
    outer = start // inner
    j = start - outer * inner
    for i in range(start, stop):
        chosen = target[i]
        if chosen == ignored:
            losses[i] = S(0)
            factors[i] = S(0)
        else:
            factor = S(weight[chosen]) if WEIGHTED else S(1)
            losses[i] = -S(x[(outer * classes + chosen) * inner + j]) * factor
            factors[i] = factor
        j += 1
        if j == inner:
            j = 0
            outer += 1


@loops
def spread(
    out: Pointer[T], grad: Pointer[S], target: Pointer[i64], weight: Pointer[T], classes: Int, inner: Int, ignored: Int,
    STEP: Static, WEIGHTED: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """The gradient of the log-probabilities, `_TILE` positions at a time. `STEP`: 0 if there is one gradient for all."""
    tiles = (inner + _TILE - 1) // _TILE
    for piece in range(start, stop):
        outer = piece // tiles
        first = (piece - outer * tiles) * _TILE
        width = minimum(inner - first, _TILE)
        if inner == 1:
            for i in vectorized(classes):
                out[outer * classes + i] = T(0)
        else:
            for c in range(classes):
                row = (outer * classes + c) * inner + first
                for i in vectorized(width):
                    out[row + i] = T(0)
        for i in range(width):
            at = outer * inner + first + i
            chosen = target[at]
            if chosen != ignored:
                value = -grad[at * STEP]
                if WEIGHTED:
                    value = value * S(weight[chosen])
                out[(outer * classes + chosen) * inner + first + i] = T(value)


@functools.lru_cache(32)
def _picking(dtype: Any, weighted: bool) -> Any:
    return pick.compiled(T=type_of(dtype), S=type_of(compute_dtype(dtype)), WEIGHTED=weighted)


@functools.lru_cache(32)
def _spreading(dtype: Any, compute: Any, step: int, weighted: bool) -> Any:
    return spread.compiled(T=type_of(dtype), S=type_of(compute), STEP=step, WEIGHTED=weighted)


def losses_of(log_probs: ndarray, target: ndarray, weight: ndarray | None, dim: int, ignored: int) -> Any:
    """The loss and the weight of each position; all targets are classes or ignored. NotImplemented if there is no loop for it."""
    if type_of(log_probs.dtype) is None or not target.size:
        return NotImplemented
    x, target = contiguous(log_probs), contiguous(target)
    weights = x if weight is None else contiguous(weight)
    losses, factors = (numpy.empty(target.shape, compute_dtype(x.dtype)) for _ in range(2))
    places = [address(item) for item in (losses, factors, x, target, weights)]
    inner = math.prod(x.shape[dim + 1 :])
    launch(_picking(x.dtype, weight is not None), target.size, _FAR, *places, x.shape[dim], inner, ignored)
    return losses, factors


def gradient_of(
    grad: ndarray, target: ndarray, weight: ndarray | None, shape: tuple[int, ...], dim: int, ignored: int, dtype: Any
) -> Any:
    """The gradient of log-probabilities of this shape and dtype, from one gradient for each position or for all."""
    compute = compute_dtype(dtype)
    if type_of(dtype) is None or not target.size:
        return NotImplemented
    grad, target = contiguous(grad.astype(compute, copy=False)), contiguous(target)
    out = numpy.empty(shape, dtype)
    weights = out if weight is None else contiguous(weight)
    inner = math.prod(shape[dim + 1 :])
    tiles = -(-inner // _TILE)
    function = _spreading(out.dtype, compute, int(grad.ndim > 0), weight is not None)
    places = [address(item) for item in (out, grad, target, weights)]
    pieces = math.prod(shape[:dim]) * tiles
    launch(function, pieces, out.nbytes // pieces + _FAR, *places, shape[dim], inner, ignored)
    return out
