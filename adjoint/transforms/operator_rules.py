"""Batching of layers, of gradients, and of what gathers and scatters: rules beside those of `batching.py`."""

from __future__ import annotations

from math import prod
from typing import Any

from ..dispatch.declaration import OPERATORS, Operator
from ..dispatch.decorators import tensors as operators
from ..dispatch.slow_path import applied
from ..tensor import Tensor
from .batching_rules import (
    DIMENSIONS,
    Batch,
    _behind,
    _keys,
    _lined_up,
    _together,
    _weights,
    elementwise,
    in_rows,
    leading,
    rule,
)

# --- elementwise, by their nature -------------------------------------------------------------------------------

rule(
    *"celu_in_place elu_in_place leaky_relu_in_place rrelu_mean polygamma_of mvlgamma elu_double_backward".split(),
    *"hardshrink_backward hardsigmoid_backward hardswish_backward hardswish_double_backward hardtanh_backward".split(),
    *"logit_backward logsigmoid_backward mish_backward silu_double_backward softplus_double_backward".split(),
    *"softshrink_backward rrelu_backward prelu_backward".split(),
)(elementwise)

rule(
    *"uniform normal exponential cauchy geometric log_normal random random_to random_between poisson".split(),
    *"bernoulli_of_each bernoulli_of_one bernoulli pixel_shuffle pixel_unshuffle".split(),
)(leading)


# --- along a dimension ------------------------------------------------------------------------------------------


