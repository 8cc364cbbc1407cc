"""Losses and their gradients: losses of elementwise differences, of log-probabilities of classes, and of margins."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.acceleration import LOOPS
from ...codegen.plans import Memory, Plan, compiled
from ...codegen.pointwise import pointwise
from ...codegen.recording import recordable
from ...codegen.rows import row_program
from ...codegen.tracing import PerColumn, PerRow, row, xp
from ..index.masking import clamp
from ..index.places import out_of_bounds
from ..memory.copying import rounded, widen
from ..reduce.reduction import total as total_of
from ..runtime.costs import LARGE
from ..runtime.floating import INT64, Array, check_floating, compute_dtype, is_floating, quietly, refuse, type_name
from ..runtime.parallel import parallel_rows


def reduced(loss: Array, reduction: str, kind: Any) -> Array:
    """Return the mean, the sum, or the losses themselves, in the dtype `kind`."""
    if reduction == "none":
        return rounded(loss, kind)
    total = total_of(loss) if LOOPS.takes(loss.size, LARGE) else numpy.add.reduce(loss, None)
    if reduction == "mean":
        total = total / loss.size if loss.size else numpy.nan
    return asarray(total, kind)


@pointwise("mse_cpu")
def _squared_distance(self: Array, target: Array) -> Any:
    difference = self - target
    return difference * difference


@pointwise("smooth_l1_cpu")
def _smooth_distance(self: Array, target: Array, beta: float) -> Any:
    distance = xp.abs(self - target)
    if beta == 0:
        return distance
    return xp.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)


@pointwise("huber_cpu")
def _huber_distance(self: Array, target: Array, delta: float) -> Any:
    distance = xp.abs(self - target)
    return xp.where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))


@pointwise("soft_margin_cpu")
def _soft_margin(self: Array, target: Array) -> Any:
    opposite = -(target * self)
    return xp.maximum(opposite, 0) + xp.log1p(xp.exp(-xp.abs(opposite)))


@pointwise("mse_backward_cpu")
def _shared_difference(self: Array, target: Array, share: Array, divisor: float, limit: float | None) -> Any:
    difference = (self - target) / divisor
    if limit is None:
        return difference * share
    return xp.where(difference < -limit, -limit, xp.where(difference > limit, limit, difference)) * share


def shared_difference(
    self: Array, target: Array, share: Array, divisor: float = 1.0, limit: float | None = None
) -> Any:
    """Return `(self - target) / divisor`, limited to the magnitude `limit`, times `share`. One of the arrays may be boolean."""
    if self.dtype is target.dtype and is_floating(self.dtype) and LOOPS.takes(self.size, LARGE):
        return _shared_difference.general(self, target, numpy.asarray(share, self.dtype), divisor, limit)
    difference = self - target if self.dtype == target.dtype else self * 1 - target * 1
    if divisor != 1:
        difference = difference / divisor
    return (difference if limit is None else clamp(difference, -limit, limit)) * share


def mse_loss(self: Array, target: Array, reduction: str) -> Array:
    """Return `(self - target)²`."""
    check_floating("mse_cpu", self)
    if LOOPS.takes(self.size, LARGE):
        return reduced(_squared_distance.general(self, target), reduction, self.dtype)
    difference = widen(self) - widen(target)
    if reduction != "none" and difference.flags.c_contiguous and difference.dtype.char in "fd":
        flat = difference.reshape(-1)
        numpy.multiply(flat, flat, out=flat)
        return reduced(flat, reduction, self.dtype)
    return reduced(difference * difference, reduction, self.dtype)


def smooth_l1_loss(self: Array, target: Array, reduction: str, beta: float) -> Array:
    """Return `d² / (2 beta)` where `d = |self - target|` is less than `beta`, and `d - beta / 2` elsewhere."""
    return reduced(_smooth_distance.general(widen(self), widen(target), beta), reduction, self.dtype)


def huber_loss(self: Array, target: Array, reduction: str, delta: float) -> Array:
    """Return `d² / 2` where `d = |self - target|` is at most `delta`, and `delta (d - delta / 2)` elsewhere."""
    return reduced(_huber_distance.general(widen(self), widen(target), delta), reduction, self.dtype)


def binary_cross_entropy(self: Array, target: Array, weight: Array | None, reduction: str) -> Array:
    """Return `-(target log self + (1 - target) log(1 - self))`. Each logarithm is at least -100."""
    check_floating("binary_cross_entropy", self)
    probability, wanted = widen(self), widen(target)
    for name, given in ("input", probability), ("target", wanted):
        if given.size and not quietly(_are_between, given, 0, 1):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    loss = _probability_loss(probability, wanted)
    if weight is not None:
        loss = loss * widen(weight)
    return reduced(loss, reduction, self.dtype)


def _are_between(given: Array, low: float, high: float) -> bool:
    return bool(given.min() >= low and given.max() <= high)


@pointwise("binary_cross_entropy")
def _probability_loss(self: Array, target: Array) -> Any:
    return (target - 1) * xp.maximum(xp.log1p(-self), -100) - target * xp.maximum(xp.log(self), -100)


@pointwise("binary_cross_entropy")
def _probability_slope(self: Array, target: Array, grad: Array) -> Any:
    return (self - target) / xp.maximum((1 - self) * self, 1e-12) * grad


def binary_cross_entropy_backward(
    grad: Array, self: Array, target: Array, weight: Array | None, reduction: str
) -> Array:
    """Return the gradient of the probabilities, `(self - target) / (self (1 - self))`, which is finite at 0 and 1 too."""
    share = numpy.asarray(widen(grad) / (self.size if reduction == "mean" else 1))
    result = _probability_slope(widen(self), widen(target), share)
    if weight is not None:
        result = result * widen(weight)
    return rounded(result, self.dtype)


@pointwise("binary_cross_entropy_with_logits")
def _logit_loss(self: Array, target: Array) -> Any:
    return (1 - target) * self + (xp.log1p(xp.exp(-abs(self))) + xp.maximum(-self, 0))


@pointwise("binary_cross_entropy_with_logits")
def _weighted_logit_loss(self: Array, target: Array, pos_weight: Array) -> Any:
    log_one_plus = xp.log1p(xp.exp(-abs(self))) + xp.maximum(-self, 0)
    return (1 - target) * self + (1 + (pos_weight - 1) * target) * log_one_plus


@recordable
def binary_cross_entropy_with_logits(
    self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Array:
    """Return `binary_cross_entropy` of `sigmoid(self)`: `(1 - target) x + (1 + (pos_weight - 1) target) log(1 + exp(-x))`."""
    x, wanted = widen(self), widen(target)
    if weight is None and pos_weight is None:
        return reduced(_logit_loss(x, wanted), reduction, self.dtype)
    loss = _logit_loss(x, wanted) if pos_weight is None else _weighted_logit_loss(x, wanted, widen(pos_weight))
    if weight is not None:
        loss = loss * widen(weight)
    return reduced(loss, reduction, self.dtype)


@recordable
@compiled("nn.negative_log_likelihood.loss")
def nll_loss(log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int, reduction: str) -> Plan:
    """Return the loss alone; see `nll_loss_forward`."""

    def loss(log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int, reduction: str) -> ndarray:
        return quietly(nll_loss_forward, log_probs, target, weight, reduction, ignore_index)[0]

    check_classes(log_probs, target, weight)
    shape, dtype = log_probs.shape, log_probs.dtype
    memory = Memory(_target_shape(log_probs) if reduction == "none" else (), dtype)
    dim = _class_dim(log_probs)
    starts, step, last = _starts(shape, dim), math.prod(shape[dim + 1 :]), shape[dim] - 1
    if (
        dtype.char not in "fd"
        or target.dtype != INT64
        or target.shape != starts.shape
        or weight is not None
        or 0 <= ignore_index <= last
        or not 0 < target.size <= LARGE
    ):
        return Plan([memory], run=loss)
    count = dtype.type(target.size)

    def loss_of_all(log_probs: ndarray, target: ndarray, *arguments: Any) -> ndarray:
        classes = target.view(numpy.uint64)
        if classes.item(classes.argmax()) > last:  # ignored, or not a class
            return loss(log_probs, target, *arguments)
        losses = numpy.negative(log_probs.reshape(-1).take((target if step == 1 else target * step) + starts))
        if reduction == "none":
            return losses
        total = quietly(numpy.add.reduce, losses, None)
        return asarray(total / count if reduction == "mean" else total)

    return Plan([memory], run=loss_of_all)


def nll_loss_forward(
    log_probs: ndarray, target: ndarray, weight: ndarray | None = None, reduction: str = "mean",
    ignore_index: int = -100,
) -> tuple[ndarray, ndarray]:  # fmt: skip
    """Return the loss, and the total weight by which it was divided (zero for reduction 'none').

    Args:
        log_probs: (classes,), (batch, classes) or (batch, classes, d1, d2, ...).
        target: class numbers of int64 or uint8; the shape of `log_probs` without its class dimension.
        weight: one factor per class.
        reduction: 'none', 'mean' (weighted; NaN if the sum of the weights is zero) or 'sum'.
        ignore_index: the target that contributes nothing.
    """
    check_classes(log_probs, target, weight)
    target = _classes_of(log_probs, target, ignore_index)
    used, factors = _factors(target, weight, ignore_index, compute_dtype(log_probs.dtype))
    losses = -widen(log_probs.reshape(-1).take(_places(log_probs.shape, _class_dim(log_probs), target, used)))
    losses = numpy.where(used, losses * factors, losses.dtype.type(0))  # not NaN, even for zero times infinity
    dtype = log_probs.dtype
    if reduction == "none":
        return losses.reshape(target.shape).astype(dtype, copy=False), numpy.zeros((), dtype)
    result, total = numpy.add.reduce(losses, None), numpy.add.reduce(factors, None)
    if reduction == "mean":
        result = numpy.true_divide(result, total, dtype=losses.dtype)
    return asarray(result).astype(dtype, copy=False), asarray(total, dtype)


def _factors(
    target: ndarray, weight: ndarray | None, ignore_index: int, dtype: numpy.dtype[Any]
) -> tuple[ndarray, ndarray]:
    """Return which targets are not ignored, and the weight of the class of each target (0 if it is ignored)."""
    used = target != ignore_index
    if weight is None:
        return used, used.astype(dtype)
    return used, numpy.where(used, widen(weight).take(numpy.where(used, target, 0)), dtype.type(0))


def _places(shape: tuple[int, ...], dim: int, target: ndarray, used: ndarray) -> ndarray:
    """Return the positions of the targets in the flattened log-probabilities."""
    return numpy.where(used, target, 0) * math.prod(shape[dim + 1 :]) + _starts(shape, dim)


@functools.lru_cache(64)
def _starts(shape: tuple[int, ...], dim: int) -> ndarray:
    """Return the position of each first class in the flattened log-probabilities."""
    inner = math.prod(shape[dim + 1 :])
    starts = numpy.arange(math.prod(shape[:dim]))[:, None] * (shape[dim] * inner) + numpy.arange(inner)
    return starts.reshape(shape[:dim] + shape[dim + 1 :])


@recordable
@compiled("nn.negative_log_likelihood.loss_gradient")
def nll_loss_backward(
    grad: ndarray, log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int, reduction: str
) -> Plan:
    """Return the gradient of `log_probs`. Only the shape and type of `log_probs` matter."""
    check_classes(log_probs, target, weight)

    def into(
        out: Sequence[ndarray], grad: ndarray, log_probs: ndarray, target: ndarray, weight: ndarray | None, *_: Any
    ) -> None:
        target = _classes_of(log_probs, target, ignore_index)
        value = widen(asarray(grad))
        used, factors = _factors(target, weight, ignore_index, compute_dtype(log_probs.dtype))
        if reduction == "mean":
            value = value / numpy.add.reduce(factors, None)
        out[0].fill(0)
        places = _places(log_probs.shape, _class_dim(log_probs), target, used)
        out[0].reshape(-1)[places] = numpy.where(used, -value * factors, value.dtype.type(0))

    return Plan([Memory(log_probs.shape, log_probs.dtype)], into=into)


def _class_dim(log_probs: ndarray) -> int:
    return 0 if log_probs.ndim == 1 else 1


def _classes_of(log_probs: ndarray, target: ndarray, ignore_index: int) -> ndarray:
    """Return the targets in the shape of `log_probs` without classes. Refuse targets that are neither classes nor ignored."""
    target = target.astype(INT64, copy=False).reshape(_target_shape(log_probs))
    classes = log_probs.shape[_class_dim(log_probs)]
    if out_of_bounds(target, classes) is not None:
        wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
        if wrong.any():
            raise IndexError(f"Target {target[wrong].reshape(-1)[0]} is out of bounds.")
    return target


def _target_shape(log_probs: ndarray) -> tuple[int, ...]:
    """Return the shape of `log_probs` without classes."""
    return log_probs.shape[:1] + log_probs.shape[2:] if log_probs.ndim > 1 else ()


def check_classes(log_probs: ndarray, target: ndarray, weight: ndarray | None) -> None:
    """Raise PyTorch's error unless shapes and dtypes fit log-probabilities, classes and weights."""
    shape, rank = log_probs.shape, log_probs.ndim
    if rank == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {rank})")
    if rank == 1:
        if target.ndim == 1 and target.shape[0] != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    elif shape[0] != (target.shape[0] if target.ndim else 1):
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 1})."
        )
    elif shape[:1] + shape[2:] != target.shape:
        raise _target_mismatch(shape, target.shape)
    if target.dtype != INT64 and target.dtype != numpy.uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {type_name(target.dtype)}")
    check_floating("nll_loss_out_frame", log_probs)
    if weight is None:
        return
    classes = log_probs.shape[_class_dim(log_probs)]
    if weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
            if rank <= 2
            else "weight tensor should be defined either for all or no classes"
        )
    if weight.dtype != log_probs.dtype:
        raise RuntimeError(f"expected scalar type {type_name(log_probs.dtype)} but found {type_name(weight.dtype)}")


