"""Scaled dot product attention of arrays `(batch, heads, length, features)`, and its gradients, head by head."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy

from ...codegen.plans import compiled, empty, empty_like
from ...codegen.recording import recordable
from ..memory.copying import widen
from ..runtime.costs import PART
from ..runtime.floating import Array, compute_dtype, unwarned


@recordable
def blocked_attention(
    query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float,
) -> tuple[Array, Array]:  # fmt: skip
    """Return `attention`, also for arrays without a batch dimension or a head dimension, and for a boolean mask."""
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError("blocked_attention: query, key and value need two dimensions or more")
    q, k, v = (_with_heads(each) for each in (query, key, value))
    out, statistics = attention(q, k, v, _mask_to_add(mask, q), _by_batch(kept, q), share, causal, scale)
    return out.reshape((*query.shape[:-1], value.shape[-1])), statistics


@recordable
def blocked_attention_gradients(
    grad: Array, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float, out: Array, statistics: Array, needs: Any,
) -> tuple[Array, ...]:  # fmt: skip
    """Return the gradients of `blocked_attention`."""
    q, k, v = (_with_heads(each) for each in (query, key, value))
    added, bits = _mask_to_add(mask, q), _by_batch(kept, q)
    found = attention_gradients(
        _with_heads(grad), q, k, v, added, bits, share, causal, scale, _with_heads(out), statistics
    )
    return tuple([each.reshape(own.shape) for each, own in zip(found, (query, key, value), strict=True)])


def _with_heads(array: Array) -> Array:
    return array if array.ndim == 4 else array[(None,) * (4 - array.ndim)]


def _by_batch(kept: Array | None, query: Array) -> Array | None:
    return None if kept is None else kept.reshape((*query.shape[:2], *kept.shape[1:]))


def _mask_to_add(mask: Array | None, query: Array) -> Array | None:
    """Return the mask with four dimensions, as numbers to add to the scores."""
    if mask is None:
        return None
    if mask.dtype.kind == "b":
        mask = numpy.where(mask, 0, numpy.array(-math.inf, compute_dtype(query.dtype)))
    return _with_heads(widen(mask))


@compiled("nn.attention.attention", least=0)
def attention(
    query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float,
) -> tuple[Array, Array]:  # fmt: skip
    """Return `softmax(query @ key.mT * scale + mask) @ value`, and statistics of the rows.

    The statistics of a row are its maximum and the reciprocal of its sum of exponentials. There may be fewer heads of
    keys and values than heads of queries. Several heads of queries then share a head. `mask` has four dimensions, and
    is added to the scores.
    `kept`: the weights that dropout keeps, as `packed_weights` returns them. `share`: the probability that a weight is dropped.
    """
    length = query.shape[2]
    out, statistics = results_like(query, value)
    heads = PART // (length * key.shape[2] or 1)
    for place, _, (q, k, v, added, bits) in parts(query, key, value, mask, kept, heads):
        exponentials, top, inverse = _exponentials(q, k, added, causal, scale)
        statistics[place][:, :, 0], statistics[place][:, :, 1] = top[..., 0], inverse[..., 0]
        if bits is not None:
            exponentials *= _unpacked(bits, length, share, statistics.dtype)
        out[place] = exponentials @ _for_queries(v, q.shape[1]) * inverse
    return out, statistics


@compiled("nn.attention.attention_gradients", least=0)
def attention_gradients(
    grad: Array, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float, out: Array, statistics: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the gradients of query, key and value."""
    at_once = PART // (query.shape[2] * key.shape[2] or 1)
    to_query, to_key, to_value = gradients_like(query, key, value)
    for place, of_keys, (q, k, v, added, bits) in parts(query, key, value, mask, kept, at_once):
        weights, _, inverse = _exponentials(q, k, added, causal, scale)
        weights *= inverse
        wide = widen(grad[place])
        change, dropped = wide @ _for_queries(v, q.shape[1]).mT, weights
        if bits is not None:
            noise = _unpacked(bits, query.shape[2], share, statistics.dtype)
            change, dropped = change * noise, weights * noise
        change -= (wide * widen(out[place])).sum(-1, keepdims=True)
        change *= weights
        change *= scale
        to_query[place] = change @ _for_queries(k, q.shape[1])
        to_key[of_keys] = _of_keys(change.mT @ q, k.shape[1])
        to_value[of_keys] = _of_keys(dropped.mT @ wide, k.shape[1])
    return to_query, to_key, to_value


