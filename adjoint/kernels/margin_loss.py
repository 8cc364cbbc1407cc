"""Losses that keep scores apart by a margin: hinges between classes, and the logistic loss of signs."""

from __future__ import annotations

from typing import Any

import numpy

from .loss import reduced
from .precision import type_name, widen

Array = numpy.ndarray[Any, Any]


def soft_margin_loss(self: Array, target: Array, reduction: str) -> Array:
    """`log(1 + exp(-target * self))`, for targets 1 and -1."""
    if self.dtype.kind in "iub":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {type_name(self.dtype)}")
    return reduced(numpy.logaddexp(0, -(widen(target) * widen(self))), reduction, self.dtype)


def _rows(self: Array) -> Array:
    """The scores as a matrix, one row for each sample."""
    rows = self if self.ndim == 2 else self.reshape(1, -1)
    if self.ndim > 2 or rows.shape[1] == 0:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}"
        )
    return rows


def _require(name: str, self: Array, target: Array) -> None:
    if target.dtype != numpy.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target.dtype)}")
    if self.dtype.char not in "fd":
        raise NotImplementedError(f"\"{name}_cpu_kernel\" not implemented for '{type_name(self.dtype)}'")


def _share(grad: Array, reduction: str, batch: int) -> Array:
    """The gradient of each row's loss, as a column."""
    grad = grad.reshape(-1, 1)
    return grad / batch if reduction == "mean" else grad


# --- one class for each sample --------------------------------------------------------------------------------


def multi_margin_loss(self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: str) -> Array:
    """The mean over the classes i ≠ target of `max(0, margin - self[target] + self[i]) ** p`, times `weight[target]`."""
    rows = _rows(self)
    batch, classes = rows.shape
    if target.size != batch or target.ndim > 1:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size [{batch}], but got {list(target.shape)}. "
            f"Input has shape {list(self.shape)}."
        )
    if weight is not None and weight.size != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _require("multi_margin_loss", self, target)
    if target.size and not ((target >= 0) & (target < classes)).all():
        raise RuntimeError("target out of range")
    hinges = _multi_margin_hinges(rows, target, margin)
    loss = numpy.add.reduce(hinges if p == 1 else hinges * hinges, 1) / classes
    if weight is not None:
        loss *= weight[target.reshape(-1)]
    return reduced(loss.reshape(target.shape), reduction, self.dtype)


def _multi_margin_hinges(rows: Array, target: Array, margin: float) -> Array:
    column = target.reshape(-1, 1)
    hinges = rows - numpy.take_along_axis(rows, column, 1)
    hinges += rows.dtype.type(margin)
    numpy.maximum(hinges, 0, out=hinges)
    numpy.put_along_axis(hinges, column, 0, 1)
    return hinges


def multi_margin_loss_backward(
    grad: Array, self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: str
) -> Array:
    """The gradient of the scores."""
    rows = _rows(self)
    batch, classes = rows.shape
    hinges = _multi_margin_hinges(rows, target, margin)
    result = (hinges > 0).astype(rows.dtype) if p == 1 else 2 * hinges
    result *= _share(grad, reduction, batch) / classes
    if weight is not None:
        result *= weight[target.reshape(-1, 1)]
    numpy.put_along_axis(result, target.reshape(-1, 1), -numpy.add.reduce(result, 1, keepdims=True), 1)
    return result.reshape(self.shape)


# --- several classes for each sample --------------------------------------------------------------------------


def multilabel_margin_loss(self: Array, target: Array, reduction: str) -> tuple[Array, Array]:
    """The loss, and which classes are labels, as numbers.

    The loss is the sum of `max(0, 1 - self[j] + self[i])` over the labels j and the classes i that are none, divided by
    the number of classes. The labels of a row are the entries of `target` before its first negative one.
    """
    rows = _rows(self)
    if self.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    if target.dtype == numpy.int64 and target.size and not ((target >= -1) & (target < rows.shape[1])).all():
        raise RuntimeError("argument #2 'target' is out of range")
    _require("multilabel_margin_loss", self, target)
    listed, labels = _listed(target.reshape(rows.shape))
    is_target = numpy.zeros(rows.shape, rows.dtype)
    sample, _ = listed.nonzero()
    is_target[sample, labels[listed]] = 1
    loss = numpy.add.reduce(_multilabel_hinges(rows, listed, labels, is_target), (1, 2)) / rows.shape[1]
    return reduced(loss.reshape(self.shape[:-1]), reduction, self.dtype), is_target.reshape(self.shape)


def _listed(target: Array) -> tuple[Array, Array]:
    """Which entries are labels, and the labels, 0 where there is none."""
    listed = numpy.logical_and.accumulate(target >= 0, 1)
    return listed, numpy.where(listed, target, 0)


def _multilabel_hinges(rows: Array, listed: Array, labels: Array, is_target: Array) -> Array:
    """The hinge of each listed label (dimension 1) against each class (dimension 2)."""
    hinges = rows[:, None, :] - numpy.take_along_axis(rows, labels, 1)[:, :, None]
    hinges += rows.dtype.type(1)
    numpy.maximum(hinges, 0, out=hinges)
    hinges *= listed[:, :, None]
    hinges *= is_target[:, None, :] == 0
    return hinges


def multilabel_margin_loss_backward(grad: Array, self: Array, target: Array, is_target: Array, reduction: str) -> Array:
    """The gradient of the scores."""
    rows = _rows(self)
    listed, labels = _listed(target.reshape(rows.shape))
    active = _multilabel_hinges(rows, listed, labels, is_target.reshape(rows.shape)) > 0
    result = numpy.add.reduce(active, 1, dtype=rows.dtype)
    sample = numpy.arange(len(rows))[:, None]
    numpy.subtract.at(result, (sample, labels), numpy.add.reduce(active, 2, dtype=rows.dtype))
    result *= _share(grad, reduction, len(rows)) / rows.shape[1]
    return result.reshape(self.shape)
