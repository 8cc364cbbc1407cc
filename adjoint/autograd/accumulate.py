"""Adding a gradient to `.grad` of a leaf. The array becomes `.grad` if it has no other reference. Otherwise it is copied."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy

from .._runtime.forks import lock_across_forks
from ..codegen.backend import NUMPY
from ..codegen.compiled_ufuncs import large
from ..device import strided
from ..kernels.memory.storage import is_dense
from ..kernels.runtime.costs import LARGE, THREADED
from ..kernels.runtime.meta_array import Meta
from ..kernels.runtime.sparse_array import SparseArray
from ..tape.inference_tensors import mark_inference
from ..tape.modes import FLAGS, STATE
from ..tape.versions import counting
from ..tape.views import check_inference
from ..tensor import Tensor, as_array, ndarray, new_tensor
from .references import laid_out_like, owns_memory
from .shown import made

_LOCKS = tuple(lock_across_forks() for _ in range(64))


def _as_in_accumulate(grad: Any) -> int:
    return getrefcount(grad)


_UNSHARED = _as_in_accumulate(numpy.empty(1))
"""The value of `sys.getrefcount` for an array that only the caller's argument refers to, in this interpreter."""


def summed(first: Any, second: Any) -> Any:
    """Return the sum of two gradients."""
    if type(first) is ndarray:
        if first.size >= LARGE and type(second) is ndarray:
            add = large(numpy.add)
            if add is not None:
                return add(first, second)
    elif isinstance(first, Tensor) and type(first._array) is SparseArray and second.layout is strided:
        return second + first
    return first + second


def accumulate(leaf: Tensor, grad: Any, create_graph: bool) -> None:
    """Add `grad` (an array, or a tensor under `create_graph`) to `leaf.grad`, unless the leaf no longer requires grad."""
    if leaf._edge is None:
        return
    if FLAGS.special and STATE.capture is not None:
        STATE.capture.accumulate(leaf, grad)
        return
    if leaf._grad is None and not create_graph:
        if type(grad) is not ndarray:
            grad = as_array(grad)
        array = leaf._array
        shared = getrefcount(grad) > _UNSHARED or (grad.base is not None and not owns_memory(grad))
        if shared and leaf._extra is None and array.flags.c_contiguous and grad.size < THREADED:
            grad = grad.copy()
        elif grad.strides != array.strides:
            if shared or STATE.grad_layout:
                grad = laid_out_like(grad, array)
        elif shared:
            grad = grad.copy("K")
        result = new_tensor()
        result._array = grad
        result._edge = result._grad = result._base = result._counter = result._extra = None
        if FLAGS.special and STATE.inference:
            mark_inference(result)
        if leaf._grad is None:  # no other thread runs between this question and the assignment (see `uninterrupted`)
            leaf._grad = result
            return
    with _LOCKS[id(leaf) // 16 % 64]:
        held = leaf._grad
        if held is None:  # with `create_graph`, or because another thread has removed it since
            first = own(grad, leaf) if create_graph else made(laid_out_like(grad, leaf._array))
            held = leaf._grad
            if held is None:  # as above; another thread may have stored a first gradient without a lock
                leaf._grad = first
                return
        if create_graph:
            if not STATE.grad_enabled and held.layout is grad.layout and not STATE.interpreters:
                held.add_(grad)
            else:
                leaf._grad = summed(held, grad)
        else:  # in place, even if `held` has a history: the engine is not recording
            if held._extra is not None:
                check_inference(held)
            array = held._array
            if array.flags.writeable and (held._base is None or 0 not in array.strides):
                try:
                    NUMPY.add(array, grad, array)
                except (ValueError, TypeError):  # the leaf has got another shape or dtype
                    if grad.shape == array.shape:
                        raise
                    shapes = f"{list(array.shape)} doesn't match the broadcast shape {list(grad.shape)}"
                    raise RuntimeError(f"output with shape {shapes}") from None
                counter: Any = held._counter
                if type(counter) is not list:
                    counter = counting(held)
                if counter is not None:
                    counter[0] += 1
            elif type(array) is SparseArray and type(grad) is not SparseArray:
                leaf._grad = made(array + grad)  # dense: other holders of the former gradient keep it sparse
            else:
                held._array = array + grad


def own(grad: Tensor, leaf: Tensor) -> Tensor:
    """Return `grad` as a separate tensor with the layout of `leaf`, connected to the history of `grad`."""
    special = type(leaf._array) is Meta or type(grad._array) is SparseArray
    if type(grad) is not Tensor or special or STATE.interpreters:
        return grad.clone()
    array = leaf._array if STATE.grad_layout and is_dense(leaf._array) else grad._array
    return made(numpy.empty_like(array, dtype=grad._array.dtype, subok=False)).copy_(grad)
