"""The straight-line code of plans, and its lookup in `Operator.frequent` without the slow path."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any

from .. import dtypes
from .declaration import OPTIONAL_ARRAY, Operator
from .kinds import kind_of
from .parameter_source import numpy_names
from .plan import Plan
from .source import block, public_name

NAMES = {"kind_of": kind_of, "get_default_dtype": dtypes.get_default_dtype}
"""The names that the lines below use."""


def kept(plan: Plan, code: Callable[..., Any]) -> Callable[..., Any]:
    """Store the code of a plan, unless numbers or sequences are among the operands. Return the code."""
    op, key = plan.op, [plan.way, plan.inference]
    for kind in plan.kinds.values():
        if kind is NoneType:
            key += [True, True]
        elif type(kind) is not tuple:
            return code
        else:
            key += kind[1:]
    op.frequent[(*key, *([dtypes.get_default_dtype()] if op.promote == "float" else []))] = code
    return code


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


INFERENCE_LINES = (
    "inference = False",
    "if FLAGS.special:",
    "    here = STATE.__dict__",
    "    inference = here['inference'] if here['plain'] and not FLAGS.levels and not ANOMALY.enabled else None",
)
"""The lines that find whether this thread is in inference mode, or None if another mode forbids straight-line code."""


def frequent_call_lines(op: Operator, variant: str, way: str, arrays: list[str]) -> list[str]:
    """Run the code for plain tensors with `out`, in inference mode, and while other threads have modes."""
    lines: list[str] = []
    takes_out = variant == "function" and op.out
    if op.sequence is None and not op.lists:  # the key does not describe the tensors in sequences
        plain = ["out is None"] if takes_out else []
        for name in op.tensors:
            public = public_name(name)
            none = f"{public} is None or " if op.kinds[name] == OPTIONAL_ARRAY else ""
            plain.append(f"({none}type({public}) is Tensor and type({public}._array) is ndarray)")
        lines = block(f"if {' and '.join(plain)}:", [*arrays, *frequent_lines(op, repr(way), "inference")])
    if takes_out:
        written = f"result = OP.code.into({', '.join(map(public_name, op.names))}, out)"
        returned = block("if result is not NotImplemented:", ["return result"])
        lines = [*block("if out is not None:", [written, *returned]), *lines]
    usual = ["inference is not None"]
    usual += [f"{name} is MISSING" for name in numpy_names(op)] if variant == "function" else []
    return [*INFERENCE_LINES, *block(f"if {' and '.join(usual)}:", lines)] if lines else []
