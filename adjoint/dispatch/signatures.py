"""What errors about wrong arguments say: the forms that an overloaded function has, and the names of types.

Read only when such an error is raised, or the name of the form called is to be told.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..device import Size, device
from ..dtypes import dtype
from ..kernels.memory.storage import UntypedStorage
from ..tensor import Tensor
from .declaration import Operator

OUT = "*, Tensor out = None"
"""The end of the forms of functions that take `out=`."""

FORMS: dict[str, tuple[str, ...]] = {}
"""The forms in which a function may be called, as PyTorch lists them: what declarations say as `forms`."""


def expected(name: str) -> str:
    """What the error for wrong arguments of function `name` says of the right ones."""
    forms = FORMS.get(name, ())
    if len(forms) < 2:
        return "".join(f", but expected ({form})" for form in forms)
    return ", but expected one of:\n" + "".join(f" * ({form})\n" for form in forms)


def type_name(value: Any) -> str:
    """The name of the type of an argument."""
    kind = type(value)
    if isinstance(value, Tensor):
        return "Parameter" if kind.__name__ == "Parameter" else "Tensor"
    if kind in (dtype, Size, device):
        return f"torch.{kind.__name__}"
    if isinstance(value, UntypedStorage):
        return f"torch.storage.{kind.__name__}"
    return f"numpy.{kind.__name__}" if kind.__module__ == numpy.__name__ else kind.__name__


def overload(op: Operator, args: tuple[Any, ...]) -> str:
    """PyTorch's name of the form of an operator in place, `add_.Tensor`."""
    form = op.aten_inplace
    if op.aten_number != form:
        given = [value for value in args[1:] if value is not None and not isinstance(value, (str, bool))]
        operand = given[-1] if given else None
        if not isinstance(operand, Tensor) or (operand._extra is not None and operand._extra.number is not None):
            form = op.aten_number
    return f"{op.aten_name}_.{form}" if form else f"{op.aten_name}_"
