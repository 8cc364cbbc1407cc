"""Calls that straight-line code rejects pass through handlers, and then run the code or steps of their plan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from .._runtime.late_bound import LATE
from ..tape import modes, views
from ..tape.interpreters import Handler, check_owned, note_created
from ..tape.torch_dispatch import DISPATCHING, dispatching_types
from ..tensor import Tensor
from .arguments import MISSING, bind, is_number, not_a_tensor
from .declaration import Operator
from .lazy_stubs import overridden, public_function
from .plan import FUNCTION, IN_PLACE, OUT, Call, Plan
from .planning import plan_of
from .signatures import overload
from .sparse_layouts import SPARSE, dense_arguments

getframe = sys._getframe


def call(op: Operator, args: tuple[Any, ...], out: Any = None, way: str = FUNCTION, **names: Any) -> Any:
    """Call `op` with `args`, in the order of the declaration."""
    handlers = handlers_of_thread() if modes.FLAGS.special else None
    try:
        if way != FUNCTION and not isinstance(args[0], Tensor):
            raise not_a_tensor(op, 0, args)
        if out is not None:
            way = OUT
        for value in names.values():
            if value is not MISSING:
                args = bind(op, args, names)
        if handlers or (handlers is not None and modes.FLAGS.noting):
            given = any(args[position] is not op.defaults.get(name, MISSING) for position, name in op.typed)
            if given or any(value is MISSING for value in args):
                args = bind(op, args)
            return handled(Call(op, way, args, out), handlers)
        plan = plan_of(op, args, way)
        code = plan.code
        if code is None or (DISPATCHING and dispatching_types((*args, out))):
            return run(Call(op, way, bind(op, args), out), plan)
        return code(*args) if out is None else code(*args, out)
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            if way == IN_PLACE and has_foreign_operand(args, getframe(1)):
                return NotImplemented
            raise
    return again()


def handlers_of_thread() -> tuple[Handler, ...]:
    """Return the handlers of operators in this thread. The first handler runs last (see `interpreters.Handler`)."""
    here = modes.STATE.__dict__
    handlers: Any = modes.FLAGS.levels if here["stack"] is None else here["stack"]
    if modes.ANOMALY.enabled:
        handlers = (modes.ANOMALY.handler, *handlers)
    if here["result_cache"] is not None:
        handlers = (here["result_cache"], *handlers)
    if here["view_replay"] or here["before_change"] is not None:
        handlers = (modes.FLAGS.stepwise, *handlers)
    if here["capture"] is not None:
        handlers = (here["capture"], *handlers)
    return handlers if here["recorder"] is None else (*handlers, here["recorder"])


def handled(call: Call, handlers: tuple[Handler, ...]) -> Any:
    """Return the result of a call that passes through `handlers`. Transforms check changes and note created tensors."""
    if not modes.FLAGS.noting:
        return proceed(call, handlers)
    if call.in_place:
        target = call.given[0]
        check_owned(target, partial(overload, call.op, call.given), partial(views.check_inplace, target))
        return proceed(call, handlers)
    saved = call.op.saved_results
    if modes.FLAGS.hooked and saved:
        call.stepwise = True  # a hook needs the counter of a result, which straight-line code creates too early
    results = proceed(call, handlers)
    return results if call.out is not None or hasattr(results, "level") else note_created(results, saved)


def proceed(call: Call, handlers: tuple[Handler, ...]) -> Any:
    """Return the result of a call from the last handler or, without a handler, from the operator."""
    if handlers:
        return handlers[-1].handle(call, partial(proceed, call, handlers[:-1]))
    args, out = call.given, call.out
    plan = plan_of(call.op, args, call.way)
    code = plan.code
    if code is None or call.stepwise or (DISPATCHING and dispatching_types((*args, out))):
        return run(call, plan)
    return code(*args) if out is None else code(*args, out)


def run(call: Call, plan: Plan, act: Callable[[Plan, Call], None] | None = None) -> Any:
    """Run the steps of the plan of a call, or `act` after the reading steps. Plans that are used often get code."""
    if DISPATCHING and dispatching_types((*call.given, call.out)):
        return LATE.taken_over(call)
    plan.runs += 1
    if plan.runs == OFTEN or (plan.runs == 1 and (plan.way == OUT or plan.op.code.knows(plan))):
        plan.code = plan.op.code.of_plan(plan)
    call.args = list(call.given)
    try:
        for step in plan.reading:
            step(call)
        if act is not None:
            act(plan, call)
        else:
            for step in plan.acting:
                step(call)
    except (NotImplementedError, RuntimeError, IndexError):
        if plan.arrays is not SPARSE or plan.way != FUNCTION or not modes.STATE.dense_if_refused:
            raise
        return plan.op.apply(*dense_arguments(call.given))
    return call.result()


OFTEN = 20
"""The number of calls of a plan before its straight-line code is printed. For calls with `out`, one call is enough,
because the code saves memory."""


def step_by_step(op: Operator, args: tuple[Any, ...], out: Any, way: str) -> Any:
    """Run the steps of the plan of a call that straight-line code rejects."""
    return run(Call(op, way, bind(op, args), out), plan_of(op, args, way))


def has_foreign_operand(args: tuple[Any, ...], frame: FrameType) -> bool:
    """Return whether `frame` runs an augmented assignment such as `+=` whose second operand is neither a tensor nor a number."""
    if len(args) < 2 or isinstance(args[1], Tensor) or is_number(args[1]):
        return False
    found = public_function([frame.f_code])
    return found is not None and found[1].__name__.startswith("__")