def _target_mismatch(shape: tuple[int, ...], target: tuple[int, ...]) -> RuntimeError:
    if len(shape) != 4:
        expected = list(shape[:1] + shape[2:])
        return RuntimeError(f"Expected target size {expected}, got {list(target)}")
    if len(target) != 3:
        return RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target)}"
        )
    return RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target)}")


def soft_margin_loss(self: Array, target: Array, reduction: str) -> Array:
    """Return `log(1 + exp(-target * self))`, for targets 1 and -1."""
    if self.dtype.kind in "iub":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {type_name(self.dtype)}")
    if "c" in (self.dtype.kind, target.dtype.kind):
        result = numpy.log1p(numpy.exp(-target * self))
        if self.dtype.kind != "c":
            raise RuntimeError(
                f"result type {type_name(result.dtype)} can't be cast to the desired output type {type_name(self.dtype)}"
            )
        return reduced(result, reduction, self.dtype)
    return reduced(_soft_margin.general(widen(self), widen(target)), reduction, self.dtype)


def _rows(self: Array) -> Array:
    """Return the scores as a matrix, one row for each sample."""
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
        raise refuse(f"{name}_cpu_kernel", self)


def _share(grad: Array, reduction: str, batch: int) -> Array:
    """Return the gradient of each row's loss, as a column."""
    grad = grad.reshape(-1, 1)
    return grad / batch if reduction == "mean" else grad


