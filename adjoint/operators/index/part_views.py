"""The fast path of the most frequent keys: integers, slices, None and `...`.

The fast path creates one view, and a node per part of the key.

Its results equal the results of `keys.apply_basic`, which uses one operator per part. The functions return None if the
general code is needed.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy

from ...dispatch.declaration import OPERATORS
from ...kernels.shape import view as view_kernels
from ...tape import modes
from ...tape.edges import NOWHERE, current_edge
from ...tape.origin import nearest_user_frame
from ...tape.versions import shared_counter
from ...tape.views import creation_unrecorded
from ...tensor import LEAF, Tensor, new_tensor

_slice = type(numpy.s_[:])
_FULL = _slice(None)
_LEADING = [(_FULL,) * dim for dim in range(65)]
"""For each number of leading dimensions, the part of a NumPy key that leaves them unchanged."""

_BOUNDS = (int, type(None))

_FLAGS, _STATE = modes.FLAGS, modes.STATE


def leading_part(input: Tensor, part: Any, kind: type) -> Tensor | None:
    """Return the view of an integer or a slice in the first dimension. Return None if the general code is needed."""
    before = input._array
    try:
        if kind is int:
            array = before[part, ...]
        else:
            start, stop, step = part.start, part.stop, part.step
            if (
                type(start) not in _BOUNDS
                or type(stop) not in _BOUNDS
                or not (step is None or (type(step) is int and step > 0))
            ):
                return None
            array = before[part]
    except (IndexError, TypeError):
        return None
    edge = _recorded_edge(input)
    if edge is not None:
        frame = sys._getframe(2)
        code = frame.f_code
        if code.co_filename is not _FLAGS.file:
            frame = nearest_user_frame(frame)
            code = frame.f_code
        if edge is LEAF:
            edge = input
        select_node, slice_node, _ = _part_nodes()
        if kind is int:
            edge = (select_node(edge, before, array, frame, code, 0, part), 0)
        else:
            edge = (slice_node(edge, before, array, frame, code, 0, start, stop, 1 if step is None else step), 0)
    elif input._extra is not None and input._extra.inference:
        return None
    return _view(input, array, edge)


def basic_view(input: Tensor, key: tuple[Any, ...]) -> Tensor | None:
    """Return the view of a key of integers, slices, None and `...`, with one node per part, or None for other keys."""
    edge = _recorded_edge(input)
    if edge is not None:
        if edge is LEAF:
            edge = input
        frame = sys._getframe(2)
        code = frame.f_code
        if code.co_filename is not _FLAGS.file:
            frame = nearest_user_frame(frame)
            code = frame.f_code
    elif input._extra is not None and input._extra.inference:
        return None
    select_node, slice_node, unsqueeze_node = _part_nodes()
    first = before = input._array
    dim = 0
    for position, part in enumerate(key):
        kind = type(part)
        try:
            if kind is int:
                array = before[part, ...] if dim == 0 else before[(*_LEADING[dim], part, ...)]
                if edge is not None:
                    edge = (select_node(edge, before, array, frame, code, dim, part), 0)
            elif kind is _slice:
                start, stop, step = part.start, part.stop, part.step
                if (
                    type(start) not in _BOUNDS
                    or type(stop) not in _BOUNDS
                    or not (step is None or (type(step) is int and step > 0))
                ):
                    return None
                if not start and (stop is None or stop >= before.shape[dim]) and step in (None, 1):
                    dim += 1
                    continue
                array = before[part] if dim == 0 else before[(*_LEADING[dim], part)]
                if edge is not None:
                    step = 1 if step is None else step
                    edge = (slice_node(edge, before, array, frame, code, dim, start, stop, step), 0)
                dim += 1
            elif part is None:
                array = view_kernels.unsqueeze(before, dim)
                if edge is not None:
                    edge = (unsqueeze_node(edge, before, array, frame, code, dim), 0)
                dim += 1
            elif part is Ellipsis:
                dim += before.ndim - dim - sum(later is not None for later in key[position + 1 :])
                if dim < 0 or any(later is Ellipsis for later in key[position + 1 :]):
                    return None
                continue
            else:
                return None
        except (IndexError, TypeError):
            return None
        before = array
    if before is first or dim > before.ndim:
        return None
    return _view(input, before, edge)


def _recorded_edge(input: Tensor) -> Any:
    """Return the edge of a tensor, or None if nothing is recorded."""
    edge = input._edge if input._base is None else current_edge(input)
    return None if edge is not None and _FLAGS.no_grad and not _STATE.grad_enabled else edge


def _view(input: Tensor, array: Any, edge: Any) -> Tensor:
    """Return a tensor on `array`, a part of the memory of `input`."""
    base = input._base
    result = new_tensor()
    result._array = array
    result._edge = edge
    result._grad = result._extra = None
    result._base = input if base is None else base
    result._creation = None if base is None else input._creation
    counter = input._counter
    if counter is None:
        counter = shared_counter(input)
    result._counter = counter
    result._view_version = counter[0]
    if edge is None and _FLAGS.no_grad and not _STATE.grad_enabled:
        result._creation = creation_unrecorded(result._creation)
        if result._base._edge is not None:
            result._edge = NOWHERE
    return result


@functools.cache
def _part_nodes() -> tuple[Any, ...]:
    """Create the nodes of `select`, `slice` and `unsqueeze`."""
    return tuple([OPERATORS[name].code.part_node for name in ("select", "slice", "unsqueeze")])
