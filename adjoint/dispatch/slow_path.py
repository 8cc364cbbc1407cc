"""The reader of plans that takes every call: it runs the steps one after the other.

It is the slow path of the straight-line code, which prints the plan of plain calls and leaves all others to it: rare dtypes,
other classes of arrays, NumPy's names for arguments, wrong arguments, modes, interpreters.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from .._runtime.late_bound import LATE
from ..tape import modes, views
from ..tape.anomaly import note_operation
from ..tape.interpreters import check_owned, checked_change, innermost, lower, note_created
from ..tape.torch_dispatch import DISPATCHING, dispatching_types
from ..tensor import Tensor
from .arguments import MISSING, bind, is_number, not_a_tensor
from .declaration import Operator
from .lazy_stubs import overridden, public_function
from .out import in_dtype_of
from .plan import FUNCTION, IN_PLACE, IN_PLACE_VIEW, OUT, Call
from .planning import plan_of
from .signatures import overload
from .sparse_layouts import SPARSE, dense_arguments
from .steps.record import wanted_edges

getframe = sys._getframe


def call(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` to `args`, given in the order of the declaration."""
    try:
        if modes.FLAGS.special:
            state = modes.STATE
            recorder = state.recorder
            if recorder is not None and recorder.asks():
                return recorder.operation(op.aten_name, call, args, op, args, out, **names)
            if state.general or modes.ANOMALY.enabled or state.interpreters:
                return run_slow_path(op, args, out, **names)
        for value in names.values():
            if value is not MISSING:
                return run_slow_path(op, args, out, **names)
        if out is not None:
            return op.code.out_path(*args, out)
        # Another thread, or a transform, has raised the flag, and may have lowered it since: the fast path is correct for
        # this call too. Its result, to the last bit, does not depend on what other threads do.
        return note_created(op.fast_path(*args), op.saved_results)
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            raise
    return again()


def call_slowly(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` to `args` that the straight-line code, where no mode is on, has left."""
    try:
        return run_slow_path(op, args, out, **names)
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            raise
    return again()


def run_slow_path(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` in any mode, to any arguments."""
    args = bind(op, args, names)
    if modes.FLAGS.special and modes.STATE.interpreters:
        if (interpreter := innermost(args if out is None else (*args, out))) is not None:
            return note_created(interpreter.process(op, args, out), op.saved_results)
        if out is None and not op.draws:
            with lower(modes.STATE.interpreters[0]):  # outside all interpreters, the fast path is possible again
                results = applied(op, args)
            return note_created(results, op.saved_results)
    if op.out_decides and isinstance(out, Tensor):
        args = in_dtype_of(op, args, out)
    plan = plan_of(op, args, FUNCTION if out is None else OUT)
    if DISPATCHING and dispatching_types(args):
        return LATE.dispatched(op, args, out)
    call = Call(args, out)
    try:
        plan.run(call)
    except (NotImplementedError, RuntimeError, IndexError):
        if plan.arrays is not SPARSE or not modes.STATE.dense_if_refused:
            raise
        return applied(op, dense_arguments(args))
    if out is not None:
        return call.returned
    if modes.ANOMALY.enabled:
        note_operation(op.function_name, call.operands(op), call.outputs, call.recording)
    return as_returned(op, call.outputs, call.several)


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


# --- in place -----------------------------------------------------------------------------------------------------------


def call_inplace(op: Operator, args: tuple[Any, ...]) -> Tensor:
    """Apply `op`, and write the result to its first argument."""
    recorder = modes.STATE.recorder
    if recorder is not None and recorder.asks():
        return recorder.operation(f"{op.aten_name}_", call_inplace, args, op, args)
    target: Tensor = args[0]
    try:
        args = bind(op, args)
        if not isinstance(target, Tensor):
            raise not_a_tensor(op, 0, args)
        taken = taken_by_interpreter(op, args, "process_inplace")
        if taken is not None:
            return taken
        plan, call = plan_of(op, args, IN_PLACE), Call(args)
        plan.prepare(call)
    except Exception:
        again = overridden(getframe(1))
        if again is not None:
            return again()
        if is_unknown_operand(args) and is_augmented(getframe(1)):
            return NotImplemented
        raise
    call.edges = wanted_edges(op, args)
    if modes.is_recording() and target._base is not None:
        leads = any(edge is not None for edge in call.edges) or target._base.requires_grad
        views.check_view_creation(target, leads)
    views.check_inference(target)
    if DISPATCHING and dispatching_types(args):
        return LATE.dispatched_inplace(op, args)
    plan.act(call)
    return target


def call_inplace_view(op: Operator, args: tuple[Any, ...]) -> Tensor:
    """Make the first argument another view of its memory, as `t_` does."""
    target: Tensor = args[0]
    args = bind(op, args)
    taken = taken_by_interpreter(op, args, "process_inplace_view")
    if taken is not None:
        return taken
    views.check_inference(target)
    if DISPATCHING and dispatching_types(args):
        return LATE.dispatched_inplace(op, args)
    plan_of(op, args, IN_PLACE_VIEW).run(Call(args))
    return target


def taken_by_interpreter(op: Operator, args: tuple[Any, ...], process: str) -> Any:
    """The first argument, if an interpreter has changed it; else None, after the checks of transforms and views."""
    target = args[0]
    if modes.STATE.transforms:
        check_owned(target, lambda: overload(op, args), lambda: views.check_inplace(target))
    if modes.STATE.interpreters and (interpreter := innermost(args)) is not None:
        with checked_change():
            return getattr(interpreter, process)(op, args)
    views.check_inplace(target)
    return None


def is_unknown_operand(args: tuple[Any, ...]) -> bool:
    """Whether the second argument is neither a tensor nor a number."""
    return len(args) > 1 and not isinstance(args[1], Tensor) and not is_number(args[1])


def is_augmented(frame: FrameType) -> bool:
    """Whether `frame` runs an augmented assignment, such as `+=`, not a method."""
    found = public_function([frame.f_code])
    return found is not None and found[1].__name__.startswith("__")