# --- one class for each sample --------------------------------------------------------------------------------


@compiled("nn.negative_log_likelihood.margins")
def multi_margin_loss(self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: str) -> Plan:
    """Return the mean over the classes i ≠ target of `max(0, margin - self[target] + self[i]) ** p`, times `weight[target]`."""
    batch, classes = _rows(self).shape
    if target.size != batch or target.ndim > 1:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size [{batch}], but got {list(target.shape)}. "
            f"Input has shape {list(self.shape)}."
        )
    if weight is not None and weight.size != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if weight is not None and weight.dtype != self.dtype:
        raise RuntimeError(f"expected scalar type {type_name(self.dtype)} but found {type_name(weight.dtype)}")
    _require("multi_margin_loss", self, target)

    def run(self: Array, target: Array, p: int, margin: float, weight: Array | None, _: str) -> Array:
        if out_of_bounds(target, classes) is not None:
            raise RuntimeError("target out of range")
        loss = hinge_rows.run(_with_targets(_rows(self), target.reshape(-1)), 1, (margin, p))
        loss = loss.reshape(target.shape)
        if weight is not None:
            loss *= weight[target.reshape(-1)].reshape(target.shape)
        return reduced(loss, reduction, self.dtype)

    return Plan([Memory(target.shape if reduction == "none" else (), self.dtype)], run=run)


