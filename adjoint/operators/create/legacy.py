"""Old constructors, such as `Tensor(2, 3)` and `FloatTensor`, and `Tensor.type`, which uses their names."""

from __future__ import annotations

from typing import Any

import numpy

from ... import dtypes
from ..._runtime.places import module_named
from ..._runtime.tracebacks import ending_at_caller, warn
from ...device import Size, cpu, device, sparse_coo, strided
from ...device import device as device_class
from ...dispatch.arguments import invalid_arguments
from ...dispatch.decorators import PUBLIC, public, tensors
from ...dispatch.sequential import data_array
from ...dispatch.signatures import FORMS
from ...kernels.create.data import array_from_data
from ...kernels.memory import storages
from ...tape import mode_switches, modes
from ...tensor import Tensor, wrap
from ..memory.conversion import check_device, converted, is_meta


def legacy_array(
    args: tuple[Any, ...], kind: dtypes.dtype, device: Any, names: dict[str, Any] | None = None, exact: bool = False
) -> numpy.ndarray[Any, Any]:
    """Return the array of `Tensor(3, 5)` (uninitialized), `Tensor(data)` or `Tensor()`, with elements of `kind`.

    The only accepted keyword is `device`. Any other keyword, in `names`, is an error. A tensor or a storage is used
    unchanged. With `exact`, a tensor of another dtype is an error.
    """
    if names:
        raise invalid_arguments("new", *args, **names)
    if device is not None and device_class(device).type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {device_class(device).type} was passed"
        )
    data = args[0] if len(args) == 1 else None
    if isinstance(data, storages.UntypedStorage):
        data.check_kind(kind.numpy, kind.scalar_type)
        return data.elements(kind.numpy)
    if isinstance(data, Tensor):
        if exact and data.dtype is not kind:
            raise TypeError(f"expected {_options(kind)} (got {_options(data.dtype)})")
        return data._array
    is_size = isinstance(data, Size) or (
        hasattr(data, "__index__") and type(data) is not bool and not isinstance(data, numpy.ndarray)
    )
    if len(args) == 1 and not is_size:
        if not hasattr(data, "__len__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        return array_from_data(data, kind, unwrap=data_array)
    sizes = data if isinstance(data, Size) else args
    for position, size in enumerate(sizes):
        if not hasattr(size, "__index__") or type(size) is bool:
            if position == 0:
                raise invalid_arguments("new", *args)
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {position + 1} with error "
                f'"type must be tuple of ints,but got {type(size).__name__}"'
            )
        if size < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {list(sizes)}")
    return numpy.zeros([int(size) for size in sizes] if sizes or isinstance(data, Size) else 0, kind.numpy)


FORMS["new"] = (
    "*, torch.device device = None",
    "torch.Storage storage",
    "Tensor other",
    "tuple of ints size, *, torch.device device = None",
    "object data, *, torch.device device = None",
)


def _options(kind: dtypes.dtype) -> str:
    """Return the description of a dtype in PyTorch's errors."""
    return (
        f"TensorOptions(dtype={dtypes.C_NAMES[kind]}, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


class tensortype(type):
    """The metaclass of `FloatTensor` and similar classes. The instances of such a class are the tensors of one dtype."""

    dtype: dtypes.dtype
    device: device
    is_cuda: bool
    is_sparse: bool
    layout: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            not cls.is_cuda
            and isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is cls.layout
        )

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> tensortype:
        for base in bases:
            place = base.__module__.replace("adjoint", "torch", 1)
            raise TypeError(f"type '{place}.{base.__name__}' is not an acceptable base type")
        return super().__new__(cls, name, bases, body)

    @ending_at_caller
    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        cls.check_available()
        if cls.is_sparse:
            return tensors.sparse_coo_tensor(*(args or ((0,),)), dtype=cls.dtype)
        return wrap(legacy_array(args, cls.dtype, device, exact=True))

    def check_available(cls) -> None:
        """Raise TypeError if the tensors of the type would be on a GPU."""
        if cls.is_cuda:
            raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.")


