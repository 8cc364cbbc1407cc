"""Batching rules of operators that read or write at indices."""

from __future__ import annotations

from math import prod

from ...dispatch.decorators import tensors
from ...tensor import Tensor

# --- along a dimension ----------------------------------------------------------------------------------------


def at_indices(op, batch, *args):
    """Read at indices along `dim`. If the whole batch shares the indices, they may have one dimension."""
    named = dict(zip(op.names, args, strict=True))
    if batch.has(named.get("value")) or ("self" in named and not args[0]._array.ndim):
        return None
    if batch.has(named["index"]):
        return _at_own_indices(batch, named)
    ndim = len(named["shape"]) if "shape" in named else args[0]._array.ndim
    if not ndim:
        return None
    moved = {
        "dim": batch.shifted(named["dim"], ndim), "shape": (batch.size, *named.get("shape", ())), "index": named["index"],
    }  # fmt: skip
    return op.apply(
        *[
            moved[name]
            if name in moved
            else batch.expanded(value)
            if isinstance(value, Tensor) and name != "value"
            else value
            for name, value in named.items()
        ]
    )


def _at_own_indices(batch, named):
    """Read or write slices if each example has separate indices. Each element of a slice gets the index of the slice."""
    if "shape" in named or named["index"]._array.ndim != 1 or not batch.size:
        return None
    value, dim = batch.expanded(named["self"]), batch.shifted(named["dim"], named["self"]._array.ndim)
    source = batch.expanded(named["source"]) if "source" in named else None
    shape = list(value.shape if source is None else source.shape)
    shape[dim] = named["index"]._array.shape[0]
    index = _along(batch.first(named["index"]), dim, shape)
    if "alpha" in named:
        return tensors.scatter_add(value, dim, index, source if named["alpha"] == 1 else source * named["alpha"])
    if source is not None:
        return tensors.scatter_source(value, dim, index, source)
    filling = named["value"]
    if isinstance(filling, Tensor):
        return tensors.scatter_source(value, dim, index, filling.to(value.dtype).expand(tuple(shape)))
    return tensors.scatter_number(value, dim, index, filling)


def _along(index, dim, shape):
    """Expand the indices (B, K) of a batch to indices of the elements of a tensor of `shape` along `dim`."""
    return index.reshape((index.shape[0],) + (1,) * (dim - 1) + (-1,) + (1,) * (len(shape) - dim - 1)).expand(
        tuple(shape)
    )


def index_select(op, batch, value, dim, index):
    """Slices selected by the whole batch or by each example in the batch."""
    if not value._array.ndim:
        return None
    place = batch.shifted(dim, value._array.ndim)
    if not batch.has(index):
        return op.apply(batch.first(value), place, index)
    if index._array.ndim != 1 or not batch.size:
        return None
    full = batch.expanded(value)
    shape = list(full.shape)
    shape[place] = index._array.shape[0]
    return tensors.gather(full, place, _along(batch.first(index), place, shape))


# --- in flattened tensors, of which a batch is one long one ---------------------------------------------------


def _offset(batch, places, count):
    """Convert positions in tensors of `count` elements, or rows, to positions in the joined tensor of the batch."""
    return (
        places
        + tensors.arange(batch.size, device=places.device).reshape((-1,) + (1,) * (places._array.ndim - 1)) * count
    )


def take(op, batch, value, index):
    """Read elements of the flattened tensor of each example."""
    if not value._array.size:
        return None
    full, places = batch.expanded(value), batch.expanded(index)
    flat = full.flatten(1) if value._array.ndim else full.unsqueeze(1)
    places = tensors.where(places < 0, places + flat.shape[1], places)
    return flat.gather(1, batch.flat(places)).reshape(places.shape)


def take_backward(op, batch, grad, shape, index):
    """The gradient of `take`, for each example."""
    count = prod(shape)
    if not count or not batch.size:
        return None
    places = _offset(batch, batch.expanded(index) % count, count)
    return op.apply(batch.expanded(grad), (batch.size, *shape), places)