def _with_targets(rows: Array, labels: Array) -> tuple[Array, ...]:
    """Return the scores, the score of each target, the targets, and the classes, in a dtype that represents all classes."""
    classes = rows.shape[1]
    rows = rows if classes < 1 << 24 else rows.astype(numpy.float64)
    own = rows.reshape(-1).take(labels + numpy.arange(0, rows.size, classes))
    return rows, own, labels.astype(rows.dtype), numpy.arange(classes, dtype=rows.dtype)


def _hinges(x: Any, own: Any, target: Any, place: Any, margin: Any) -> Any:
    """Return `max(0, margin - own + x)`, but 0 at the target and in place of NaN."""
    hinge = x - own + margin
    return xp.where(hinge > 0, xp.where(place == target, 0, hinge), 0)


@row_program()
def hinge_rows(x: Array, own: PerRow, target: PerRow, place: PerColumn, margin: float, p: int) -> Any:
    """Return the mean of the hinges of the row, or of their squares."""
    hinge = _hinges(x, own, target, place, margin)
    return row.mean(hinge if p == 1 else hinge * hinge)


@row_program()
def hinge_backward_rows(
    x: Array, own: PerRow, target: PerRow, place: PerColumn, share: PerRow, margin: float, p: int
) -> Any:
    """Return the gradient of the sum of the hinges of the row, or of their squares, times `share`."""
    hinge = _hinges(x, own, target, place, margin)
    slope = xp.where(hinge > 0, share, 0) if p == 1 else 2 * hinge * share
    return xp.where(place == target, -row.sum(slope), slope)