def parts(
    query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, at_once: int
) -> Iterator[Any]:
    """Yield the parts that are computed at once: their indices among the heads of queries and of keys, and their arrays.

    `at_once`: the maximum number of heads of queries of a part, which has at least one head of keys.
    """
    batch, heads = query.shape[:2]
    key_heads = key.shape[1]
    group = heads // key_heads
    some = min(max(at_once // group, 1), key_heads)
    several = max(at_once // heads, 1)
    for first, start in itertools.product(range(0, batch, several), range(0, key_heads, some)):
        of_keys = slice(first, first + several), slice(start, start + some)
        place = of_keys[0], slice(start * group, (start + some) * group)
        arrays = [widen(each) for each in (query[place], key[of_keys], value[of_keys])]
        added = None if mask is None else _broadcast_part(mask, place)
        yield place, of_keys, (*arrays, added, None if kept is None else kept[place])


def _broadcast_part(mask: Array, place: tuple[slice, ...]) -> Array:
    """Return the part of a mask whose dimensions of size 1 are broadcast."""
    return mask[tuple([cut if size > 1 else slice(None) for size, cut in zip(mask.shape[:2], place, strict=True)])]


def _for_queries(array: Array, heads: int) -> Array:
    """Return the heads of keys or values, repeated to match the heads of queries."""
    return array if array.shape[1] == heads else numpy.repeat(array, heads // array.shape[1], 1)


def _of_keys(array: Array, heads: int) -> Array:
    """Return the sums over the heads of queries that share a head of keys."""
    if array.shape[1] == heads:
        return array
    total: Array = array.reshape((len(array), heads, -1, *array.shape[2:])).sum(2)
    return total


@functools.lru_cache(64)
def _later_keys(length: int, keys: int) -> Array:
    """Return which keys come after each query."""
    return numpy.logical_not(numpy.tri(length, keys, dtype=numpy.bool_))


def _exponentials(
    query: Array, key: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Array, Array, Array]:
    """Return the exponentials of the scores minus the row's maximum, the maximum, and the reciprocal of the sum, or 0."""
    scores = query @ _for_queries(key, query.shape[1]).mT
    with unwarned():
        scores *= scale
        if causal:
            later = _later_keys if scores[0, 0].size <= PART else _later_keys.__wrapped__
            numpy.copyto(scores, -math.inf, where=later(*scores.shape[2:]))
        if mask is not None:
            scores += mask
        top = numpy.maximum.reduce(scores, -1, keepdims=True)
        top[top == -math.inf] = 0
        scores -= top
        numpy.exp(scores, out=scores)
        total = numpy.add.reduce(scores, -1, keepdims=True)
        inverse = numpy.zeros_like(total)
        numpy.divide(1, total, out=inverse, where=total != 0)
    return scores, top, inverse


def packed_weights(draw: Any, rows: tuple[int, ...], keys: int, dtype: Any) -> Array:
    """Return which weights dropout keeps, as one bit per weight. A word contains the bits of 16 queries.

    `draw(array)` draws the weights of each head in turn. `rows` is the shape of the scores without their last dimension
    (the keys). The result has the shape (heads, keys, words).
    """
    length = rows[-1]
    kept = numpy.zeros((math.prod(rows[:-1]), keys, words_of(length)), numpy.uint16)
    noise = numpy.empty((length, keys), dtype)
    for own in kept:
        bits = numpy.packbits(draw(noise).T != 0, axis=-1, bitorder="little")
        own.view(numpy.uint8)[:, : bits.shape[1]] = bits
    return kept


def words_of(length: int) -> int:
    """Return the number of words with the bits of this many queries, so that all queries of a block have bits."""
    return -(-length // 64) * 4


def noise_of(kept: Array, query: Array, key: Array, share: float) -> Array:
    """Return the factors by which dropout multiplies the weights."""
    each = [_unpacked(own, query.shape[-2], share, query.dtype) for own in kept]
    return numpy.array(each, query.dtype).reshape((*query.shape[:-1], key.shape[-2]))


def _unpacked(kept: Array, length: int, share: float, dtype: Any) -> Array:
    """Return the factors of the weights of a head, as a matrix (queries, keys)."""
    bits = numpy.unpackbits(kept.view(numpy.uint8), axis=-1, count=length, bitorder="little")
    return bits.mT / dtype.type(1 - share)


def results_like(query: Array, value: Array) -> tuple[Array, Array]:
    """Return arrays for the result and the statistics."""
    batch, heads, length = query.shape[:3]
    return result_like(query, value), empty((batch, heads, 2, length), compute_dtype(query.dtype))


def result_like(query: Array, value: Array) -> Array:
    """Return an array for the result.

    If the rows of `query` are contiguous, its dimensions have the same order in memory as in `query`.
    """
    if query.shape[-1] == value.shape[-1] and query.strides[-1] == query.itemsize:
        result = empty_like(query)
        if result.strides[-1] == result.itemsize:  # not if rows of `query` share memory
            return result
    return empty((*query.shape[:-1], value.shape[-1]), query.dtype)


def gradients_like(*inputs: Array) -> tuple[Array, ...]:
    """Return an array for the gradient of each input. In memory, the heads of one position are adjacent."""
    return tuple(
        [empty(tuple([each.shape[dim] for dim in (0, 2, 1, 3)]), each.dtype).swapaxes(1, 2) for each in inputs]
    )
