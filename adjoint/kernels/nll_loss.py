"""The negative log-likelihood of classes, given their log-probabilities; with or without spatial dimensions."""

import functools
import math

import numpy
from numpy import asarray, ndarray

from .floating import quietly, silent
from .precision import compute_dtype, is_floating, type_name, widen
from .reduction import total as total_of
from .scatter import out_of_bounds

_INT64 = numpy.dtype(numpy.int64)


@silent
def nll_loss(log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int, reduction: str) -> ndarray:
    """The loss alone; see `nll_loss_forward`."""
    if _is_plain(log_probs, target, weight, ignore_index) and out_of_bounds(target, log_probs.shape[1]) is None:
        return _plain(log_probs, target, reduction)
    return quietly(nll_loss_forward, log_probs, target, weight, reduction, ignore_index)[0]


def _is_plain(log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int) -> bool:
    """Whether there are no weights, no spatial dimensions, and no class is ignored."""
    if weight is not None or log_probs.ndim != 2 or log_probs.dtype.char not in "fd" or target.dtype.char != "l":
        return False
    batch, classes = log_probs.shape
    return not 0 <= ignore_index < classes and target.shape == (batch,) and batch > 0


def _plain(log_probs: ndarray, target: ndarray, reduction: str) -> ndarray:
    """The loss where all is plain, and the targets are classes."""
    picked = log_probs.take(target + _starts(*log_probs.shape))
    if reduction == "none":
        return numpy.negative(picked, picked)
    loss = -total_of(picked).item()
    return asarray(loss / len(picked) if reduction == "mean" else loss, picked.dtype)


@functools.lru_cache(64)
def _starts(batch: int, classes: int) -> ndarray:
    """Where each row of a (batch, classes) array begins."""
    starts = numpy.arange(0, batch * classes, classes)
    starts.flags.writeable = False
    return starts


def nll_loss_forward(
    log_probs: ndarray,
    target: ndarray,
    weight: ndarray | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> tuple[ndarray, ndarray]:
    """The loss and the total weight it was divided by (zero for reduction 'none').

    Args:
        log_probs: (classes,), (batch, classes) or (batch, classes, d1, d2, ...).
        target: class numbers of int64 or uint8; the shape of `log_probs` without its class dimension.
        weight: one factor per class.
        reduction: 'none', 'mean' (weighted; nan if the weights sum to zero) or 'sum'.
        ignore_index: the target that contributes nothing.

    Raises:
        ValueError, RuntimeError: if shapes or types do not fit.
        IndexError: if a target is not a class.
        NotImplementedError: if `log_probs` is not floating-point.
    """
    _check(log_probs, target, weight)
    target = target.astype(_INT64, copy=False).reshape(_target_shape(log_probs))
    used = _used(target, _classes(log_probs), ignore_index)
    picked = widen(log_probs.reshape(-1).take(_positions(log_probs, target, used)))
    dtype = log_probs.dtype
    if weight is None and used is None:
        total = target.size
        loss = numpy.negative(picked)
    else:
        factor = _factor(log_probs, target, weight, used)
        total = numpy.add.reduce(factor, None)
        # Not a product where a target is ignored: zero times inf is nan.
        loss = numpy.negative(picked * factor) if used is None else numpy.where(used, -(picked * factor), 0)
    if reduction == "none":
        return asarray(loss).astype(dtype, copy=False), numpy.zeros((), dtype)
    result = numpy.add.reduce(loss, None)
    if reduction == "mean":
        result = numpy.true_divide(result, total, dtype=compute_dtype(dtype))
    return asarray(result).astype(dtype, copy=False), asarray(total, dtype)


def nll_loss_backward(
    grad: ndarray,
    log_probs: ndarray,
    target: ndarray,
    weight: ndarray | None,
    reduction: str,
    ignore_index: int,
) -> ndarray:
    """The gradient of `log_probs`, of which only shape and type are used."""
    plain = _is_plain(log_probs, target, weight, ignore_index) and grad.ndim == 0 and grad.dtype is log_probs.dtype
    if plain and out_of_bounds(target, log_probs.shape[1]) is None:
        value = -grad.item()
        result = numpy.zeros(log_probs.shape, log_probs.dtype)
        result.put(target + _starts(*log_probs.shape), value / len(target) if reduction == "mean" else value)
        return result
    target = target.astype(_INT64, copy=False).reshape(_target_shape(log_probs))
    used = _used(target, _classes(log_probs), ignore_index)
    value = -widen(asarray(grad))
    factor = None if weight is None and used is None else _factor(log_probs, target, weight, used)
    if reduction == "mean":
        value = value / (target.size if factor is None else numpy.add.reduce(factor, None))
    if factor is not None:
        value = value * factor
        if used is not None:
            value = numpy.where(used, value, 0)
    result = numpy.zeros(log_probs.shape, log_probs.dtype)
    result.reshape(-1)[_positions(log_probs, target, used)] = value
    return result


def _target_shape(log_probs: ndarray) -> tuple[int, ...]:
    """The shape of `log_probs` without classes; a single target may come with a dimension more."""
    return log_probs.shape[:1] + log_probs.shape[2:] if log_probs.ndim > 1 else ()


def _classes(log_probs: ndarray) -> int:
    return log_probs.shape[0 if log_probs.ndim == 1 else 1]


def _used(target: ndarray, classes: int, ignore_index: int) -> ndarray | None:
    """Which targets are not ignored; None if all are used."""
    if not 0 <= ignore_index < classes and out_of_bounds(target, classes) is None:
        return None
    used = target != ignore_index
    wrong = used & ((target < 0) | (target >= classes))
    if wrong.any():
        raise IndexError(f"Target {target[wrong].reshape(-1)[0]} is out of bounds.")
    return asarray(used)


def _positions(log_probs: ndarray, target: ndarray, used: ndarray | None) -> ndarray:
    """Where each target's log-probability is in the flattened array; ignored targets point at class 0."""
    if used is not None:
        target = numpy.where(used, target, 0)
    if log_probs.ndim == 1:
        return target
    batch, classes = log_probs.shape[:2]
    if log_probs.ndim == 2:
        return target + numpy.arange(0, batch * classes, classes or 1)[:batch]
    inner = math.prod(log_probs.shape[2:])
    outer = numpy.arange(batch).reshape((-1,) + (1,) * (log_probs.ndim - 2)) * (classes * inner)
    return target * inner + outer + numpy.arange(inner).reshape(log_probs.shape[2:])


def _factor(log_probs: ndarray, target: ndarray, weight: ndarray | None, used: ndarray | None) -> ndarray:
    if weight is None:
        return asarray(used).astype(compute_dtype(log_probs.dtype))
    if used is None:
        return asarray(widen(weight.take(target)))
    return asarray(widen(weight.take(numpy.where(used, target, 0))) * used)


def _check(log_probs: ndarray, target: ndarray, weight: ndarray | None) -> None:
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
    if target.dtype != _INT64 and target.dtype != numpy.uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {type_name(target.dtype)}")
    if not is_floating(log_probs.dtype):
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{type_name(log_probs.dtype)}'")
    if weight is None:
        return
    classes = _classes(log_probs)
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
