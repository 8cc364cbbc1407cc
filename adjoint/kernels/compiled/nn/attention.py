"""Scaled dot product attention without a matrix of scores; see `attention_blocks`."""

from __future__ import annotations

import math
from typing import NamedTuple

from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import VECTORS, tile_rows
from ....codegen.plans import Plans
from ...memory.copying import contiguous, copy_, copy_elements, widen
from ...nn.attention import gradients_like, parts, result_like, results_like, words_of
from ...runtime.costs import FLOPS_PER_BYTE, NARROW, PART
from ...runtime.floating import HALVES
from ...runtime.layout import row_major
from ...runtime.parallel import get_num_threads, parallel_rows
from . import attention_blocks as blocks
from .attention_blocks import SIZES, attend, attend_backward
from .plane_norm import over_samples

Array = numpy.ndarray[Any, Any]


@recordable
def attention(
    query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float,
) -> Any:  # fmt: skip
    """Compute `kernels.nn.attention.attention`. Several heads of half types at a time are converted to float32."""
    if query.dtype in HALVES:
        results = results_like(query, value)
        for place, _, (q, k, v, added, bits) in parts(query, key, value, mask, kept, _heads_at_once(query, key)):
            found = attention(q, k, v, added, bits, share, causal, scale)
            if found is NotImplemented:
                return found
            for result, part in zip(results, found, strict=True):
                copy_(result[place], part)
        return results
    q, k, v = map(_rows_of_numbers, (query, key, value))
    k, v = _adjacent_rows(k, q.shape[2]), _adjacent_rows(v, q.shape[2])
    plan = _planned(q, k, v, mask, kept, causal)
    if plan is None:
        return NotImplemented
    out = result_like(q, v)
    statistics = empty(plan.of_statistics, out.dtype)
    call = plan.forward or plan.plan_forward(out)
    arrays = out, statistics, q, k, v, plan.mask(mask), plan.kept(kept)
    launch(*call.loops, *arrays, call.sizes, scale, _keep_scale(kept, share))
    return out, statistics


@recordable
def attention_gradients(
    grad: Array, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, share: float, causal: bool,
    scale: float, out: Array, statistics: Array,
) -> Any:  # fmt: skip
    """Compute `kernels.nn.attention.attention_gradients`."""
    if query.dtype in HALVES:
        gradients = gradients_like(query, key, value)
        for place, of_keys, (q, k, v, added, bits) in parts(query, key, value, mask, kept, _heads_at_once(query, key)):
            wide = widen(grad[place]), q, k, v
            found = attention_gradients(*wide, added, bits, share, causal, scale, widen(out[place]), statistics[place])
            if found is NotImplemented:
                return found
            for gradient, part, cut in zip(gradients, found, (place, of_keys, of_keys), strict=True):
                copy_(gradient[cut], part)
        return gradients
    q, k, v, out, grad = map(_rows_of_numbers, (query, key, value, out, grad))
    k, v = _adjacent_rows(k, q.shape[2]), _adjacent_rows(v, q.shape[2])
    plan = _planned(q, k, v, mask, kept, causal)
    if plan is None:
        return NotImplemented
    gradients = to_query, to_key, to_value = gradients_like(q, k, v)
    key_of_call = grad.shape, grad.strides, grad.dtype, out.shape, out.strides, out.dtype, get_num_threads()
    call = plan.backward.get(key_of_call)
    if call is None:
        if any(each.shape != to_query.shape[:3] + v.shape[3:] or each.dtype != q.dtype for each in (out, grad)):
            return NotImplemented
        call = plan.backward.keep(key_of_call, plan.plan_backward(grad, out, gradients))
    if statistics.shape != plan.of_statistics or statistics.dtype != q.dtype or not statistics.flags.c_contiguous:
        return NotImplemented
    key_parts, value_parts = to_key, to_value
    if call.splits > 1:
        key_parts, value_parts = empty((call.splits, *k.shape), q.dtype), empty((call.splits, *v.shape), q.dtype)
    space = workspace("attention", call.room, q.dtype)
    arrays = to_query, key_parts, value_parts, grad, out, statistics, q, k, v, plan.mask(mask), plan.kept(kept)
    launch(
        *call.loops, *arrays, call.sizes, space, scale, _keep_scale(kept, share)
    )  # fmt: skip
    if call.splits > 1:
        copy_elements(to_key, _added(key_parts))
        copy_elements(to_value, _added(value_parts))
    return gradients


