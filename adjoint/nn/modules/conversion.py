"""`Module.to`: its arguments, and the conversion of each tensor and of a module's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from ..parameter import Parameter
from . import call
from .registration import Registered

Target = tuple[torch.device | None, torch.dtype | None, bool, torch.memory_format | None]
"""The device, the dtype, `non_blocking` and the memory format."""


def parse_to(*args: Any, **kwargs: Any) -> Target:
    """Convert the arguments of `Module.to`, which has three forms.

    Raises:
        TypeError: if the arguments match no form, or the dtype is neither floating point nor complex.
        RuntimeError: if a copy is requested, because a module converts itself in place.
    """
    device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    if dtype is not None and dtype.is_complex:
        warn(
            "Complex modules are a new feature under active development whose design may change, and some modules "
            "might not work as expected when using complex tensors as parameters or buffers. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work "
            "as expected."
        )
    return device, dtype, non_blocking, memory_format


def converter(
    device: torch.device | None,
    dtype: torch.dtype | None,
    non_blocking: bool,
    memory_format: torch.memory_format | None,
) -> Callable[[Tensor], Tensor]:
    """Return the conversion that `Module.to` applies to each tensor.

    All tensors are moved to the device. Floating-point and complex tensors are converted to the dtype, and tensors with
    four or five dimensions to the memory format.
    """

    def convert(tensor: Tensor) -> Tensor:
        wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
        order = memory_format if memory_format is not None and tensor.dim() in (4, 5) else None
        if device is None and wanted is None and order is None:
            return tensor
        if tensor.is_meta and device is not None and torch.device(device).type != "meta":
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                "torch.nn.Module.to() when moving module from meta to a different device."
            )
        return tensor.to(device, wanted, non_blocking, memory_format=order)

    return convert


def convert_parameters(module: Registered, fn: Callable[[Tensor], Tensor]) -> None:
    """Replace the data of the parameters of `module`, and of their gradients, by the result of `fn`.

    Raises:
        RuntimeError: if a parameter must be swapped with its new value, but cannot be swapped.
    """
    for name, param in module._parameters.items():
        if param is None:
            continue
        grad = param.grad
        with torch.no_grad():
            converted = fn(param)
        if swaps(converted):
            _swap(module, name, param, converted)
        elif _takes_data(param, converted):
            param.data = converted
        else:
            param = module._parameters[name] = Parameter(converted, param.requires_grad)
        if grad is not None:
            _convert_grad(module, name, param, grad, fn)


def swaps(tensor: Tensor) -> bool:
    """Return whether a parameter exchanges its contents with another tensor. Tensors that contain others always do."""
    if torch.__future__.get_swap_module_params_on_conversion():
        return True
    return torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor)


def _swap(module: Registered, name: str, param: Tensor, converted: Tensor) -> None:
    grad, param.grad = param.grad, None
    try:
        torch.utils.swap_tensors(param, Parameter(converted, requires_grad=param.requires_grad))
    except Exception as error:
        param.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {type(module).__name__}.{name}") from error


def _convert_grad(module: Registered, name: str, param: Tensor, grad: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    with torch.no_grad():
        converted = fn(grad)
    if swaps(converted):
        try:
            torch.utils.swap_tensors(grad, converted.requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {type(module).__name__}.{name}.grad") from error
        param.grad = grad
    elif _takes_data(grad, converted):
        grad.data = converted
        param.grad = grad
    else:
        param.grad = converted.requires_grad_(grad.requires_grad)


def _takes_data(tensor: Tensor, converted: Tensor) -> bool:
    """Return whether a conversion replaces only the data of `tensor`, instead of the tensor itself."""
    same = torch._has_compatible_shallow_copy_type(tensor, converted)
    return bool(same and not torch.__future__.get_overwrite_module_params_on_conversion())


def to_gpu(module: Any, device: Any = None) -> Any:
    """Move all parameters and buffers to a GPU. No GPU exists, so this raises the error of `Tensor.cuda`."""
    return module._apply(lambda tensor: tensor.cuda(device))


def compiled_in_place(module: Any, *args: Any, **kwargs: Any) -> None:
    """Compile the calls of this module, with the options of `torch.compile`. The module remains the same object.

    >>> import adjoint as torch
    >>> layer = torch.nn.Linear(2, 2)
    >>> layer.compile()
    >>> layer(torch.ones(3, 2)).shape
    torch.Size([3, 2])
    """
    module._compiled_call_impl = torch.compile(module._call_impl, *args, **kwargs)
    module._call_hooks[call.COMPILED] = True
