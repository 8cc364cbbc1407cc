"""Functions of arrays that operators call outside of plans, for example to draw a mask or to update running statistics."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from numpy import asarray, generic, ndarray

from ..codegen.kernel import as_kernel
from ..tape.interpreters import mapped
from ..tape.modes import FLAGS, STATE, is_recording
from ..tensor import wrap


def computed(function: Callable[..., Any], *args: Any, keeps: bool = False) -> Any:
    """Return `function(*args)`, with arrays in place of tensors among the arguments, and tensors in place of returned arrays.

    If the operators of this thread are captured, the call is appended to the program. `keeps`: whether the call runs even if its
    results are unused, because it draws random numbers or changes its first arguments.
    """
    if FLAGS.special and STATE.capture is not None:
        return STATE.capture.function(function, args, keeps)
    return as_tensors(function(*arrays_of(args)))


def in_one_kernel(function: Callable[..., Any], on_arrays: Any) -> Callable[..., Any]:
    """Return `function`, for formulas on tensors. A capture calls its counterpart `on_arrays` as one instruction."""
    kernel = as_kernel(on_arrays).general

    def chosen(*args: Any, **names: Any) -> Any:
        capture = STATE.capture
        captured = capture is not None and not (names or is_recording() or STATE.interpreters)
        return capture.function(kernel, args) if captured else function(*args, **names)

    return chosen


def arrays_of(values: Any) -> list[Any]:
    """Return values with arrays in place of tensors, also within sequences."""
    return mapped(attrgetter("_array"), values)


def as_tensors(result: Any) -> Any:
    """Return the results of a function, with tensors in place of arrays."""
    if isinstance(result, (ndarray, generic)):
        return wrap(asarray(result))
    if type(result) in (tuple, list):
        return tuple([wrap(asarray(each)) if isinstance(each, (ndarray, generic)) else each for each in result])
    return result
