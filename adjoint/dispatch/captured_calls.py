"""The first calls of operators in a capture by `torch.compile`, which needs no generated code."""

from __future__ import annotations

from typing import Any

from ..tape.modes import STATE
from .arguments import MISSING
from .declaration import Operator
from .python_operators import call_operator
from .slow_path import call
from .source import public_name


def captured_call(op: Operator, variant: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call a variant of an operator without its generated code.

    Return NotImplemented if there is no capture, or if the call fails or needs the code, which raises its error.
    """
    if STATE.capture is None or variant not in ("function", "operator"):
        return NotImplemented
    names = [*map(public_name, op.names)]
    if len(args) > len(names) - len(op.keyword_only) or not {*names[len(args) :]}.issuperset(keywords):
        return NotImplemented
    given = {**{public_name(name): value for name, value in op.defaults.items()}, **keywords}
    values = (*args, *[given.get(name, MISSING) for name in names[len(args) :]])
    if any(value is MISSING for value in values):
        return NotImplemented
    try:
        return call_operator(op, values) if variant == "operator" else call(op, values)
    except Exception:  # noqa: BLE001
        return NotImplemented
