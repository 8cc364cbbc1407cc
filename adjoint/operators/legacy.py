"""The typed constructors of old, `FloatTensor` and its like, and `Tensor.type`, which speaks of them."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..device import cpu, strided
from ..notices import warn
from ..tensor import Tensor, legacy_array, wrap
from .build import PUBLIC, public
from .conversion import check_device, converted


class tensortype(type):
    """The type of `FloatTensor` and its like: tensors of one dtype are their instances."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return wrap(legacy_array(args, cls.dtype, device, exact=True))


tensortype.__module__ = "torch"

BY_NAME: dict[str, Any] = {}
"""The typed constructors by the names that `Tensor.type` uses, as in `'torch.FloatTensor'`."""

for _kind in (
    dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.int32, dtypes.int16,
    dtypes.int8, dtypes.uint8, dtypes.bool,
):  # fmt: skip
    _name = f"{_kind.scalar_type}Tensor"
    BY_NAME[f"torch.{_name}"] = PUBLIC["torch"][_name] = tensortype(
        _name,
        (),
        {"__module__": "torch", "dtype": _kind, "is_sparse": False, "is_cuda": False, "layout": strided, "device": cpu},
    )


def type_name(kind: dtypes.dtype) -> str:
    """The name of the tensors of a dtype, as in `'torch.FloatTensor'`."""
    return f"torch.{kind.scalar_type}Tensor"


@public(namespace=None, method=("type",))
def type_of(input, dtype=None, non_blocking=False):
    """The name of the tensor's type, as in `'torch.FloatTensor'`; given a dtype or such a name, the tensor as that."""
    if dtype is None:
        return type_name(input.dtype)
    return converted(input, named_dtype(dtype))


def named_dtype(value: Any) -> dtypes.dtype:
    """The dtype that a dtype, a typed constructor or its name stands for."""
    if isinstance(value, dtypes.dtype):
        return value
    if value is Tensor or value == "torch.Tensor":
        return dtypes.get_default_dtype()
    if isinstance(value, tensortype):
        return value.dtype
    if not isinstance(value, (str, type)):
        raise TypeError("dtype must be a type, str, or dtype object")
    name = value if isinstance(value, str) else value.__name__
    if name.startswith(("torch.cuda.", "torch.xpu.")):
        check_device(name.split(".")[1])
    if name not in BY_NAME:
        raise ValueError(f"invalid type: '{name}'")
    return BY_NAME[name].dtype  # type: ignore[no-any-return]


@public(namespace=None, method=True)
def new(input, *args, device=None):
    """An uninitialised tensor of the given size, or one of the given data, of this tensor's dtype."""
    return wrap(legacy_array(args, input.dtype, device))


@public()
def set_default_tensor_type(t, /):
    """Make the dtype of a typed constructor (or its name) the default one. Deprecated: use `set_default_dtype`."""
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    dtypes.set_default_dtype(named_dtype(t))


@public()
def get_default_device():
    """Where new tensors are made: the CPU."""
    return cpu


@public()
def set_default_device(device):
    """Say where new tensors are made; the CPU is the only place."""
    if device is not None:
        check_device(device)
