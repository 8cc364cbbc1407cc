"""Batching rules of losses. The rules compute all losses of the batch at once, and reduce the losses of each example."""

from __future__ import annotations

from ...dispatch.decorators import tensors


def _reduced(batch, losses, reduction, total=None):
    """Reduce the losses of each example in the batch. A mean divides by `total`, by default the number of losses."""
    if reduction in (0, "none"):
        return losses
    flat = batch.flat(losses)
    if reduction in (2, "sum"):
        return flat.sum(1)
    return flat.mean(1) if total is None else flat.sum(1) / total


def _unreduced(reduction):
    """Return the reduction "none" in the given form: as a number or as a name."""
    return 0 if isinstance(reduction, int) else "none"


def elementwise(op, batch, *args):
    """Compute a loss with one value per element."""
    place = op.names.index("reduction")
    each = batch.by("elementwise", op, (*args[:place], _unreduced(args[place]), *args[place + 1 :]))
    return _reduced(batch, each, args[place])


def _weights(labels, weight, ignore_index, like):
    """Return the weight of each label."""
    kept = labels != ignore_index
    if weight is None:
        return kept.to(like.dtype)
    return weight[tensors.select_where(kept, labels, labels.new_zeros(()))] * kept.to(like.dtype)


def _samples(batch, scores, target):
    """Return the scores and targets of the batch. Each example has a dimension for its samples, also if it is one vector."""
    rows, labels = batch.expanded(scores), batch.expanded(target)
    return (rows.unsqueeze(1), labels.reshape((-1, 1))) if scores._array.ndim == 1 else (rows, labels)


def _total(batch, labels, *options):
    return batch.flat(_weights(labels, *options)).sum(1)


def nll_loss(op, batch, scores, target, weight, ignore_index, reduction):
    """The loss of each vector of scores, computed for the whole batch at once."""
    if batch.has(weight) or _has_none(batch, scores):
        return None
    rows, labels = _samples(batch, scores, target)
    each = op.apply(rows.flatten(0, 1), labels.flatten(0, 1), weight, ignore_index, _unreduced(reduction))
    if scores._array.ndim == 1 and reduction in (0, "none"):
        return each
    total = _total(batch, labels, weight, ignore_index, each) if reduction in (1, "mean") else None
    return _reduced(batch, each.unflatten(0, rows.shape[:2]), reduction, total)


def _has_none(batch, scores):
    return not scores._array.size or not batch.size


def nll_loss_backward(op, batch, grad, scores, target, weight, ignore_index, reduction):
    """The gradient of each vector of scores."""
    if batch.has(weight) or _has_none(batch, scores):
        return None
    (rows, labels), share = _samples(batch, scores, target), batch.expanded(grad)
    if reduction in (1, "mean"):
        share = share / _total(batch, labels, weight, ignore_index, rows)
    if reduction not in (0, "none"):
        share = share.reshape((-1,) + (1,) * (labels._array.ndim - 1)).expand(labels.shape)
    merged = [value.flatten(0, 1) for value in (share.reshape(labels.shape), rows, labels)]
    result = op.apply(*merged, weight, ignore_index, _unreduced(reduction))
    return result.reshape((batch.size, *scores.shape))


def binary_cross_entropy_backward(op, batch, grad, probabilities, target, weight, reduction):
    """Compute the gradient of each element. For a mean, each example divides by its own number of elements."""
    rank = probabilities._array.ndim
    if _has_none(batch, probabilities):
        return None
    whole, share = batch.expanded(probabilities), batch.expanded(grad)
    if reduction not in (0, "none"):
        if reduction in (1, "mean"):
            share = share / probabilities._array.size
        share = share.reshape((-1,) + (1,) * rank).expand(whole.shape)
    if weight is not None:
        weight = batch.aligned(weight, rank)
    return op.apply(share, whole, batch.expanded(target), weight, _unreduced(reduction))
