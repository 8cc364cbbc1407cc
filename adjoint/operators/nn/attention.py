"""Scaled dot product attention without a matrix of all scores, in forward and in backward."""

from __future__ import annotations

import functools
import math

import numpy

from ... import dtypes
from ...codegen.acceleration import LOOPS
from ...dispatch.annotations import Array
from ...dispatch.array_functions import computed
from ...dispatch.decorators import internal, public, tensors
from ...kernels.create import random
from ...kernels.nn import attention as kernels
from ...kernels.runtime.floating import compute_dtype
from ...tape import modes
from ...tensor import wrap
from ..create.random import stream_of


@public(namespace=None, on_arrays=kernels.blocked_attention_gradients)
def blocked_attention_gradients(grad, query, key, value, mask, kept, share, causal, scale, output, statistics, needs):
    """The gradients of query, key and value. Differentiable operations store all weights. Half types become float32."""
    if (kind := query.dtype) in _HALVES:
        grad, query, key, value = (each.float() for each in (grad, query, key, value))
        options = (mask, kept, share, causal, scale, output, statistics, needs)
        return tuple([each.to(kind) for each in blocked_attention_gradients(grad, query, key, value, *options)])
    group = query.size(-3) // key.size(-3) if query.dim() > 2 else 1
    keys, values = (each if group == 1 else each.repeat_interleave(group, -3) for each in (key, value))
    scores = (query @ keys.mT) * scale
    if causal:
        later = numpy.logical_not(numpy.tri(query.size(-2), key.size(-2), dtype=numpy.bool_))
        scores = scores.masked_fill(wrap(later), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf) if mask._array.dtype.kind == "b" else scores + mask
    alone = scores.detach().amax(-1, keepdim=True) == -math.inf  # rows that attend to nothing
    weights = tensors.softmax(scores.masked_fill(alone, 0.0), -1).masked_fill(alone, 0.0)
    change, dropped = grad @ values.mT, weights
    if kept is not None:
        noise = wrap(kernels.noise_of(kept._array, query._array, key._array, share))
        change, dropped = change * noise, weights * noise
    change = weights * (change - (weights * change).sum(-1, keepdim=True))
    to_key, to_value = (change.mT @ query) * scale, dropped.mT @ grad
    if group > 1:
        to_key, to_value = (each.unflatten(-3, (-1, group)).sum(-3) for each in (to_key, to_value))
    return (change @ keys) * scale, to_key, to_value


@internal(
    kernels.blocked_attention,
    out=False,
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    outputs=("output", "statistics"),
)
class blocked_attention:
    """The result, and the values needed to compute each row's softmax again."""

    differentiable = ("query", "key", "value")
    nondifferentiable = ("statistics",)
    saved_display = {"kept": None, "statistics": None}

    def forward(
        query: Array, key: Array, value: Array, attn_mask: Array | None, kept: Array | None, dropout_p, is_causal, scale
    ): ...

    def grad_inputs(
        grads, query, key, value, attn_mask, kept, dropout_p, is_causal, scale, output, statistics, needs, xp
    ):
        if grads[0] is None:
            return None, None, None
        return xp.blocked_attention_gradients(
            grads[0], query, key, value, attn_mask, kept, dropout_p, is_causal, scale, output, statistics, needs
        )


_HALVES = (dtypes.float16, dtypes.bfloat16)

_WIDEST = 256

_MANY = 1 << 11
"""From this number of scores upwards, attention is one operator, even in cases in which PyTorch's graph shows the steps."""


@public(namespace=None)
def attention_in_blocks(query, key, value, mask, dropout_p, causal, scale, grouped):
    """Compute attention as one operator. Return None if these tensors are not supported."""
    q, k, v = query._array, key._array, value._array
    if not query.dtype is key.dtype is value.dtype:
        names = [dtypes.C_NAMES[each.dtype] for each in (query, key, value)]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} key.dtype: {names[1]} and "
            f"value.dtype: {names[2]} instead."
        )
    wide = compute_dtype(q.dtype)
    if not type(q) is type(k) is type(v) is numpy.ndarray or wide.char not in "fd" or modes.STATE.interpreters:
        return None
    ndim = q.ndim
    if not 2 <= ndim <= 4 or not ndim == k.ndim == v.ndim or not 0 <= dropout_p < 1:
        return None
    *batch, length, width = q.shape
    *key_batch, keys, key_width = k.shape
    *value_batch, values, value_width = v.shape
    scores = math.prod(batch) * length * keys
    if not scores or width != key_width or keys != values or min(width, value_width) == 0:
        return None
    if LOOPS.takes(scores, _MANY):
        if max(width, value_width) > _WIDEST:
            return None
    elif (
        scores > kernels.PART
        or ndim < 4
        or dropout_p > 0
        or width != value_width
        or (mask is not None and mask.dim() == 3)
    ):
        return None  # PyTorch's graph then shows the steps too
    if not batch == key_batch == value_batch:
        heads, key_heads = batch[-1], key_batch[-1]
        if (
            key_batch != value_batch
            or batch[:-1] != key_batch[:-1]
            or not grouped
            or not key_heads
            or heads % key_heads
        ):
            return None
    if mask is not None and not _is_plain(mask, q, (*q.shape[:-1], keys)):
        return None
    kept = None
    if dropout_p > 0:
        kept = computed(_drawn_weights, query, keys, dropout_p, keeps=True)
    return blocked_attention(query, key, value, mask, kept, dropout_p, causal, scale)[0]


def _drawn_weights(query, keys, share):
    """Draw which weights dropout keeps."""
    draw = functools.partial(random.dropout_mask, stream_of(None), p=share)
    return kernels.packed_weights(draw, query.shape[:-1], keys, compute_dtype(query.dtype))


def _is_plain(mask, query, scores):
    """Return whether attention in blocks supports the mask: the mask needs no gradient and broadcasts to the scores."""
    array = mask._array
    return (
        type(array) is numpy.ndarray
        and (array.dtype.kind == "b" or array.dtype in (query.dtype, compute_dtype(query.dtype)))
        and not (mask.requires_grad and modes.is_recording())
        and array.ndim <= len(scores)
        and array.ndim >= 2
        and all(own in (1, wanted) for own, wanted in zip(array.shape[::-1], scores[::-1], strict=False))
    )