def _heads_at_once(query: Array, key: Array) -> int:
    """Return the number of heads that are converted to float32 at a time."""
    return PART // (math.prod(query.shape[2:]) + math.prod(key.shape[2:]) or 1)


_PLANS: Plans[_Plan | None] = Plans()


def _planned(
    query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, causal: bool
) -> _Plan | None:
    """Return the plan for arrays like these, or None if the loops do not support them."""
    key_of_plan = (
        HOST.vector_bytes, query.dtype, query.shape, query.strides, key.dtype, key.shape, key.strides, value.dtype, value.shape,
        value.strides, mask is not None and mask.shape, kept is not None and (kept.shape, kept.strides), causal,
    )  # fmt: skip
    try:
        return _PLANS[key_of_plan]
    except KeyError:
        taken = (
            query.dtype.char in "fd"
            and key.dtype == value.dtype == query.dtype
            and max(query.shape[3], value.shape[3]) <= blocks.FEATURES
            and min(query.size, key.size, value.size) > 0
            and _shapes_match(query, key, value, mask, kept)
        )
        return _PLANS.keep(key_of_plan, _Plan(query, key, value, mask, kept, causal) if taken else None)


class _LoopsOfCall(NamedTuple):
    """The data that calls of one loop share for arrays of the same shapes and strides."""

    loops: tuple[Any, int, int]
    """Return the function, the number of items that it processes, and the amount of work for each item."""

    sizes: Array
    splits: int = 1
    room: int = 0


