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


def nll_loss(op, batch, scores, target, weight, ignore_index, reduction):
    """The loss of each row of scores, computed for the whole batch at once."""
    if batch.has(weight):
        return None
    single = scores._array.ndim == 1
    rows, labels = batch.expanded(scores), batch.expanded(target).reshape((-1,))
    flat = rows.reshape((-1, rows.shape[-1]))
    each = op.apply(flat, labels, weight, ignore_index, _unreduced(reduction))
    if single:
        each = each.reshape((rows.shape[0],))
        if reduction in (1, "mean"):
            return each / _weights(labels, weight, ignore_index, each).reshape((rows.shape[0],))
        return each
    each = batch.unmerged(each)
    if reduction not in (1, "mean"):
        return _reduced(batch, each, reduction)
    return _reduced(batch, each, reduction, batch.unmerged(_weights(labels, weight, ignore_index, each)).sum(1))


def _has_none(batch, scores):
    return not scores._array.size or not batch.size


def nll_loss_backward(op, batch, grad, scores, target, weight, ignore_index, reduction):
    """The gradient of each row."""
    if batch.has(weight) or _has_none(batch, scores):
        return None
    rows, share = batch.expanded(scores), batch.expanded(grad)
    labels = batch.expanded(target).reshape((-1,))
    if reduction in (1, "mean"):
        share = share / batch.unmerged(_weights(labels, weight, ignore_index, rows)).sum(1)
    if reduction not in (0, "none"):
        share = share.unsqueeze(-1).expand((batch.size, labels._array.size // batch.size))
    flat = rows.reshape((-1, rows.shape[-1]))
    args = (share.reshape((-1,)), flat, labels, weight, ignore_index, _unreduced(reduction))
    return op.apply(*args).reshape(rows.shape)


def nll_loss2d(op, batch, scores, target, weight, ignore_index, reduction):
    """The loss of each position in images."""
    if batch.has(weight) or _has_none(batch, scores):
        return None
    images, labels = batch.expanded(scores), batch.expanded(target)
    args = (images.flatten(0, 1), labels.flatten(0, 1), weight, ignore_index, _unreduced(reduction))
    each = op.apply(*args).unflatten(0, images.shape[:2])
    if reduction not in (1, "mean"):
        return _reduced(batch, each, reduction)
    return _reduced(batch, each, reduction, batch.flat(_weights(labels, weight, ignore_index, each)).sum(1))


def nll_loss2d_backward(op, batch, grad, scores, target, weight, ignore_index, reduction):
    """The gradient of `nll_loss2d`, which has a loss for each position in images."""
    if batch.has(weight) or _has_none(batch, scores):
        return None
    images, labels, share = batch.expanded(scores), batch.expanded(target), batch.expanded(grad)
    if reduction in (1, "mean"):
        share = share / batch.flat(_weights(labels, weight, ignore_index, images)).sum(1)
    if reduction not in (0, "none"):
        share = share.reshape((-1, 1, 1, 1)).expand(labels.shape)
    merged = [value.flatten(0, 1) for value in (share, images, labels)]
    result = op.apply(*merged, weight, ignore_index, _unreduced(reduction))
    return result.unflatten(0, images.shape[:2])


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
