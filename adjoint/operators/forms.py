"""PyTorch's names of the forms that an operator in place has for numbers and for tensors, which some errors give."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .declaration import Operator

_BY_TENSORS = frozenset("add sub mul div floor_divide".split())
_BY_KIND = frozenset(
    "eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor copysign fmod remainder pow float_power lerp masked_fill fill".split()
)
_NUMBERED = {
    "bitwise_left_shift": "Tensor_Scalar", "bitwise_right_shift": "Tensor_Scalar", "xlogy": "Scalar_Other",
    "bernoulli": "float", "scatter": "value", "index_fill": "int_Scalar", "clamp": "", "clamp_min": "", "clamp_max": "",
}  # fmt: skip
_TENSORED = {"scatter": "src", "index_fill": "int_Tensor"}
"""What PyTorch calls the forms of operators in place: for a number, or for a tensor, as the last operand."""
_NAMED = {
    "squeeze_all": "squeeze_", "squeeze_dim": "squeeze_.dim", "squeeze_dims": "squeeze_.dims", "random_to": "random_.to",
    "random_between": "random_.from", "scatter_reduce": "scatter_reduce_.two",
}  # fmt: skip


def overload(op: Operator, args: tuple[Any, ...]) -> str:
    """PyTorch's name of the form of an operator in place, `add_.Tensor`."""
    if op.name in _NAMED:
        return _NAMED[op.name]
    called = op.called
    if called in _BY_TENSORS:
        form = "Tensor"
    elif called in _BY_KIND or called in _NUMBERED:
        given = [value for value in args[1:] if value is not None and not isinstance(value, (str, bool))]
        operand = given[-1] if given else None
        if isinstance(operand, Tensor) and (operand._extra is None or operand._extra.number is None):
            form = _TENSORED.get(called, "Tensor")
        else:
            form = _NUMBERED.get(called, "Scalar")
    else:
        form = ""
    return f"{called}_.{form}" if form else f"{called}_"