class _Plan:
    """The data that calls share for arrays of the same shapes and strides."""

    def __init__(
        self, query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None, causal: bool
    ) -> None:
        lanes = HOST.vector_bytes // query.itemsize
        self.lanes = VECTORS * lanes
        self.sizes = numpy.zeros(SIZES.size, numpy.int64)
        batch, heads, length, width = self.of_query = query.shape
        self.of_key, self.value_width = key.shape, value.shape[3]
        self.of_statistics = batch, heads, 2, length
        self.sizes[:7] = heads, heads // key.shape[1], length, key.shape[2], width, self.value_width, causal
        self.sizes[SIZES.places["two"]] = 2
        self._note(self.sizes, q=query, k=key, v=value)
        self._nothing = unchanged(numpy.empty(0, query.dtype))
        form = blocks.NO_MASK
        if mask is not None:
            form = blocks.MASK_OF_KEYS if mask.shape[2] == 1 else blocks.MASK_OF_QUERIES
            by_keys = self.mask(mask)
            steps = [step * (size > 1) for step, size in zip(by_keys.strides, by_keys.shape, strict=True)]
            self.sizes[SIZES.places["mask"] :][:4] = numpy.array(steps) // by_keys.itemsize
        if kept is not None:
            self._note(self.sizes, keep=kept)
        self._static: dict[str, Any] = {
            "T": type_of(query.dtype), "W": lanes, "R": tile_rows(HOST.vector_bytes),
            "WHOLE": width % self.lanes == self.value_width % self.lanes == 0, "MASKED": form,
            "DROPPED": kept is not None,
        }  # fmt: skip
        self.forward: _LoopsOfCall | None = None
        self.backward: Plans[_LoopsOfCall] = Plans()

    def mask(self, mask: Array | None) -> Array:
        """Return the mask in the form that the loops require."""
        if mask is None:
            return self._nothing
        return _by_keys(mask, self.of_key[2], -(-self.of_query[2] // self.lanes) * self.lanes, self._nothing.dtype)

    def kept(self, kept: Array | None) -> Array:
        """Return which weights dropout keeps, in the form that the loops require."""
        return self._nothing if kept is None else kept

    def plan_forward(self, out: Array) -> _LoopsOfCall:
        """Plan calls whose result has the layout of `out`, which is the layout of all results."""
        batch, heads, length, width = self.of_query
        self._note(self.sizes, out=out)
        work = 2 * self.lanes * self.of_key[2] * (width + self.value_width) // FLOPS_PER_BYTE
        loops = attend.compiled(**self._static), batch * heads * -(-length // self.lanes), max(work, 1)
        self.forward = _LoopsOfCall(loops, unchanged(self.sizes.copy()))
        return self.forward

    def plan_backward(self, grad: Array, out: Array, gradients: tuple[Array, ...]) -> _LoopsOfCall:
        """Plan calls in which all arrays have the layouts of these arrays."""
        sizes = self.sizes.copy()
        to_query, to_key, to_value = gradients
        (batch, heads), (_, query_heads, length, width) = self.of_key[:2], self.of_query
        keys, threads = self.of_key[2], get_num_threads()
        per_head = -(-length // self.lanes) * (query_heads // heads)
        splits = (
            1 if batch * heads >= 2 * threads or threads == 1 else min(per_head, -(-2 * threads // (batch * heads)))
        )
        parts = to_key, to_value
        if splits > 1:  # consecutive, in row-major order
            parts = numpy.empty(to_key.shape, to_key.dtype), numpy.empty(to_value.shape, to_value.dtype)
        self._note(sizes, out=out, grad=grad, grad_q=to_query, grad_k=parts[0], grad_v=parts[1])
        sizes[SIZES.places["splits"]] = splits
        sizes[SIZES.places["parts"] :][:2] = to_key.size, to_value.size
        count = batch * heads * splits
        shares = min(count, 1 if threads == 1 else 4 * threads)
        sizes[SIZES.places["items"] :][:2] = count, shares
        padded = sum([-(-each // self.lanes) * self.lanes for each in (width, self.value_width)])
        work = 5 * length * keys * padded * query_heads // heads // splits // FLOPS_PER_BYTE
        loops = attend_backward.compiled(**self._static), shares, max(work * count // shares, 1)
        room = shares * -(-keys // blocks.KEYS) * blocks.KEYS * padded
        return _LoopsOfCall(loops, unchanged(sizes), splits, room)

    def _note(self, sizes: Array, **arrays: Array) -> None:
        """Write the steps of arrays, in elements, into the table."""
        for name, array in arrays.items():
            sizes[SIZES.places[name] :][:3] = [step // array.itemsize for step in array.strides[:3]]


def _added(parts: Array) -> Array:
    """Return the sum of parts, which are added one after another."""
    rows = parts.reshape(len(parts), math.prod(parts.shape[1:]))
    found = over_samples(rows)
    return (numpy.sum(rows, 0) if found is NotImplemented else found).reshape(parts.shape[1:])


def _keep_scale(kept: Array | None, share: float) -> float:
    return 1.0 if kept is None else 1 / (1 - share)


def _shapes_match(query: Array, key: Array, value: Array, mask: Array | None, kept: Array | None) -> bool:
    """Return whether the shapes match. The loops themselves check nothing."""
    batch, heads, length, width = query.shape
    scores = (batch, heads, length, key.shape[2])
    return (
        key.shape[0] == value.shape[0] == batch
        and key.shape[1] == value.shape[1]
        and heads % key.shape[1] == 0
        and key.shape[2] == value.shape[2]
        and key.shape[3] == width
        and (mask is None or all(own in (1, wanted) for own, wanted in zip(mask.shape, scores, strict=True)))
        and (kept is None or (kept.shape[:3] == (batch, heads, key.shape[2]) and kept.shape[3] >= words_of(length)))
    )


def _by_keys(mask: Array, keys: int, queries: int, kind: Any) -> Array:
    """Return the mask with adjacent numbers for one key and all queries."""
    batch, heads, length = mask.shape[:3]
    found = numpy.zeros((batch, heads, keys if mask.shape[3] > 1 else 1, queries if length > 1 else 1), kind)
    own, each = found.reshape((-1, *found.shape[2:])), mask.reshape((-1, *mask.shape[2:]))

    def transpose(start: int, stop: int) -> None:
        own[start:stop, :, :length] = each[start:stop].mT

    parallel_rows(transpose, len(own), own[:1].nbytes, tile_rows=1)
    return found


def _adjacent_rows(array: Array, queries: int) -> Array:
    """Return keys or values whose rows are adjacent if many queries read them, so that the cache keeps them."""
    return array if queries < NARROW or array.strides[2] == array.shape[3] * array.itemsize else contiguous(array)


def _rows_of_numbers(array: Array) -> Array:
    """Return the array with adjacent numbers in each row."""
    return array if array.strides[-1] == array.itemsize or array.shape[-1] == 1 else row_major(array)
