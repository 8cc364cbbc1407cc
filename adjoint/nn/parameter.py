"""The tensors of modules: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import adjoint as torch

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


class _ParameterMeta(type(torch.Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, torch.Tensor) and getattr(instance, "_is_param", False)


class Parameter(torch.Tensor, metaclass=_ParameterMeta, plain=True):
    """A tensor that a `Module` registers as a parameter when it is assigned as an attribute.

    Args:
        data: the tensor; memory and version counter are shared with it. Empty when left out.
        requires_grad: whether autograd accumulates a gradient into it.

    Raises:
        RuntimeError: if `requires_grad` and the dtype is neither floating point nor complex.

    >>> import adjoint as torch
    >>> torch.nn.Parameter(torch.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    def __new__(cls, data: torch.Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Create a leaf on the memory of `data`; a tensor subclass keeps its class."""
        plain = torch.empty(0) if data is None else data
        if type(plain) is torch.Tensor or type(plain) is Parameter:
            made: Parameter = torch.Tensor._make_subclass(cls, plain, requires_grad)
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

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict(), copy.copy(self.__dict__))


def _rebuild_parameter(
    data: torch.Tensor, requires_grad: bool, backward_hooks: Any, attributes: dict[str, Any] | None = None
) -> Parameter:
    """Rebuild a pickled parameter, with the attributes that were set on it."""
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(attributes or {})
    return parameter


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=_BufferMeta):
    """Creates a tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    Args:
        data: the tensor; memory and version counter are shared with it. Empty when left out.
        persistent: whether the buffer is part of the module's `state_dict`.

    >>> import adjoint as torch
    >>> module = torch.nn.Module()
    >>> module.count = torch.nn.Buffer(torch.zeros(1))
    >>> module.state_dict()["count"]
    tensor([0.])
    """

    persistent: bool

    def __new__(cls, data: torch.Tensor | None = None, *, persistent: bool = True) -> torch.Tensor:  # type: ignore[misc]
        """Create a tensor on the memory of `data` that modules recognise."""
        tensor: Any = torch.empty(0) if data is None else data.detach()
        tensor.requires_grad = data is not None and data.requires_grad
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor


_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
    "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
    "accessing their attributes."
)


class UninitializedTensorMixin:
    """A tensor of a lazy module: its dtype and device are known, and its shape is not until `materialize` is called."""

    cls_to_become: type[torch.Tensor]
    _allowed_methods = [
        torch.Tensor.__hash__,
        torch.Tensor.size,
        torch.Tensor.copy_,
        torch.Tensor.is_complex,
        torch.Tensor.is_floating_point,
        torch.Tensor.half,
        torch.Tensor.float,
        torch.Tensor.double,
        torch.Tensor.bfloat16,
        torch.Tensor.char,
        torch.Tensor.short,
        torch.Tensor.int,
        torch.Tensor.long,
        torch.Tensor.cuda,
        torch.Tensor.cpu,
        torch.Tensor.to,
        torch.Tensor.get_device,
    ]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or tensor of the given shape, whose elements are uninitialised."""
        own: Any = self
        own.data = torch.empty(shape, device=device or own.data.device, dtype=dtype or own.data.dtype)
        own.__class__ = self.cls_to_become

    @property
    def shape(self) -> torch.Size:
        """Raises RuntimeError: the shape is not known yet."""
        raise RuntimeError(_NO_SHAPE)

    def share_memory_(self) -> torch.Tensor:
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before "
            "calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        own: Any = self
        return type(self), (own.requires_grad,)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse all but attributes and conversions of the dtype."""
        if func in cls._allowed_methods or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with "
            "a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param: Any) -> bool:
    """Whether `param` is a tensor of a lazy module that has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet; it accumulates a gradient once it is materialized.

    >>> import adjoint as torch
    >>> parameter = torch.nn.UninitializedParameter()
    >>> parameter.materialize((2, 3))
    >>> type(parameter).__name__, parameter.shape
    ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        """Create a parameter without elements."""
        made: Any = torch.Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, torch.Tensor):  # type: ignore[misc]
    """A buffer whose shape is not known yet."""

    cls_to_become = torch.Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        """Create a buffer without elements."""
        made: Any = torch.Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]