def put(op, batch, value, index, source, accumulate):
    """Overwrite elements of the flattened tensor of each example."""
    if not value._array.size or not batch.size:
        return None
    count = value._array.size
    places = batch.expanded(index)
    places = _offset(batch, tensors.where(places < 0, places + count, places), count)
    return op.apply(batch.expanded(value).clone(), places, batch.expanded(source), accumulate)


def embedding(op, batch, weight, indices, padding_idx, *rest):
    """Read rows of the table of each example."""
    if not batch.has(weight):
        return op.apply(weight, batch.first(indices), padding_idx, *rest)
    if padding_idx is not None and padding_idx >= 0:
        return None
    table = batch.first(weight)
    places = _offset(batch, batch.expanded(indices), table.shape[1])
    return op.apply(table.flatten(0, 1), places, padding_idx, *rest)


def embedding_backward(op, batch, grad, indices, count, padding_idx, by_frequency):
    """The gradient of the table, for each example."""
    if by_frequency or (padding_idx is not None and padding_idx >= 0) or not batch.size:
        return None
    places = _offset(batch, batch.expanded(indices), count)
    long = op.apply(batch.expanded(grad), places, batch.size * count, padding_idx, by_frequency)
    return long.unflatten(0, (batch.size, count))


# --- `tensor[indices]` ----------------------------------------------------------------------------------------


def _are_adjacent(indices):
    """Return whether the given indices are for adjacent dimensions. The dimensions of the result then stay in place."""
    places = [place for place, array in enumerate(indices) if array is not None]
    return places == list(range(places[0], places[-1] + 1)) if places else True


def _keys(indices):
    given = iter(indices.tensors)
    return tuple(slice(None) if array is None else next(given)[0] for array in indices)


def _has_masks(tensors):
    return any(tensor._array.dtype.char in "?B" for tensor in tensors)


def index(op, batch, value, indices):
    """Read at indices. The positions in the batch become one more index, or the batch becomes one more dimension in front."""
    keys = _keys(indices)
    given = [tensor for tensor, _ in indices.tensors]
    rank = max(tensor._array.ndim for tensor in given)
    if not any(map(batch.has, given)):
        result = batch.first(value)[(slice(None), *keys)]
        return result if _are_adjacent(indices) else result.movedim(rank, 0)
    if _has_masks(given):
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a "
            "boolean mask."
        )
    aligned = [batch.aligned(key, rank) if isinstance(key, Tensor) else key for key in keys]
    first = next(place for place, key in enumerate(keys) if isinstance(key, Tensor))
    inside = _are_adjacent(indices) and first > 0
    if not batch.has(value):
        result = value[tuple(aligned)]
        return result.movedim(first, 0) if inside else result
    numbers = tensors.arange(batch.size, device=value.device).reshape((-1,) + (1,) * rank)
    result = batch.first(value)[(numbers, *aligned)]
    if not inside or not rank:
        return result
    return result.movedim(tuple(range(1, rank + 1)), tuple(range(first + 1, first + rank + 1)))


def index_backward(op, batch, grad, shape, indices):
    """Compute the gradient if the whole batch shares the indices."""
    given = getattr(indices, "tensors", ())
    if any(batch.has(tensor) for tensor, _ in given) or not _are_adjacent(indices):
        return None
    first = batch.first(grad)
    moved = type(indices)((None, *indices))
    moved.tensors = given
    return op.apply(first, (first.shape[0], *shape), moved)


def index_put(op, batch, value, indices, values, accumulate):
    """The position in the batch becomes one more index if the other indices are integers for the first dimensions."""
    keys = _keys(indices)
    if not _are_adjacent(indices) or not isinstance(keys[0], Tensor):
        return None
    given = [key for key in keys if isinstance(key, Tensor)]
    if _has_masks(given):
        return None
    rank = max(key._array.ndim for key in given)
    numbers = tensors.arange(batch.size, device=value.device).reshape((-1,) + (1,) * rank)
    written = batch.aligned(values, rank + value._array.ndim - len(given))
    numbered = type(indices).of([numbers, *(batch.aligned(key, rank) for key in given)])
    return op.apply(batch.expanded(value), numbered, written, accumulate)