@rule(
    *"softmax_backward log_softmax_backward gathered selected_values value_selecting_backward gather_backward".split(),
    *"fft_c2c fft_c2r fft_r2c add_at_selected linalg_cross select_scatter slice_scatter diagonal_scatter".split(),
)
def _aligned(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """All tensors with the dimension of examples, dimensions counted after it."""
    named = dict(zip(op.names, args, strict=True))
    ndim = len(named["shape"]) if "shape" in named else args[0]._array.ndim
    if not ndim or any(named.get(name, 0) is None for name in DIMENSIONS):
        return None
    return applied(op, tuple(_with_examples(name, value, ndim, batch) for name, value in named.items()))


def _with_examples(name: str, value: Any, ndim: int, batch: Batch) -> Any:
    if isinstance(value, Tensor):
        return batch.full(value)
    if name in DIMENSIONS:
        return _behind(value, ndim)
    return (batch.size, *value) if name == "shape" else value


@rule("index_add", "index_copy", "index_fill_number", "index_fill_tensor", "index_select_backward")
def _at_indices(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The same, where all examples share the indices."""
    named = dict(zip(op.names, args, strict=True))
    ndim = len(named["shape"]) if "shape" in named else args[0]._array.ndim
    if not ndim or batch.has(named.get("value")):
        return None
    if batch.has(named["index"]):
        return _at_own_indices(op, named, ndim, batch)
    return applied(
        op,
        tuple(
            value if name in ("index", "value") else _with_examples(name, value, ndim, batch)
            for name, value in named.items()
        ),
    )


def _at_own_indices(op: Operator, named: dict[str, Any], ndim: int, batch: Batch) -> Any:
    """The same, where each example has its own: what is written to a slice, each of its elements is told its place."""
    if "self" not in named or named["index"]._array.ndim != 1 or not batch.size:
        return None
    value, dim = batch.full(named["self"]), _behind(named["dim"], ndim)
    source = batch.full(named["source"]) if "source" in named else None
    shape = list(value.shape if source is None else source.shape)
    shape[dim] = named["index"]._array.shape[0]
    index = _along(batch.front(named["index"]), dim, shape)
    if op.name == "index_add":
        return operators.scatter_add(value, dim, index, source if named["alpha"] == 1 else source * named["alpha"])
    if op.name == "index_copy":
        return operators.scatter_source(value, dim, index, source)
    filling = named["value"]
    if isinstance(filling, Tensor):
        return operators.scatter_source(value, dim, index, filling.to(value.dtype).expand(tuple(shape)))
    return operators.scatter_number(value, dim, index, filling)


def _along(index: Any, dim: int, shape: Any) -> Any:
    """Indices of examples, (B, K), as those of the elements of a tensor of `shape` along `dim`."""
    return index.reshape((index.shape[0],) + (1,) * (dim - 1) + (-1,) + (1,) * (len(shape) - dim - 1)).expand(
        tuple(shape)
    )


@rule("index_select")
def _index_select(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, dim, index = args
    if not value._array.ndim:
        return None
    place = _behind(dim, value._array.ndim)
    if not batch.has(index):
        return applied(op, (batch.front(value), place, index))
    if index._array.ndim != 1 or not batch.size:
        return None
    full = batch.full(value)
    shape = list(full.shape)
    shape[place] = index._array.shape[0]
    return operators.gather(full, place, _along(batch.front(index), place, shape))


@rule("take_backward")
def _take_backward(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples of flattened tensors are one long one."""
    grad, shape, index = args
    count = prod(shape)
    if not count or not batch.size:
        return None
    places = batch.full(index) % count
    places = places + operators.arange(batch.size).reshape((-1,) + (1,) * index._array.ndim) * count
    return applied(op, (batch.full(grad), (batch.size, *shape), places))


@rule("trace")
def _trace(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    return operators.diagonal(batch.front(args[0]), 0, 1, 2).sum(-1)


@rule("take")
def _take(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, index = args
    if not value._array.size:
        return None
    flat, places = (
        batch.full(value).flatten(1) if value._array.ndim else batch.full(value).unsqueeze(1),
        batch.full(index),
    )
    places = operators.where(places < 0, places + flat.shape[1], places)
    return flat.gather(1, in_rows(places)).reshape(places.shape)


# --- indices ----------------------------------------------------------------------------------------------------


def _numbered(indices: Any, batch: Batch) -> list[Any] | None:
    """The indices with the number of the example in front; None unless they are integers for the first dimensions."""
    keys = _keys(indices)
    if not _together(indices) or not isinstance(keys[0], Tensor):
        return None
    given = [key for key in keys if isinstance(key, Tensor)]
    if any(key._array.dtype.char in "?B" for key in given):
        return None
    rank = max(key._array.ndim for key in given)
    lined_up = []
    for key in given:
        front = batch.front(key)
        if batch.has(key):
            front = front.reshape(front.shape[:1] + (1,) * (rank - key._array.ndim) + front.shape[1:])
        lined_up.append(front)
    return [operators.arange(batch.size).reshape((-1,) + (1,) * rank), *lined_up]


@rule("index_put_arrays")
def _index_put(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, indices, values, accumulate = args
    keys = _numbered(indices, batch)
    if keys is None:
        return None
    rank = keys[0]._array.ndim - 1 + value._array.ndim - (len(keys) - 1)
    written = batch.front(values)
    if batch.has(values):
        written = written.reshape(written.shape[:1] + (1,) * (rank - values._array.ndim) + written.shape[1:])
    return applied(op, (batch.full(value), type(indices).of(keys), written, accumulate))


@rule("embedding")
def _embedding(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples of tables are one long table."""
    weight, indices, padding_idx, *rest = args
    if not batch.has(weight):
        return applied(op, (weight, batch.front(indices), padding_idx, *rest))
    if padding_idx is not None and padding_idx >= 0:
        return None
    table = batch.front(weight)
    return applied(op, (table.flatten(0, 1), _in_long_table(indices, table.shape[1], batch), padding_idx, *rest))


@rule("embedding_dense_backward")
def _embedding_backward(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    grad, indices, count, padding_idx, by_frequency = args
    if by_frequency or (padding_idx is not None and padding_idx >= 0) or not batch.size:
        return None
    places = _in_long_table(indices, count, batch)
    long = applied(op, (batch.full(grad), places, batch.size * count, padding_idx, by_frequency))
    return long.unflatten(0, (batch.size, count))


def _in_long_table(indices: Any, count: int, batch: Batch) -> Any:
    places = batch.full(indices)
    return places + operators.arange(batch.size).reshape((-1,) + (1,) * indices._array.ndim) * count


# --- images -----------------------------------------------------------------------------------------------------


@rule(
    *"adaptive_avg_pool2d_backward adaptive_max_pool2d_backward avg_pool2d_backward".split(),
    *"adaptive_avg_pool3d_backward adaptive_max_pool3d_backward avg_pool3d_backward".split(),
    *"max_pool2d_with_indices_backward max_pool3d_with_indices_backward".split(),
    *"reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d".split(),
    *"reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward".split(),
    *"replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward".split(),
)
def _images(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples join the batch of images."""
    spatial = next(int(char) for char in op.name if char.isdigit())
    full = [batch.full(value) if isinstance(value, Tensor) else value for value in args]
    if not all(value._array.size for value in full if isinstance(value, Tensor)):
        return None
    lead = full[0].shape[: -(spatial + 1)]
    flat = [
        value.reshape((-1, *value.shape[-(spatial + 1) :])) if isinstance(value, Tensor) else value for value in full
    ]
    result = applied(op, tuple(flat))
    return result.reshape((*lead, *result.shape[1:]))


_RANKS = {"im2col": 4, "col2im": 3}
"""Of how many dimensions batches of images, or columns, are, where a single one is taken as well."""


@rule(
    *(name for name in OPERATORS if name.startswith("upsample_")),
    *"resample_gradient im2col col2im channel_shuffle".split(),
)
def _more_images(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The same, for operators whose only tensor is the images."""
    value, *rest = args
    front = batch.front(value)
    if not front._array.size:
        return None
    if value._array.ndim < _RANKS.get(op.name, 0):
        return applied(op, (front, *rest))
    return applied(op, (front.flatten(0, 1), *rest)).unflatten(0, front.shape[:2])


def _joined_channels(tensor: Any) -> Any:
    """Examples of batches of images, (B, N, C, ...), as one batch of images of more channels, (N, B C, ...)."""
    return tensor.transpose(0, 1).flatten(1, 2)


def _parted_channels(tensor: Any, size: int) -> Any:
    """The reverse."""
    return tensor.unflatten(1, (size, -1)).transpose(0, 1)


@rule("conv_weight_grad")
def _conv_weight_grad(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples become groups of channels."""
    grad, image, shape, stride, padding, dilation, groups = args
    size = batch.size
    gradients, images = batch.full(grad), batch.full(image)
    if not gradients._array.size or not images._array.size:
        return None
    joined = (size * shape[0], *shape[1:])
    result = applied(
        op, (_joined_channels(gradients), _joined_channels(images), joined, stride, padding, dilation, groups * size)
    )
    return result.unflatten(0, (size, shape[0]))


@rule("conv_input_grad")
def _conv_input_grad(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    grad, weight, shape, stride, padding, dilation, groups = args
    size = batch.size
    gradients = batch.full(grad)
    if not gradients._array.size:
        return None
    if not batch.has(weight):
        joined = (size * shape[0], *shape[1:])
        result = applied(op, (gradients.flatten(0, 1), weight, joined, stride, padding, dilation, groups))
        return result.unflatten(0, (size, shape[0]))
    kernels = batch.front(weight).flatten(0, 1)
    joined = (shape[0], size * shape[1], *shape[2:])
    result = applied(op, (_joined_channels(gradients), kernels, joined, stride, padding, dilation, groups * size))
    return _parted_channels(result, size)


# --- normalization ----------------------------------------------------------------------------------------------


@rule("native_batch_norm")
def _batch_norm(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples are further channels."""
    value, *parameters, training, momentum, eps = args
    if not value._array.size or not batch.size:
        return None
    joined = [None if each is None else batch.full(each).flatten(0, 1) for each in parameters]
    output, mean, invstd = applied(op, (_joined_channels(batch.full(value)), *joined, training, momentum, eps))
    statistics = [in_rows(each, batch.size) if each._array.size else each for each in (mean, invstd)]
    return _parted_channels(output, batch.size), *statistics


@rule("native_group_norm")
def _group_norm(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples join the batch; weights of their own are applied afterwards."""
    value, weight, bias, group, eps = args
    front = batch.full(value)
    if not front._array.size:
        return None
    own = batch.has(weight) or batch.has(bias)
    given = (None, None) if own else (weight, bias)
    output, mean, rstd = (
        each.unflatten(0, front.shape[:2]) for each in applied(op, (front.flatten(0, 1), *given, group, eps))
    )
    if own:
        for parameter, combine in ((weight, operators.mul), (bias, operators.add)):
            if parameter is not None:
                aligned = batch.full(parameter)
                output = combine(output, aligned.reshape((aligned.shape[0], 1, -1) + (1,) * (output._array.ndim - 3)))
    return output, mean, rstd


# --- losses and equations ---------------------------------------------------------------------------------------


@rule("nll_loss_backward")
def _nll_loss_backward(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The gradient of each row of all examples at once."""
    grad, scores, target, weight, ignore_index, reduction = args
    if batch.has(weight) or not scores._array.size or not batch.size:
        return None
    rows, classes, share = batch.full(scores), batch.full(target), batch.full(grad)
    labels = classes.reshape((-1,))
    count = labels._array.size // batch.size
    if reduction in (1, "mean"):
        share = share / in_rows(_weights(labels, weight, ignore_index, rows), batch.size).sum(1)
    if reduction not in (0, "none"):
        share = share.unsqueeze(-1).expand((batch.size, count))
    none = 0 if isinstance(reduction, int) else "none"
    flat = rows.reshape((-1, rows.shape[-1]))
    return applied(op, (share.reshape((-1,)), flat, labels, weight, ignore_index, none)).reshape(rows.shape)


@rule("nll_loss2d_of")
def _nll_loss_of_images(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The loss of each place in all examples at once, reduced for each example."""
    scores, target, weight, ignore_index, reduction = args
    if batch.has(weight) or not scores._array.size or not batch.size:
        return None
    images, labels = batch.full(scores), batch.full(target)
    none = 0 if isinstance(reduction, int) else "none"
    each = applied(op, (images.flatten(0, 1), labels.flatten(0, 1), weight, ignore_index, none))
    each = each.unflatten(0, images.shape[:2])
    if reduction in (0, "none"):
        return each
    total = in_rows(each, batch.size).sum(1)
    if reduction in (2, "sum"):
        return total
    return total / in_rows(_weights(labels, weight, ignore_index, total), batch.size).sum(1)


@rule("nll_loss2d_backward")
def _nll_loss_of_images_backward(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The gradient of each place in all examples at once."""
    grad, scores, target, weight, ignore_index, reduction = args
    if batch.has(weight) or not scores._array.size or not batch.size:
        return None
    images, labels, share = batch.full(scores), batch.full(target), batch.full(grad)
    if reduction in (1, "mean"):
        share = share / in_rows(_weights(labels, weight, ignore_index, images), batch.size).sum(1)
    if reduction not in (0, "none"):
        share = share.reshape((-1, 1, 1, 1)).expand(labels.shape)
    none = 0 if isinstance(reduction, int) else "none"
    flat = applied(op, (share.flatten(0, 1), images.flatten(0, 1), labels.flatten(0, 1), weight, ignore_index, none))
    return flat.unflatten(0, images.shape[:2])


@rule("binary_cross_entropy_backward")
def _binary_cross_entropy_backward(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The gradient of each element, whose share of the loss is that in its own example."""
    grad, probabilities, target, weight, reduction = args
    rank = probabilities._array.ndim
    if not probabilities._array.size or not batch.size:
        return None
    whole = batch.full(probabilities)
    share = batch.full(grad)
    if reduction not in (0, "none"):
        if reduction in (1, "mean"):
            share = share / probabilities._array.size
        share = share.reshape((-1,) + (1,) * rank).expand(whole.shape)
    if weight is not None:
        weight = _lined_up(weight, rank, batch)
    none = 0 if isinstance(reduction, int) else "none"
    return applied(op, (share, whole, batch.full(target), weight, none))


@rule("linalg_solve_triangular", "cholesky_solve", "cdist_direct")
def _matrices(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Stacks of matrices are broadcast together, with the dimension of examples in front of all of them."""
    ranks = [value._array.ndim for value in args if isinstance(value, Tensor)]
    return applied(
        op, tuple(_lined_up(value, max(ranks), batch) if isinstance(value, Tensor) else value for value in args)
    )


@rule("trilinear")
def _trilinear(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Where new dimensions are given, and summed over, counts one more; what all examples share gets that as a new one."""
    values, expands, summed = args[:3], args[3:6], args[6]
    moved = [[dim + 1 for dim in dims] for dims in expands]
    shared = [dims if batch.has(value) else [0, *dims] for value, dims in zip(values, moved, strict=True)]
    return applied(op, (*map(batch.front, values), *shared, [dim + 1 for dim in summed]))


@rule("linalg_solve")
def _solve(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    A, B, left = args
    if B._array.ndim > 1 and B._array.ndim != A._array.ndim:
        return None
    if B._array.ndim > 1:
        return applied(op, (batch.full(A), batch.full(B), left))
    if A._array.ndim != 2:
        return None
    side = -1 if left else -2
    return applied(op, (batch.full(A), batch.full(B).unsqueeze(side), left)).squeeze(side)


# --- distances, sums of products, places ------------------------------------------------------------------------

rule("cholesky", "frexp")(leading)


@rule("pdist")
def _pdist(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The norms of the differences of all pairs of rows."""
    value, p = args
    if not value._array.size or value._array.shape[0] < 2:
        return None
    front = batch.front(value)
    first, second = operators.triu_indices(value._array.shape[0], value._array.shape[0], 1).unbind()
    return operators.linalg_vector_norm(front.index_select(1, first) - front.index_select(1, second), p, (-1,))


@rule("dist")
def _dist(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    first, second, p = args
    if not first._array.ndim or first._array.shape != second._array.shape or not first._array.size:
        return None
    return operators.linalg_vector_norm((batch.full(first) - batch.full(second)).flatten(1), p, (1,))


@rule("addr")
def _addr(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    added, first, second, beta, alpha = args
    return _added(added, 2, batch.full(first).unsqueeze(2) * batch.full(second).unsqueeze(1), beta, alpha, batch)


@rule("addbmm")
def _addbmm(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    added, first, second, beta, alpha = args
    return _added(added, 2, (batch.full(first) @ batch.full(second)).sum(1), beta, alpha, batch)


def _added(added: Any, rank: int, product: Any, beta: Any, alpha: Any, batch: Batch) -> Any:
    """`beta * added + alpha * product`, `added` broadcast with the `rank` dimensions of an example."""
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    offset = batch.front(added)
    if batch.has(added):
        offset = offset.reshape(offset.shape[:1] + (1,) * (rank - added._array.ndim) + offset.shape[1:])
    return (offset if beta == 1 else offset * beta) + product


@rule("put")
def _put(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples of tensors are one long tensor."""
    value, index, source, accumulate = args
    if not value._array.size or not batch.size:
        return None
    count = value._array.size
    places = batch.full(index)
    places = operators.where(places < 0, places + count, places)
    places = places + operators.arange(batch.size).reshape((-1,) + (1,) * index._array.ndim) * count
    return applied(op, (batch.full(value).clone(), places, batch.full(source), accumulate))


@rule("searchsorted_tensor")
def _searchsorted(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    named = dict(zip(op.names, args, strict=True))
    sequence, values = args[:2]
    if not sequence._array.size or not values._array.size or named.get("sorter") is not None:
        return None
    if not batch.has(sequence) and sequence._array.ndim == 1:
        return applied(op, (sequence, batch.front(values), *args[2:]))
    sequences, wanted = batch.full(sequence), batch.full(values)
    if sequence._array.ndim == 1:
        return applied(
            op, (sequences, wanted.flatten(1) if values._array.ndim else wanted.unsqueeze(1), *args[2:])
        ).reshape(wanted.shape)
    return applied(op, (sequences, wanted, *args[2:]))
