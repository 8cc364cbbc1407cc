"""Scaled dot product attention that holds no scores; see `attention_blocks`."""

from __future__ import annotations

from typing import Any

import numpy

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import address, f32, f64
from ....codegen.llvm.launch import launch
from ...nn.attention import gradients_like, result_like
from ...runtime.floating import widen
from ...runtime.parallel import get_num_threads, parallel_rows, scratch
from ..linalg.tiles import VECTORS, tile_rows
from . import attention_blocks as blocks
from .attention_blocks import attend, attend_backward

Array = numpy.ndarray[Any, Any]

_TYPES = {"f": f32, "d": f64}
_FLOPS_PER_BYTE = 16
"""How many operations take as long as one byte of the memory by which work is measured."""


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    kept: Array | None,
    share: float,
    causal: bool,
    scale: float,
) -> Any:
    """`kernels.nn.attention.attention`."""
    call = _Call(query, key, value, mask, kept, share, causal, scale)
    if not call.taken:
        return NotImplemented
    out = result_like(call.query, call.value)
    batch, heads, length, width = query.shape
    statistics = numpy.empty((batch, heads, 2, length), out.dtype)
    call.note(blocks.O, out)
    function = attend.compiled(**call.static)
    count = batch * heads * -(-length // call.lanes)
    work = 2 * call.lanes * key.shape[2] * (width + value.shape[3]) // _FLOPS_PER_BYTE
    arrays = (out, statistics, call.query, call.key, call.value, call.mask, call.kept, call.sizes)
    launch(function, count, max(work, 1), *map(address, arrays), scale, call.keep_scale)
    return out.astype(query.dtype, copy=False), statistics


def attention_gradients(
    grad: Array, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float, out: Array, statistics: Array,
) -> Any:  # fmt: skip
    """`kernels.nn.attention.attention_gradients`."""
    call = _Call(query, key, value, mask, kept, share, causal, scale)
    if not call.taken:
        return NotImplemented
    out, grad = _rows_of_numbers(widen(out)), _rows_of_numbers(widen(grad))
    kind, shape = call.query.dtype, (*query.shape[:3], value.shape[3])
    fitting = statistics.shape == (*query.shape[:2], 2, query.shape[2]) and statistics.flags.c_contiguous
    if (
        not fitting
        or any(each.shape != shape or each.dtype != kind for each in (out, grad))
        or statistics.dtype != kind
    ):
        return NotImplemented
    to_query, to_key, to_value = gradients_like(call.query, call.key, call.value)
    batch, heads = key.shape[:2]
    threads = get_num_threads()
    per_head = -(-query.shape[2] // call.lanes) * (query.shape[1] // heads)
    splits = 1 if batch * heads >= 2 * threads or threads == 1 else min(per_head, -(-2 * threads // (batch * heads)))
    key_parts, value_parts = to_key[None], to_value[None]
    if splits > 1:
        key_parts = numpy.empty((splits, *key.shape), to_key.dtype)
        value_parts = numpy.empty((splits, *value.shape), to_value.dtype)
    for place, array in (
        (blocks.O, out), (blocks.GO, grad), (blocks.GQ, to_query), (blocks.GK, key_parts[0]), (blocks.GV, value_parts[0]),
    ):  # fmt: skip
        call.note(place, array)
    call.sizes[blocks.SPLITS] = splits
    call.sizes[blocks.PARTS : blocks.PARTS + 2] = key_parts.strides[0], value_parts.strides[0]
    call.sizes[blocks.PARTS : blocks.PARTS + 2] //= out.itemsize
    function = attend_backward.compiled(**call.static)
    room = -(-key.shape[2] // blocks.KEYS) * blocks.KEYS
    padded = [-(-width // call.lanes) * call.lanes for width in (query.shape[3], value.shape[3])]
    arrays = (
        to_query, key_parts, value_parts, grad, out, statistics, call.query, call.key, call.value, call.mask, call.kept,
        call.sizes,
    )  # fmt: skip
    count = batch * heads * splits
    shares = min(count, 1 if threads == 1 else 4 * threads)
    call.sizes[[blocks.ITEMS, blocks.SHARES]] = count, shares
    space = scratch("attention", (shares * room * sum(padded),), out.dtype)
    work = 5 * query.shape[2] * key.shape[2] * sum(padded) * query.shape[1] // heads // splits // _FLOPS_PER_BYTE
    launch(
        function, shares, max(work * count // shares, 1), *map(address, (*arrays, space)), scale, call.keep_scale
    )  # fmt: skip
    if splits > 1:
        numpy.sum(key_parts, 0, out=to_key)
        numpy.sum(value_parts, 0, out=to_value)
    return tuple([found.astype(query.dtype, copy=False) for found in (to_query, to_key, to_value)])


class _Call:
    """The arguments of one call in the form that the loops take; `taken` is False if they do not take them."""

    def __init__(
        self, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
        scale: float,
    ) -> None:  # fmt: skip
        self.query, self.key, self.value = (_rows_of_numbers(widen(each)) for each in (query, key, value))
        width, value_width = query.shape[3], value.shape[3]
        kinds = {each.dtype.char for each in (self.query, self.key, self.value)}
        self.taken = (
            len(kinds) == 1
            and kinds <= _TYPES.keys()
            and max(width, value_width) <= blocks.FEATURES
            and min(query.size, key.size, value.size) > 0
            and _go_together(query, key, value, mask, kept)
        )
        if not self.taken:
            return
        lanes = HOST.vector_bytes // self.query.itemsize
        self.lanes = VECTORS * lanes
        self.sizes = numpy.zeros(blocks.SIZES, numpy.int64)
        heads, length = query.shape[1:3]
        keys = key.shape[2]
        self.sizes[:7] = heads, heads // key.shape[1], length, keys, width, value_width, causal
        self.sizes[blocks.TWO] = 2
        for place, array in ((blocks.Q, self.query), (blocks.K, self.key), (blocks.V, self.value)):
            self.note(place, array)
        kind = self.query.dtype
        self.mask, form = numpy.empty(0, kind), blocks.NO_MASK
        if mask is not None:
            form = blocks.MASK_OF_KEYS if mask.shape[2] == 1 else blocks.MASK_OF_QUERIES
            self.mask = _by_keys(mask, keys, -(-length // self.lanes) * self.lanes, kind)
            steps = [step * (size > 1) for step, size in zip(self.mask.strides, self.mask.shape, strict=True)]
            self.sizes[blocks.MASK : blocks.MASK + 4] = numpy.array(steps) // self.mask.itemsize
        self.kept = numpy.empty(0, numpy.uint16)
        if kept is not None:
            self.kept = kept
            self.note(blocks.KEEP, kept)
        self.keep_scale = 1 / (1 - share) if kept is not None else 1.0
        self.static: dict[str, Any] = {
            "T": _TYPES[kind.char], "W": lanes, "R": tile_rows(HOST.vector_bytes),
            "WHOLE": width % self.lanes == value_width % self.lanes == 0, "MASKED": form,
            "DROPPED": kept is not None,
        }  # fmt: skip

    def note(self, place: int, array: Array) -> None:
        """Write down the steps of an array, in numbers."""
        self.sizes[place : place + 3] = [step // array.itemsize for step in array.strides[:3]]


def _go_together(query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None) -> bool:
    """Whether the shapes fit: the loops check nothing."""
    batch, heads, length, width = query.shape
    scores = (batch, heads, length, key.shape[2])
    return (
        key.shape[0] == value.shape[0] == batch
        and key.shape[1] == value.shape[1]
        and heads % key.shape[1] == 0
        and key.shape[2] == value.shape[2]
        and key.shape[3] == width
        and (mask is None or all(own in (1, wanted) for own, wanted in zip(mask.shape, scores, strict=True)))
        and (
            kept is None
            or (kept.shape[:3] == (batch, heads, key.shape[2]) and kept.shape[3] * 16 >= -(-length // 64) * 64)
        )
    )


def _by_keys(mask: Array, keys: int, queries: int, kind: Any) -> Array:
    """The mask as its numbers for one key and all queries lie next to each other."""
    batch, heads, length = mask.shape[:3]
    found = numpy.zeros((batch, heads, keys if mask.shape[3] > 1 else 1, queries if length > 1 else 1), kind)
    own, each = found.reshape((-1, *found.shape[2:])), mask.reshape((-1, *mask.shape[2:]))

    def transpose(start: int, stop: int) -> None:
        own[start:stop, :, :length] = each[start:stop].mT

    parallel_rows(transpose, len(own), own[:1].nbytes, tile_rows=1)
    return found


def _rows_of_numbers(array: Array) -> Array:
    """The array with the numbers of a row one behind another."""
    return array if array.strides[-1] == array.itemsize or array.shape[-1] == 1 else numpy.ascontiguousarray(array)
