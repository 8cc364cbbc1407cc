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

_OUT = "*, Tensor out = None"
_MATHS = (f"Tensor input, Tensor other, {_OUT}", f"Tensor input, Number other, {_OUT}")
_BITS = (f"Tensor input, Tensor other, {_OUT}", "Number self, Tensor other", f"Tensor input, Number other, {_OUT}")
_POWER = (
    f"Tensor input, Tensor exponent, {_OUT}",
    f"Number self, Tensor exponent, {_OUT}",
    f"Tensor input, Number exponent, {_OUT}",
)
_SUM = (f"Tensor input, Tensor other, *, Number alpha = 1, {_OUT[3:]}",)
_EXTREMUM = (
    f"Tensor input, {_OUT}",
    f"Tensor input, Tensor other, {_OUT}",
    "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
)
_MOMENT = (
    f"Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, {_OUT}",
    "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None",
    "Tensor input, bool unbiased = True",
)
_MOMENT_AND_MEAN = (
    "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False",
    "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False",
    "Tensor input, bool unbiased = True",
)
_TRUTH = (
    f"Tensor input, {_OUT}",
    f"Tensor input, tuple of ints dim = None, bool keepdim = False, {_OUT}",
    f"Tensor input, int dim, bool keepdim = False, {_OUT}",
)
_OVER_DIMS = f"Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, {_OUT[3:]}"
_SEARCH = "*, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None"

FORMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("copysign", "eq", "fmod", "ge", "gt", "le", "lt", "ne"), _MATHS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "remainder"), _BITS),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), _BITS),
    **dict.fromkeys(("pow", "float_power"), _POWER),
    **dict.fromkeys(("add", "sub"), _SUM),
    **dict.fromkeys(("max", "min"), _EXTREMUM),
    **dict.fromkeys(("std", "var"), _MOMENT),
    **dict.fromkeys(("std_mean", "var_mean"), _MOMENT_AND_MEAN),
    **dict.fromkeys(("any", "all"), _TRUTH),
    "clamp": (
        f"Tensor input, Tensor min = None, Tensor max = None, {_OUT}",
        f"Tensor input, Number min = None, Number max = None, {_OUT}",
    ),
    "clamp_max": (f"Tensor input, Tensor max, {_OUT}", f"Tensor input, Number max, {_OUT}"),
    "clamp_min": (f"Tensor input, Tensor min, {_OUT}", f"Tensor input, Number min, {_OUT}"),
    "div": (
        f"Tensor input, Tensor other, {_OUT}",
        f"Tensor input, Tensor other, *, str rounding_mode, {_OUT[3:]}",
        "Tensor input, Number other, *, str rounding_mode",
    ),
    "floor_divide": (f"Tensor input, Tensor other, {_OUT}", "Tensor input, Number other"),
    "lerp": (f"Tensor input, Tensor end, Tensor weight, {_OUT}", f"Tensor input, Tensor end, Number weight, {_OUT}"),
    "masked_fill": ("Tensor input, Tensor mask, Tensor value", "Tensor input, Tensor mask, Number value"),
    "mean": (f"Tensor input, *, torch.dtype dtype = None, {_OUT[3:]}", _OVER_DIMS),
    "movedim": (
        "Tensor input, int source, int destination",
        "Tensor input, tuple of ints source, tuple of ints destination",
    ),
    "prod": (
        "Tensor input, *, torch.dtype dtype = None",
        f"Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, {_OUT[3:]}",
    ),
    "rsub": ("Tensor input, Tensor other, *, Number alpha = 1", "Tensor input, Number other, Number alpha = 1"),
    "searchsorted": (
        f"Tensor sorted_sequence, Tensor input, {_SEARCH}",
        f"Tensor sorted_sequence, Number self, {_SEARCH}",
    ),
    "set_": (
        "",
        "torch.Storage source",
        "torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None",
        "Tensor source",
        "Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None",
    ),
    "squeeze": ("Tensor input", "Tensor input, int dim", "Tensor input, tuple of ints dim"),
    "sum": ("Tensor input, *, torch.dtype dtype = None", _OVER_DIMS),
    "tensor_split": (
        "Tensor input, tuple of ints indices, int dim = 0",
        "Tensor input, Tensor tensor_indices_or_sections, int dim = 0",
        "Tensor input, int sections, int dim = 0",
    ),
    "view": ("torch.dtype dtype", "tuple of ints size"),
    "where": (
        "Tensor condition",
        f"Tensor condition, Tensor input, Tensor other, {_OUT}",
        "Tensor condition, Number self, Tensor other",
        "Tensor condition, Tensor input, Number other",
        "Tensor condition, Number self, Number other",
    ),
}  # fmt: skip
"""The forms in which functions may be called, as PyTorch lists them."""


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
