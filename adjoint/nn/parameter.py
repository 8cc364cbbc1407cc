"""The tensors of modules: parameters, which are trained, and buffers, which are not trained."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .._runtime.first_use import late_names
from .._runtime.tracebacks import ending_at_caller

__all__ = ["Buffer", "Parameter", "is_lazy"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta, plain=True):
    """A tensor that a `Module` registers as a parameter when it is assigned as an attribute.

    Args:
        data: the tensor. The parameter shares memory and version counter with this tensor. The default is an empty
            tensor.
        requires_grad: whether autograd accumulates a gradient into the parameter.

    Raises:
        RuntimeError: if `requires_grad` and the dtype is neither floating point nor complex.

    >>> import adjoint as torch
    >>> torch.nn.Parameter(torch.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    @ending_at_caller
    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Create a leaf on the memory of `data`. A tensor subclass keeps its class."""
        plain = torch.empty(0) if data is None else data
        if type(plain) is Tensor or type(plain) is Parameter:
            made: Parameter = Tensor._make_subclass(cls, plain, requires_grad)
            return made
        own: Any = plain.detach()
        own.requires_grad = requires_grad
        if type(own) is not type(plain):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(plain).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(own).__name__} was found instead. To use the type as a "
                "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
            )
        vars(own)["_is_param"] = True
        return own  # type: ignore[return-value]

    _is_param = True
    __torch_function__ = torch._C._disabled_torch_function_impl

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        copied = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copied
        return copied

    def __repr__(self) -> str:  # type: ignore[override]
        text = super().__repr__()
        return "Parameter containing:\n" + (text if type(self) is Parameter else f"Parameter({text})")


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=_BufferMeta):
    """Creates a tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    Args:
        data: the tensor. The buffer shares memory and version counter with this tensor. The default is an empty tensor.
        persistent: whether the buffer is part of the module's `state_dict`.

    >>> import adjoint as torch
    >>> module = torch.nn.Module()
    >>> module.count = torch.nn.Buffer(torch.zeros(1))
    >>> module.state_dict()["count"]
    tensor([0.])
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Tensor:  # type: ignore[misc]
        """Create a tensor on the memory of `data` that modules register as a buffer."""
        tensor: Any = torch.empty(0) if data is None else data.detach()
        tensor.requires_grad = data is not None and data.requires_grad
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor


def is_lazy(param: Any) -> bool:
    """Return whether `param` is a tensor of a lazy module whose shape is not known yet."""
    return hasattr(type(param), "cls_to_become")


# Imported on first use.
_LATE = dict.fromkeys(("UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin"), "uninitialized")
__all__.extend(_LATE)
__getattr__ = late_names(__name__, _LATE)


@ending_at_caller
def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments `device`, `dtype` and `memory_format`, for functions such as `torch.empty`.

    The dictionary `factory_kwargs` may contain these arguments.

    Raises:
        TypeError: if there are other arguments, or if an argument is given twice.

    >>> import adjoint as torch
    >>> torch.nn.factory_kwargs({"dtype": torch.float64})
    {'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    if unknown := kwargs.keys() - {*known, "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    if unknown := found.keys() - known:
        raise TypeError(f"unexpected factory_kwargs {unknown}")
    for name in ("device", "dtype", "memory_format"):
        if name in kwargs:
            if name in found:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            found[name] = kwargs[name]
    return found
