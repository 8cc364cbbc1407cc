"""The tensors of lazy modules, whose shapes are not known yet."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .parameter import Parameter

__all__ = ["UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin"]

_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
    "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
    "accessing their attributes."
)


class UninitializedTensorMixin:
    """A tensor of a lazy module. The shape is not known until `materialize` is called."""

    cls_to_become: type[Tensor]
    _allowed_methods = [
        *(Tensor.__hash__, Tensor.size, Tensor.copy_, Tensor.is_complex, Tensor.is_floating_point, Tensor.half),
        *(Tensor.float, Tensor.double, Tensor.bfloat16, Tensor.char, Tensor.short, Tensor.int, Tensor.long),
        *(Tensor.cuda, Tensor.cpu, Tensor.to, Tensor.get_device),
    ]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Convert the tensor in place to an ordinary tensor of the given shape, with uninitialized elements."""
        own: Any = self
        own.data = torch.empty(shape, device=device or own.data.device, dtype=dtype or own.data.dtype)
        own.__class__ = self.cls_to_become

    @property
    def shape(self) -> torch.Size:
        """Raise RuntimeError, because the shape is not known yet."""
        raise RuntimeError(_NO_SHAPE)

    def share_memory_(self) -> Tensor:
        """Raise RuntimeError, because the memory does not exist yet."""
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
        """Raise an error for all operations except attributes and conversions of the dtype."""
        if func in cls._allowed_methods or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with "
            "a dummy batch to initialize the parameters before calling torch functions"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet. The parameter accumulates gradients after it is materialized.

    >>> import adjoint as torch
    >>> parameter = torch.nn.UninitializedParameter()
    >>> parameter.materialize((2, 3))
    >>> type(parameter).__name__, parameter.shape
    ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        """Create a parameter without elements."""
        made: Any = Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        """Create a buffer without elements."""
        made: Any = Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]