def multi_margin_loss_backward(
    grad: Array, self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: str
) -> Array:
    """Return the gradient of the scores."""
    rows, labels = _rows(self), target.reshape(-1)
    batch, classes = rows.shape
    share = numpy.broadcast_to(_share(grad, reduction, batch) / classes, (batch, 1))
    if weight is not None:
        share = share * weight[labels][:, None]
    result = hinge_backward_rows.run((*_with_targets(rows, labels), share), 1, (margin, p))
    return rounded(result.reshape(self.shape), self.dtype)


# --- several classes for each sample --------------------------------------------------------------------------


def multilabel_margin_loss(self: Array, target: Array, reduction: str) -> tuple[Array, Array]:
    """Return the loss, and which classes are labels, as numbers.

    The loss is the sum of `max(0, 1 - self[j] + self[i])` over the labels j and the other classes i, divided by the
    number of classes. The labels of a row are the entries of `target` before its first negative entry.
    """
    rows = _rows(self)
    if self.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    if target.dtype == numpy.int64 and target.size and not ((target >= -1) & (target < rows.shape[1])).all():
        raise RuntimeError("argument #2 'target' is out of range")
    _require("multilabel_margin_loss", self, target)
    loss, is_target = numpy.empty(len(rows), rows.dtype), numpy.empty(rows.shape, rows.dtype)

    def reduce(start: int, stop: int, counts: Array) -> None:
        numpy.greater(counts, 0, is_target[start:stop])
        sample, _, times, hinges = _multilabel_hinges(rows[start:stop], counts)
        loss[start:stop] = numpy.bincount(sample, numpy.add.reduce(hinges, 1) * times, stop - start)

    _by_labels(reduce, target.reshape(rows.shape))
    loss /= rows.shape[1]
    return reduced(loss.reshape(self.shape[:-1]), reduction, self.dtype), is_target.reshape(self.shape)


def _by_labels(reduce: Callable[[int, int, Array], None], target: Array) -> None:
    """Call `reduce(start, stop, counts)` for ranges of rows, with the number of times that each class is a label of a row."""
    classes = target.shape[1]
    most = int(numpy.count_nonzero(target >= 0, 1).max(initial=1))  # labels of a row

    def count(start: int, stop: int) -> None:
        part = target[start:stop]
        listed = numpy.logical_and.accumulate(part >= 0, 1)
        places = part + numpy.arange(0, part.size, classes)[:, None]
        reduce(start, stop, numpy.bincount(places[listed], minlength=part.size).reshape(part.shape))

    parallel_rows(count, len(target), (32 + 8 * most) * classes)


def _multilabel_hinges(rows: Array, counts: Array) -> tuple[Array, Array, Array, Array]:
    """Return the rows, classes and counts of the labels, and the hinge of each label against each class that is not a label.

    As in PyTorch, a NaN hinge counts as 0. A label that is listed several times has one row of hinges.
    """
    sample, label = counts.nonzero()
    hinges = rows.take(sample, 0)
    hinges -= rows[sample, label][:, None]
    hinges += rows.dtype.type(1)
    numpy.fmax(hinges, 0, out=hinges)
    numpy.copyto(hinges, 0, where=(counts > 0).take(sample, 0))
    return sample, label, counts[sample, label].astype(rows.dtype), hinges


def multilabel_margin_slopes(self: Array, target: Array, is_target: Array) -> Array:
    """Return the slopes of the multilabel margin loss before the reduction."""
    return multilabel_margin_loss_backward(numpy.ones(1, self.dtype), self, target, is_target, "sum")


def multilabel_margin_loss_backward(grad: Array, self: Array, target: Array, is_target: Array, reduction: str) -> Array:
    """Return the gradient of the scores."""
    rows = _rows(self)
    result = numpy.zeros(rows.shape, rows.dtype)

    def reduce(start: int, stop: int, counts: Array) -> None:
        sample, label, times, hinges = _multilabel_hinges(rows[start:stop], counts)
        if not sample.size:
            return
        numpy.sign(hinges, out=hinges)
        hinges *= times[:, None]
        first = numpy.flatnonzero(numpy.diff(sample, prepend=-1))
        part = result[start:stop]
        part[sample[first]] = numpy.add.reduceat(hinges, first, 0)
        part[sample, label] -= numpy.add.reduce(hinges, 1)

    _by_labels(reduce, target.reshape(rows.shape))
    result *= _share(grad, reduction, len(rows)) / rows.shape[1]
    return result.reshape(self.shape)
