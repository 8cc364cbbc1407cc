"""The straight-line code of plans, found by what a call reads from its arrays anyway, without the way through the slow path.

`Operator.frequent` holds the code by the way of the call, inference mode, and the dtypes and ranks of the operands.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

from .. import dtypes
from .declaration import OPTIONAL_ARRAY, Operator
from .parameter_source import numpy_names
from .plan import FUNCTION, OUT, Plan
from .source import block, public_name


def key_of(plan: Plan) -> tuple[Any, ...] | None:
    """The key of the code of a plan in `Operator.frequent`; None for plans whose code is found by the slow path alone."""
    key = [plan.way, plan.inference]
    for kind in plan.kinds.values():
        if kind is NoneType:
            key += [True, True]
        elif type(kind) is not tuple:
            return None
        else:
            key += kind[1:]
    return (*key, *([dtypes.get_default_dtype()] if plan.op.promote == "float" else []))


def frequent_lines(op: Operator, way: str, inference: str = "False", result: str = "code({})") -> list[str]:
    """Run the code for arrays of these dtypes, if there is any."""
    parts = []
    for name in op.tensors:
        array, public = f"{name}_array", public_name(name)
        none = f"{public} is None or " if op.kinds[name] == OPTIONAL_ARRAY else ""
        parts += [
            f"{none}{array}.dtype",
            f"{none}({array}.ndim > 0 if {public}._extra is None else kind_of({public})[2])",
        ]
    parts += ["get_default_dtype()"] if op.promote == "float" else []
    given = ", ".join(map(public_name, op.names))
    return [
        f"code = FREQUENT.get(({', '.join([way, inference, *parts])}))",
        *block("if code is not None:", [f"return {result.format(given)}"]),
    ]


def frequent_call_lines(op: Operator, variant: str, way: str) -> list[str]:
    """Run the code for plain tensors on plain arrays with `out`, in inference mode, and while other threads are in modes."""
    if op.sequence is not None:
        return []
    plain, arrays = ["inference is not None"], []
    for name in op.tensors:
        public = public_name(name)
        none = f"{public} is None or " if op.kinds[name] == OPTIONAL_ARRAY else ""
        plain.append(f"({none}type({public}) is Tensor and type({public}._array) is ndarray)")
        arrays.append(f"{name}_array = {'None if ' + public + ' is None else ' if none else ''}{public}._array")
    way, result = repr(way), "code({})"
    if variant == "function":
        plain += [f"{name} is MISSING" for name in numpy_names(op)]
        if op.out:
            way, result = f"{FUNCTION!r} if out is None else {OUT!r}", "code({0}) if out is None else code({0}, out)"
    return [
        "inference = infers_plainly() if FLAGS.special else False",
        *block(f"if {' and '.join(plain)}:", [*arrays, *frequent_lines(op, way, "inference", result)]),
    ]
