"""Calls that straight-line code leaves: they pass the handlers of the thread, and then take the steps of their plans.

These are calls with rare dtypes, other classes of arrays, NumPy's names for arguments, wrong arguments, and all calls while a
thread has handlers: a profiler, transforms, modes that take operators over.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

from .._runtime.late_bound import LATE
from ..tape import modes, views
from ..tape.interpreters import Handler
from ..tape.torch_dispatch import DISPATCHING, dispatching_types
from ..tensor import Tensor
from .arguments import MISSING, bind, is_number, not_a_tensor
from .declaration import Operator
from .lazy_stubs import overridden, public_function
from .out import in_dtype_of
from .plan import FUNCTION, IN_PLACE, OUT, Call
from .planning import plan_of
from .sparse_layouts import SPARSE, dense_arguments
from .steps.record import wanted_edges

getframe = sys._getframe


def call(
    op: Operator, args: tuple[Any, ...], out: Any = None, way: str = FUNCTION, stepwise: bool = True, **names: Any
) -> Any:
    """Call `op` with `args`, in the order of the declaration.

    `stepwise`: straight-line code has left the call. Otherwise it has not been asked, since a thread is in a mode, or there is an
    `out`. This thread may be in none: the result, to the last bit, does not depend on what other threads do.
    """
    handlers = modes.STATE.handlers if modes.FLAGS.special else ()
    try:
        if way != FUNCTION and not isinstance(args[0], Tensor):
            raise not_a_tensor(op, 0, args)
        way = way if out is None else OUT
        for value in names.values():
            if value is not MISSING:
                args, stepwise = bind(op, args, names), True
                break
        if not (handlers or stepwise or modes.STATE.general):
            return straight_line(op, way, args, out)
        return proceed(Call(op, way, args, out, stepwise), handlers)
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            if way == IN_PLACE and is_left_to_others(args, getframe(1)):
                return NotImplemented
            raise
    return again()


def proceed(call: Call, handlers: Sequence[Handler]) -> Any:
    """What a call returns: the last of the handlers that takes it says so, or if there is none, the operator."""
    for position in range(len(handlers) - 1, -1, -1):
        handler = handlers[position]
        if handler.takes is None or handler.takes(call):
            return handler.handle(call, partial(proceed, call, handlers[:position]))
    if call.stepwise or modes.STATE.general:
        return run(call)
    return straight_line(call.op, call.way, call.given, call.out)


def straight_line(op: Operator, way: str, args: tuple[Any, ...], out: Any) -> Any:
    """Run the code that is printed of the plan for plain tensors."""
    code = op.code.straight_line(way, modes.STATE.inference)
    return code(*args) if out is None else code(*args, out)


def run(call: Call) -> Any:
    """Take the steps of the plan of a call."""
    call.bind()
    op, way, out = call.op, call.way, call.out
    if call.in_place:
        call.check_inplace()
    elif op.out_decides and isinstance(out, Tensor):
        call.given = in_dtype_of(op, call.given, out)
        call.args = list(call.given)
    plan = plan_of(op, call.given, way)
    if call.in_place:
        call.edges = wanted_edges(op, call.given)
        views.check_target(call.given[0], way == IN_PLACE and any(edge is not None for edge in call.edges))
    if DISPATCHING and dispatching_types(call.given):
        return LATE.taken_over(call)
    try:
        plan.prepare(call)
        if modes.STATE.capture is None:
            plan.act(call)
        else:
            modes.STATE.capture.act(plan, call)
    except (NotImplementedError, RuntimeError, IndexError):
        if plan.arrays is not SPARSE or way != FUNCTION or not modes.STATE.dense_if_refused:
            raise
        return applied(op, dense_arguments(call.given))
    return as_returned(op, call.outputs, call.several) if way == FUNCTION else call.returned


def run_steps(op: Operator, args: tuple[Any, ...], out: Any, way: str) -> Any:
    """Take the steps of the plan of a call that straight-line code leaves although no handler takes it."""
    return run(Call(op, way, args, out))


def as_returned(op: Operator, outputs: list[Any], several: bool) -> Any:
    """The outputs as a call returns them."""
    if not several:
        return outputs[0]
    return op.returns(*outputs) if op.outputs and op.returns is not tuple else tuple(outputs)


def applied(op: Operator, args: tuple[Any, ...], function: Any = None) -> Any:
    """Call `op` (or a `function` with its parameters) as users do, with `args` in the order of the declaration."""
    function = function or op.function
    if not op.keyword_only:
        return function(*args)
    positional = [value for name, value in zip(op.names, args, strict=True) if name not in op.keyword_only]
    keywords = {name: value for name, value in zip(op.names, args, strict=True) if name in op.keyword_only}
    return function(*positional, **keywords)


def is_left_to_others(args: tuple[Any, ...], frame: FrameType) -> bool:
    """Whether `frame` runs an augmented assignment, such as `+=`, with a second operand that is neither tensor nor number."""
    if len(args) < 2 or isinstance(args[1], Tensor) or is_number(args[1]):
        return False
    found = public_function([frame.f_code])
    return found is not None and found[1].__name__.startswith("__")
