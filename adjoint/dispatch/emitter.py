"""The reader of plans that prints them: straight-line source for the common case of each operator's function.

A function first tests whether its arguments are the common case (exact `Tensor`s or plain subclasses on plain arrays,
no `out`, no unusual mode). If a condition fails, it takes the slow path. The rest is the steps of the plan for such
calls, without further tests.
"""

from __future__ import annotations

from typing import Any

from .declaration import Operator
from .parameter_source import deprecated_order_lines, numpy_names, signature, straight_signature, variant_signature
from .plan import FUNCTION, IN_PLACE, IN_PLACE_VIEW, OUT, Plan
from .planning import planned
from .source import function, guard, public_function, public_name
from .steps.promote import number_lines, unusual_types

WAYS = {"inplace": IN_PLACE, "inplace_view": IN_PLACE_VIEW}
"""The ways of the variants that do not return a new result."""


def function_source(op: Operator, variant: str = "function") -> tuple[str, dict[str, Any]]:
    """The source of the function, or of a variant, and the defaults it refers to.

    Variants are `"operator"` (of a Python operator), `"inplace"` and `"inplace_view"`.
    """
    defaults: dict[str, Any] = {}
    parameters = signature(op, defaults) if variant == "function" else variant_signature(op, defaults, variant)
    way = WAYS.get(variant, FUNCTION)
    moded = leave_line(op, variant, moded=True)
    lines = [moded]
    if not op.sparse_result:
        lines = [
            *deprecated_order_lines(op, variant),
            *guard(unusual_call(op, variant), *number_lines(op), moded),
            *step_lines(planned(op, way, caller=op.caller if way == FUNCTION else 1), leave_line(op, variant)),
        ]
    return public_function(op.name, parameters, lines), defaults


def straight_source(op: Operator, way: str, inference: bool) -> tuple[str, dict[str, Any]]:
    """The source for calls that no handler takes, and the defaults it refers to; `inference`: in inference mode."""
    defaults: dict[str, Any] = {}
    given = ", ".join(public_name(name) for name in op.names)
    leave = f"return run_steps(OP, ({given},), {'out' if way == OUT else 'None'}, {way!r})"
    lines = [leave]
    if not (op.sparse_result or (inference and way == IN_PLACE_VIEW)):
        caller = (op.caller if way in (FUNCTION, OUT) else 1) + 2
        lines = step_lines(planned(op, way, inference=inference, caller=caller), leave)
    return function(op.name, straight_signature(op, defaults, way == OUT), lines), defaults


def sizes_source(op: Operator, contiguous: bool) -> str:
    """Return the source of a method with separate integers for the last parameter. `otherwise` handles other calls.

    `contiguous`: also calls on tensors that are not contiguous.
    """
    sizes = op.names[-1]
    leave = f"return otherwise(input, *{sizes}, **names)"
    unusual = [*unusual_types(op), *(["not input._array.flags.c_contiguous"] if contiguous else [])]
    lines = [
        *guard([f"not {sizes}", f"type({sizes}[0]) is not int", "names", "FLAGS.special", *unusual], leave),
        *step_lines(planned(op, FUNCTION), leave),
    ]
    return public_function(op.name, f"input, /, *{sizes}, **names", lines)


def step_lines(plan: Plan, leave: str) -> list[str]:
    """Return the steps of a plan and the result of the call as source. `leave` is the statement for all other calls."""
    op = plan.op
    lines = [line for step in plan.steps for line in step.lines(leave)]
    if plan.way != FUNCTION:
        return lines
    results = f"({', '.join(op.outputs)},)"
    if op.many:
        return [*lines, "return tuple(results)"]
    if not op.outputs:
        return [*lines, "return result"]
    return [*lines, f"return {results if op.returns is tuple else f'new_tuple(RETURNS, {results})'}"]


def leave_line(op: Operator, variant: str = "function", *, moded: bool = False) -> str:
    """Return the statement that takes the slow path. `moded`: some thread is in a mode.

    The function of a Python operator (`*`) returns NotImplemented for operands of unknown types.
    """
    args = ", ".join(public_name(name) for name in op.names)
    if variant == "operator":
        return f"return call_operator(OP, ({args},), {not moded})"
    if variant != "function":
        return f"return call(OP, ({args},), None, {WAYS[variant]!r}, {not moded})"
    extra = "".join(f", {name}={name}" for name in numpy_names(op))
    return f"return call(OP, ({args},), {'out' if op.out else 'None'}, '', {not moded}{extra})"


def unusual_call(op: Operator, variant: str) -> list[str]:
    """The conditions on modes and on the form of the call that require the slow path."""
    unusual = ["FLAGS.special"]
    if variant == "function":
        unusual += ["out is not None"] if op.out else []
        unusual += [f"{name} is not MISSING" for name in numpy_names(op) if name in ("axis", "keepdims")]
    return unusual
