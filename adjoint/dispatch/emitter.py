"""The reader that prints plans, as straight-line source for the common case of each operator's function.

A function first tests for exact `Tensor`s or plain subclasses on plain arrays, without `out` and unusual modes.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

from .array_classes import DENSE
from .codes import frequent_call_lines
from .declaration import Operator
from .parameter_source import deprecated_order_lines, numpy_names, signature, variant_signature
from .plan import FUNCTION, IN_PLACE, IN_PLACE_VIEW, OUT, Plan
from .planning import planned
from .source import function, guard, public_function, public_name
from .steps.promote import array_lines, number_lines, reads_plainly, unusual_types

WAYS = {"inplace": IN_PLACE, "inplace_view": IN_PLACE_VIEW}
"""The kinds of calls of the variants that do not return a new result."""


def function_source(op: Operator, variant: str = "function") -> tuple[str, dict[str, Any]]:
    """Return the source of the function, or of a variant, and the default values that it uses."""
    defaults: dict[str, Any] = {}
    parameters = signature(op, defaults) if variant == "function" else variant_signature(op, defaults, variant)
    way = WAYS.get(variant, FUNCTION)
    leave = leave_line(op, variant)
    lines = [leave]
    if not op.sparse_result:
        lines = [
            *deprecated_order_lines(op, variant),
            *guard(
                unusual_call(op, variant),
                *number_lines(op),
                *frequent_call_lines(op, variant, way, array_lines(op)),
                leave,
            ),
            *step_lines(planned(op, way, caller=op.caller if way == FUNCTION else 1), leave),
        ]
    return public_function(op.name, parameters, lines), defaults


def has_source(plan: Plan) -> bool:
    """Return whether there is straight-line code for calls of the kinds of a plan."""
    return not plan.op.sparse_result and plan.arrays is DENSE and reads_plainly(plan)


def pattern(plan: Plan) -> tuple[Any, ...]:
    """Return the properties of a plan that determine its source."""
    read = [(kind is NoneType, type(kind), type(plan.readers.get(place))) for place, kind in plan.kinds.items()]
    return plan.way, plan.inference, plan.caller, plan.rounded is None, *read


def plan_source(plan: Plan) -> str:
    """Return source without tests of types and dtypes, for all plans with the same `pattern`, or for plain tensors."""
    op = plan.op
    given = ", ".join(public_name(name) for name in op.names)
    parameters, out = (f"{given}, out", "out") if plan.way == OUT else (given, "None")
    leave = f"return step_by_step(OP, ({given},), {out}, {plan.way!r})" if plan.kinds else "return NotImplemented"
    return function(op.name, f"{parameters}, *, PLAN=None, READ=None", step_lines(plan, leave))


def sizes_source(op: Operator, contiguous: bool) -> str:
    """Return the source of a method with separate integers for the last parameter. `otherwise` handles all other calls."""
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


def leave_line(op: Operator, variant: str = "function") -> str:
    """Return the statement that takes the slow path."""
    args = ", ".join(public_name(name) for name in op.names)
    if variant == "operator":
        tensors = " and ".join(f"isinstance({public_name(name)}, Tensor)" for name in op.names[:2])
        return f"return call(OP, ({args},)) if {tensors} else call_operator(OP, ({args},))"
    if variant != "function":
        return f"return call(OP, ({args},), None, {WAYS[variant]!r})"
    extra = "".join(f", {name}={name}" for name in numpy_names(op))
    return f"return call(OP, ({args},), {'out' if op.out else 'None'}{extra})"


def unusual_call(op: Operator, variant: str) -> list[str]:
    """Return the conditions on modes and on the form of the call that require the slow path."""
    unusual = ["FLAGS.special"]
    if variant == "function":
        unusual += ["out is not None"] if op.out else []
        unusual += [f"{name} is not MISSING" for name in numpy_names(op) if name in ("axis", "keepdims")]
    return unusual