tensortype.__module__ = module_named("")

BY_NAME: dict[str, Any] = {}
"""The typed constructors by the names that `Tensor.type` uses, as in `'torch.FloatTensor'`."""

ON_CUDA: dict[str, Any] = {}
"""The typed constructors for GPU tensors, by their names in `torch.cuda`. No such tensors exist."""


def _typed_constructor(kind: dtypes.dtype, module: str, place: device, is_sparse: bool = False) -> Any:
    of = f"{kind}".removeprefix("torch.")
    docstring = f"The constructor of {of} tensors from before dtypes: `tensor(..., dtype=torch.{of})` says the same."
    layout = sparse_coo if is_sparse else strided
    names = {
        "__module__": module_named(module),
        "__doc__": docstring,
        "dtype": kind,
        "is_sparse": is_sparse,
        "layout": layout,
        "is_xpu": False,
    }
    return tensortype(f"{kind.scalar_type}Tensor", (), {**names, "is_cuda": place is not cpu, "device": place})


for _kind in (
    dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.int32, dtypes.int16,
    dtypes.int8, dtypes.uint8, dtypes.bool,
):  # fmt: skip
    _name = f"{_kind.scalar_type}Tensor"
    BY_NAME[f"torch.{_name}"] = PUBLIC["torch"][_name] = _typed_constructor(_kind, "", cpu)
    ON_CUDA[_name] = _typed_constructor(_kind, "cuda", device("cuda"))
    if _kind is not dtypes.bool:
        PUBLIC["sparse"][_name] = _typed_constructor(_kind, "sparse", cpu, is_sparse=True)


def type_name(kind: dtypes.dtype) -> str:
    """Return the name of the tensors of a dtype, such as `'torch.FloatTensor'`."""
    return f"torch.{kind.scalar_type}Tensor"


@public(namespace=None, method=("type",))
def type_of(input, dtype=None, non_blocking: bool = False):
    """Return the name of the tensor's type, such as `'torch.FloatTensor'`.

    If a dtype or the name of a type is given, return the converted tensor.
    """
    if dtype is None:
        return type_name(input.dtype)
    return converted(input, named_dtype(dtype))


def named_dtype(value: Any) -> dtypes.dtype:
    """Return the dtype that a dtype, a typed constructor or its name denotes."""
    if isinstance(value, dtypes.dtype):
        return value
    if value is Tensor or value == "torch.Tensor":
        return dtypes.get_default_dtype()
    if isinstance(value, tensortype):
        check_device(value.device)
        return value.dtype
    if not isinstance(value, (str, type)):
        raise TypeError("dtype must be a type, str, or dtype object")
    name = value if isinstance(value, str) else value.__name__
    if name.startswith(("torch.cuda.", "torch.xpu.")):
        check_device(name.split(".")[1])
    if name not in BY_NAME:
        raise ValueError(f"invalid type: '{name}'")
    return BY_NAME[name].dtype


@public(namespace=None, method=True)
def new(input, *args, size=None, device=None):
    """An uninitialized tensor of the given size, or a tensor of the given data, with this tensor's dtype."""
    args = args if size is None else (Size(size),)
    return wrap(legacy_array(args, input.dtype, device, exact=True))


@public()
def set_default_tensor_type(t, /):
    """Make the dtype of a typed constructor, or of its name, the default dtype. Deprecated: use `set_default_dtype`."""
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    if isinstance(t, tensortype):
        t.check_available()
    dtypes.set_default_dtype(named_dtype(t))


@public()
def get_default_device():
    """Return the default device of new tensors: the CPU, unless another device has been set."""
    place = mode_switches.current_place()
    return cpu if place is None else place


@public()
def set_default_device(device):
    """Set the default device of new tensors in this thread: the CPU or `meta`. None means the CPU."""
    place = None if device is None else device_class(device)
    modes.put({"default_place": place if place is not None and is_meta(place) else None})


Tensor._legacy_array = staticmethod(legacy_array)
