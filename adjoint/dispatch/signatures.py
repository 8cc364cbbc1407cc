"""The text of errors about wrong arguments: the forms of overloaded functions, and the names of types."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .._runtime.type_names import type_name as name_of_type
from ..device import Size, device
from ..dtypes import dtype
from ..kernels.memory.storages import UntypedStorage
from ..tensor import Tensor
from .declaration import VALUE, Operator

TYPE_WORDS = {
    "Int": "int", "Ints": "tuple of ints", "Dims": "tuple of ints", "Bool": "bool", "Number": "Number", "Dtype": "torch.dtype",
    "Str": "str", "Float": "float", "Tensor": "Tensor", "Sequence": "tuple of Tensors",
}  # fmt: skip
"""The declared types of parameters (such as `dim: Int`), and PyTorch's names for them."""

OUT = "*, Tensor out = None"
"""The end of the forms of functions with `out=`."""

NEW = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, "
    "bool requires_grad = False"
)
"""The end of the forms of functions that make new tensors."""

FORMS: dict[str, tuple[str, ...] | Callable[[], tuple[str, ...]]] = {}
"""The forms of a function's call that PyTorch lists: the forms of its operators, or the forms in a declaration."""


def forms_of(name: str, is_method: bool) -> tuple[str, ...]:
    """Return the forms of function `name`, or of this method: without the tensor before the dot, and without `out=`."""
    found = FORMS.get(name) or FORMS.get(name.rstrip("_"), ())
    forms = found() if callable(found) else found
    if not is_method or not any(form.startswith(_RECEIVER) for form in forms):
        return forms
    without_out = [re.sub(r"(, \*)?, [a-zA-Z ]+ out = None$", "", form) for form in forms if form.startswith(_RECEIVER)]
    return tuple(form.removeprefix(_RECEIVER).removeprefix(", ") for form in without_out)


_RECEIVER = "Tensor input"


def form(
    op: Operator,
    *,
    left_out: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    words: dict[str, str] | None = None,
    out: bool | None = None,
) -> str:
    """Return a form of an operator's call in PyTorch's notation: its parameters with their types and defaults.

    `left_out`: parameters that this form does not have. `required`: parameters without a default in this form. `words`: the
    types that the declaration does not give, by parameter. `out`: whether to list `out=`; by default, if `op` accepts it.
    """
    parts = []
    for name in op.names:
        if name in left_out:
            continue
        if name in op.keyword_only and "*" not in parts:
            parts.append("*")
        word = "Tensor" if op.kinds[name] != VALUE else TYPE_WORDS.get(op.types.get(name, "Number"))
        default = f" = {op.defaults[name]}" if name in op.defaults and name not in required else ""
        word = (words or {}).get(name, word)
        parts.append(f"{word} {'input' if name == 'self' and word == 'Tensor' else name}{default}")
    if op.out if out is None else out:
        parts += [] if "*" in parts else ["*"]
        parts.append("tuple of Tensors out = None" if op.outputs else "Tensor out = None")
    return ", ".join(parts)


def alone(op: Operator) -> tuple[str, ...]:
    """Return the forms of a function that has a single form, which is the form of its operator."""
    return (form(op),)


def with_number(op: Operator) -> tuple[str, ...]:
    """Return the forms of a function of two tensors, or of a tensor and a number in place of the operator's last tensor."""
    return form(op), form(op, words={op.tensors[-1]: "Number"})


def number_either_way(op: Operator, *, out: bool = False) -> tuple[str, ...]:
    """Return the forms of a function of two operands, either of which may be a number."""
    of_tensors, by_number = with_number(op)
    return of_tensors, form(op, words={op.tensors[0]: "Number"}, out=out), by_number


def type_name(value: Any) -> str:
    """Return the name of the type of an argument."""
    kind = type(value)
    if isinstance(value, Tensor):
        return "Parameter" if kind.__name__ == "Parameter" else "Tensor"
    if kind in (dtype, Size, device):
        return f"torch.{kind.__name__}"
    if isinstance(value, UntypedStorage):
        return f"torch.storage.{kind.__name__}"
    return name_of_type(kind)


def overload(op: Operator, args: tuple[Any, ...]) -> str:
    """Return PyTorch's name of the form of an in-place operator, such as `add_.Tensor`."""
    form = op.aten_inplace
    if op.aten_number != form:
        given = [value for value in args[1:] if value is not None and not isinstance(value, (str, bool))]
        operand = given[-1] if given else None
        if not isinstance(operand, Tensor) or (operand._extra is not None and operand._extra.number is not None):
            form = op.aten_number
    return f"{op.aten_name}_.{form}" if form else f"{op.aten_name}_"
