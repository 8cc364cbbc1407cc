"""Losses of elementwise differences, and their gradients, in as few passes as NumPy allows."""

from __future__ import annotations

from typing import Any

import numpy

from .precision import type_name, widen

Array = numpy.ndarray[Any, Any]


def reduced(loss: Array, reduction: str, kind: Any) -> Array:
    """The mean, the sum, or the losses themselves, in dtype `kind`."""
    if reduction == "none":
        return loss.astype(kind, copy=False)
    total = numpy.add.reduce(loss, axis=None)
    if reduction == "mean":
        total = numpy.true_divide(total, loss.size) if loss.size else numpy.full((), numpy.nan)
    return numpy.asarray(total, dtype=kind)


def mse_loss(self: Array, target: Array, reduction: str) -> Array:
    """`(self - target)²`."""
    if self.dtype.kind in "iub":
        raise NotImplementedError(f"\"mse_cpu\" not implemented for '{type_name(self.dtype)}'")
    difference = widen(self) - widen(target)
    if reduction != "none" and difference.flags.c_contiguous and difference.dtype.char in "fd":
        flat = difference.reshape(-1)
        numpy.multiply(flat, flat, out=flat)
        return reduced(flat, reduction, self.dtype)
    return reduced(difference * difference, reduction, self.dtype)


def smooth_l1_loss(self: Array, target: Array, reduction: str, beta: float) -> Array:
    """`d² / (2 beta)` where `d = |self - target|` is below `beta`, else `d - beta / 2`."""
    distance = numpy.abs(widen(self) - widen(target))
    loss = numpy.where(distance < beta, distance * distance * (0.5 / beta) if beta else distance, distance - 0.5 * beta)
    return reduced(loss, reduction, self.dtype)


def huber_loss(self: Array, target: Array, reduction: str, delta: float) -> Array:
    """`d² / 2` where `d = |self - target|` is at most `delta`, else `delta (d - delta / 2)`."""
    distance = numpy.abs(widen(self) - widen(target))
    loss = numpy.where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))
    return reduced(loss, reduction, self.dtype)


def binary_cross_entropy(self: Array, target: Array, weight: Array | None, reduction: str) -> Array:
    """`-(target log self + (1 - target) log(1 - self))`, each logarithm at least -100."""
    if self.size and not ((self >= 0) & (self <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    probability, wanted = widen(self), widen(target)
    loss = (wanted - 1) * numpy.maximum(numpy.log1p(-probability), -100) - wanted * numpy.maximum(
        numpy.log(probability), -100
    )
    if weight is not None:
        loss = loss * widen(weight)
    return reduced(loss, reduction, self.dtype)


def binary_cross_entropy_backward(
    grad: Array, self: Array, target: Array, weight: Array | None, reduction: str
) -> Array:
    """The gradient of the probabilities, `(self - target) / (self (1 - self))`, finite also at 0 and 1."""
    probability = widen(self)
    result = (probability - widen(target)) / numpy.maximum((1 - probability) * probability, 1e-12)
    result = result * (widen(grad) / (self.size if reduction == "mean" else 1))
    if weight is not None:
        result = result * widen(weight)
    return result.astype(self.dtype, copy=False)


def binary_cross_entropy_with_logits(
    self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Array:
    """`binary_cross_entropy` of the sigmoid of `self`: `(1 - target) x + (1 + (pos_weight - 1) target) log(1 + exp(-x))`."""
    x, wanted = widen(self), widen(target)
    log_one_plus = numpy.log1p(numpy.exp(-numpy.abs(x))) + numpy.maximum(-x, 0)
    if pos_weight is not None:
        log_one_plus = (1 + (widen(pos_weight) - 1) * wanted) * log_one_plus
    loss = (1 - wanted) * x + log_one_plus
    if weight is not None:
        loss = loss * widen(weight)
    return reduced(loss, reduction, self.dtype)
