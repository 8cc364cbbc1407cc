"""`torch._C._nn`: the operators of neural networks, and parsing of the arguments of `to`."""

from functools import cache
from typing import Any

import adjoint as torch
from adjoint.aten.composites import COMPOSITES
from adjoint.aten.overloads import aten, is_there
from adjoint.aten.schemas import REDUCTIONS, schema_of
from adjoint.device import device as _device
from adjoint.dtypes import dtype as _dtype
from adjoint.nn import functional
from adjoint.operators.memory.conversion import to_arguments
from adjoint.tape.torch_function import ask, mode_is_active
from adjoint.tensor import Tensor


def _parse_to(*args: Any, **names: Any) -> tuple[_device | None, _dtype | None, bool, Any]:
    """Return the device, the dtype, whether to wait, and the memory format, from the arguments of `Module.to`."""
    if mode_is_active():
        parsed: tuple[_device | None, _dtype | None, bool, Any] = ask(_parse_to, [], args, names, of_python=False)
        return parsed
    kind, place, flags = to_arguments(args, names)
    if flags.get("copy"):
        raise RuntimeError(".to() does not accept copy argument")
    place = None if place is None else _device(place)
    return place, kind, flags.get("non_blocking", False), flags.get("memory_format")


@cache
def __getattr__(name: str) -> Any:
    """Return an operator on the arguments of PyTorch's dispatcher, or a function of `torch.nn.functional`."""
    function = None if name.startswith("__") else getattr(functional, name, None)
    schema = None if name.startswith("__") else schema_of(name, "default")
    if callable(function) and schema is not None and any(each.name == "reduction" for each in schema.arguments):
        return _of_number(function, [each.name.replace("self", "input") for each in schema.arguments])
    if callable(function) and name in COMPOSITES:
        return function
    if is_there(name):
        return getattr(aten, name)
    if callable(function):
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _of_number(function: Any, order: list[str]) -> Any:
    """Return a loss that takes its reduction as a number, and its arguments in this order."""

    def loss(*args: Any, **names: Any) -> Any:
        given = dict(zip(order, args, strict=False)) | names
        return function(**given | {"reduction": REDUCTIONS[given.get("reduction", 1)]})

    return loss


def _slow_convolution(dims: int) -> Any:
    def convolution(
        input: Tensor, weight: Tensor, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
    ) -> Tensor:
        for name, given in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
            if not isinstance(given, int) and len(given) != dims:
                raise RuntimeError(f"{dims}D {name} expected")
        made: Tensor = getattr(torch, f"conv{dims}d")(input, weight, bias, stride, padding)
        return made

    convolution.__doc__ = f"`torch.conv{dims}d` with the size of the kernel as an argument."
    return convolution


thnn_conv2d, slow_conv3d = _slow_convolution(2), _slow_convolution(3)
