"""Steps of optimizers: formulas that run in place on the arrays of whole lists of parameters.

The steps are not recorded, because optimizers run without gradients.
"""

from __future__ import annotations

from itertools import chain

from numpy import ndarray

from ...dispatch.decorators import public
from ...kernels.nn import optimization as kernels
from ...tape import modes, origin
from ...tape.versions import count_changes
from ...tape.views import check_inplace
from ...tensor import PLAIN_TYPES, Tensor


def _arrays(tensors):
    """Return the arrays of tensors, or None if transforms, a subclass or a lazy conjugate need operators."""
    kinds = set(map(type, tensors))
    kinds.discard(Tensor)
    if not kinds <= PLAIN_TYPES:
        return None
    arrays = [tensor._array for tensor in tensors]
    return arrays if set(map(type, arrays)) == {ndarray} else None


def _is_watched():
    """Whether a mode of this thread needs to see each operation."""
    state = modes.STATE
    return modes.FLAGS.special and (
        state.interpreters or state.result_cache is not None or state.before_change is not None
    )


def _count(tensors, name):
    """Count an in-place change of each of `tensors` by one operation."""
    frame = origin.user_frame(2)
    count_changes(tensors, (frame.f_code, frame.f_lasti, name))


@public(namespace="torch")
def _fused_update_(formula, options, lists, rounds_once):
    """Apply the formula of an optimizer in place to lists of parameters, their gradients and their state.

    Return False and change nothing if operators must compute the step. This is the case under transforms, for complex
    parameters, for different shapes or dtypes, and for half precision unless `rounds_once` is true.
    """
    if _is_watched():
        return False
    params, grads = _arrays(lists[0]), _arrays(lists[1])
    if params is None or grads is None:
        return False
    arrays = [params, grads]
    for tensors in lists[2:]:
        buffers = _arrays(tensors)
        if buffers is None:
            return False
        arrays.append(buffers)
    if modes.is_grad_enabled():
        for param in lists[0]:
            check_inplace(param)
    updated = True
    try:
        updated = kernels.update(formula, options, arrays, rounds_once)
    finally:  # an interrupt may come after some updates
        if updated:
            _count([*lists[0], *chain.from_iterable(lists[2:])], "_fused_update_")
    return updated


@public(namespace="torch")
def _count_steps_(tensors):
    """Add 1 to each of the step counts `tensors`, which have one element, and return them as numbers."""
    arrays = None if _is_watched() else _arrays(tensors)
    if arrays is None:
        return [tensor.add_(1).item() for tensor in tensors]
    numbers = []
    for array in arrays:
        array[...] = array.item() + 1
        numbers.append(array.item())  # rounded to the dtype of the count
    _count(tensors, "_count_steps_")
    return numbers
