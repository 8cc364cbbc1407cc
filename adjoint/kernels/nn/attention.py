"""Scaled dot product attention of arrays `(batch, heads, length, features)`, and its gradients, head by head."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...codegen.acceleration import accelerated
from ..runtime.floating import unwarned, widen

Array = numpy.ndarray[Any, Any]


def blocked_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    kept: Array | None,
    share: float,
    causal: bool,
    scale: float,
) -> tuple[Array, Array]:
    """`attention` of arrays that need not have dimensions of a batch and of heads, with a mask that may be boolean."""
    q, k, v = (_with_heads(each) for each in (query, key, value))
    out, statistics = attention(q, k, v, _added(mask, q), _by_batch(kept, q), share, causal, scale)
    return out.reshape((*query.shape[:-1], value.shape[-1])), statistics


def blocked_attention_gradients(
    grad: Array, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float, out: Array, statistics: Array, needs: Any,
) -> tuple[Array, ...]:  # fmt: skip
    """Its gradients."""
    q, k, v = (_with_heads(each) for each in (query, key, value))
    added, bits = _added(mask, q), _by_batch(kept, q)
    found = attention_gradients(
        _with_heads(grad), q, k, v, added, bits, share, causal, scale, _with_heads(out), statistics
    )
    return tuple([each.reshape(own.shape) for each, own in zip(found, (query, key, value), strict=True)])


def _with_heads(array: Array) -> Array:
    return array[(None,) * (4 - array.ndim)]


def _by_batch(kept: Array | None, query: Array) -> Array | None:
    return None if kept is None else kept.reshape((*query.shape[:2], *kept.shape[1:]))


def _added(mask: Array | None, query: Array) -> Array | None:
    """A mask as what is added to scores, of four dimensions."""
    if mask is None:
        return None
    if mask.dtype.kind == "b":
        mask = numpy.where(mask, 0, numpy.array(-math.inf, widen(query[:0]).dtype))
    return _with_heads(mask)


@accelerated("nn.attention.attention", elements=1 << 8)
def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    kept: Array | None,
    share: float,
    causal: bool,
    scale: float,
) -> tuple[Array, Array]:
    """`softmax(query @ key.mT * scale + mask) @ value`, and of each row the maximum and one over the sum of exponentials.

    There may be fewer heads of keys and values, each for a group of heads of queries. `mask`, of four dimensions, is added to the
    scores.
    `kept`: which weights dropout keeps, as `packed_weights` gives them, by batch and head, each dropped with probability `share`.
    """
    batch, heads, length, _ = query.shape
    out = result_like(query, value)
    statistics = numpy.empty((batch, heads, 2, length), widen(query[:0]).dtype)
    for place in numpy.ndindex(batch, heads):
        exponentials, top, inverse = _exponentials(place, query, key, mask, causal, scale)
        if kept is not None:
            exponentials = exponentials * _unpacked(kept[place], length, share, statistics.dtype)
        out[place] = (exponentials @ widen(value[_shared(place, query, key)])) * inverse[:, None]
        statistics[place] = top, inverse
    return out, statistics


@accelerated("nn.attention.attention_gradients", elements=1 << 8)
def attention_gradients(
    grad: Array, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float, out: Array, statistics: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The gradients of query, key and value."""
    to_query, to_key, to_value = gradients_like(query, key, value)
    sums = [numpy.zeros(part.shape, statistics.dtype) for part in (to_key, to_value)]
    for place in numpy.ndindex(*query.shape[:2]):
        own = _shared(place, query, key)
        exponentials, _, inverse = _exponentials(place, query, key, mask, causal, scale)
        weights = exponentials * inverse[:, None]
        wide = widen(grad[place])
        change = wide @ widen(value[own]).mT
        dropped = weights
        if kept is not None:
            noise = _unpacked(kept[place], query.shape[2], share, statistics.dtype)
            change, dropped = change * noise, weights * noise
        change = weights * (change - (wide * widen(out[place])).sum(-1, keepdims=True))
        to_query[place] = change @ widen(key[own]) * scale
        sums[0][own] += change.mT @ widen(query[place]) * scale
        sums[1][own] += dropped.mT @ wide
    to_key[...], to_value[...] = sums
    return to_query, to_key, to_value


def _shared(place: tuple[int, ...], query: Array, key: Array) -> tuple[int, int]:
    """The head of keys and values of a head of queries."""
    return place[0], place[1] * key.shape[1] // query.shape[1]


def _exponentials(
    place: tuple[int, ...], query: Array, key: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Array, Array, Array]:
    """The exponentials of a head's scores less the maximum of their row, that, and one over their sum (0 for no sum)."""
    scores = widen(query[place]) @ widen(key[_shared(place, query, key)]).mT * scale
    if causal:
        scores = numpy.where(numpy.tri(*scores.shape, dtype=numpy.bool_), scores, -math.inf)
    if mask is not None:
        shape = (*query.shape[:2], *scores.shape)
        scores = scores + numpy.broadcast_to(mask, shape)[place]
    with unwarned():
        top = scores.max(-1, initial=-math.inf)
        top = numpy.where(top == -math.inf, 0, top)
        exponentials = numpy.exp(scores - top[:, None])
        total = exponentials.sum(-1)
        inverse = numpy.where(total == 0, 0, 1 / total)
    kind = scores.dtype
    return exponentials.astype(kind, copy=False), top.astype(kind), inverse.astype(kind)


def packed_weights(draw: Any, rows: tuple[int, ...], keys: int, dtype: Any) -> Array:
    """Which weights dropout keeps, drawn by `draw(array)` for each head in turn: a bit for each, those of 16 queries in a word.

    `rows` is the shape of the scores without the last dimension, of the keys. The result has the shape (heads, keys, words).
    """
    length = rows[-1]
    words = -(-length // 64) * 4  # so that all queries of a block have bits
    kept = numpy.zeros((math.prod(rows[:-1]), keys, words), numpy.uint16)
    noise = numpy.empty((length, keys), dtype)
    for own in kept:
        bits = numpy.packbits(draw(noise).T != 0, axis=-1, bitorder="little")
        own.view(numpy.uint8)[:, : bits.shape[1]] = bits
    return kept


def noise_of(kept: Array, query: Array, key: Array, share: float) -> Array:
    """What dropout multiplies the weights by."""
    each = [_unpacked(own, query.shape[-2], share, query.dtype) for own in kept]
    return numpy.array(each, query.dtype).reshape((*query.shape[:-1], key.shape[-2]))


def _unpacked(kept: Array, length: int, share: float, dtype: Any) -> Array:
    """What the weights of a head are multiplied by: queries by keys."""
    bits = numpy.unpackbits(kept.view(numpy.uint8), axis=-1, count=length, bitorder="little")
    return bits.T / dtype.type(1 - share)


def result_like(query: Array, value: Array) -> Array:
    """An array for the result, its dimensions in the order in memory that those of `query` have."""
    if query.shape == (*query.shape[:-1], value.shape[-1]):
        return numpy.empty_like(query, subok=False)
    return numpy.empty((*query.shape[:-1], value.shape[-1]), query.dtype)


def gradients_like(*inputs: Array) -> tuple[Array, ...]:
    """An array for the gradient of each input, whose heads lie next to each other for each position."""
    return tuple(
        [numpy.empty(tuple([each.shape[dim] for dim in (0, 2, 1, 3)]), each.dtype).swapaxes(1, 2) for each in inputs]
    )
