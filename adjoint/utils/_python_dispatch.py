"""`torch.utils._python_dispatch`: modes that receive every operator of a thread, below autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import adjoint as torch


class TorchDispatchMode(torch._C._EnteredMode):  # type: ignore[misc, valid-type]
    """A context in which `__torch_dispatch__`, a method that you define, receives every operator of this thread.

    The method receives an overload of `torch.ops.aten` with the arguments of PyTorch's dispatcher, and returns the
    result. The method runs below autograd. It receives the operators of forward and backward. Operators that the method
    calls are not recorded. The result of the method is recorded as the result of the operator. The enclosing mode
    receives the operators that the method calls.

    >>> import adjoint as torch
    >>> from adjoint.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> w = torch.ones(2, 3, requires_grad=True)
    >>> with Log():
    ...     y = torch.nn.functional.linear(torch.ones(1, 3), w).sum()
    aten.ones.default
    aten.t.default
    aten.mm.default
    aten.sum.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return the result of `func`. Override this method."""
        raise NotImplementedError

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Create a mode of this class. This is an old name of the constructor."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return whether the mode belongs to the library itself."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that receives no operators."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call `func`."""
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """Return the innermost mode that this thread has entered."""
    return (_get_current_dispatch_mode_stack() or [None])[-1]


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the modes that this thread has entered, with the innermost last."""
    return [torch._C._get_dispatch_stack_at(index) for index in range(torch._C._len_torch_dispatch_stack())]


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A context without modes."""
    found = [torch._C._pop_torch_dispatch_stack() for _ in range(torch._C._len_torch_dispatch_stack())]
    try:
        yield found[::-1]
    finally:
        for mode in reversed(found):
            torch._C._push_on_torch_dispatch_stack(mode)


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    """A context without the innermost mode."""
    mode = torch._C._pop_torch_dispatch_stack()
    try:
        yield mode
    finally:
        torch._C._push_on_torch_dispatch_stack(mode)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return whether a tensor wraps other tensors and lists them (`__tensor_flatten__`)."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return whether the tensors of a class wrap other tensors and list them."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Return a wrapper tensor like `t`, with `callback(name, inner)` in place of each inner tensor."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """Return the result of a `__torch_dispatch__`.

    Where the operator returns an argument that it changes, return this argument instead of the result in `out`.
    """
    schema = func._schema
    if schema is None or not schema.is_mutable or not schema.returns:
        return out
    named = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | kwargs
    changed = {
        each.alias_info: named[each.name]
        for each in schema.arguments
        if each.alias_info is not None and each.alias_info.is_write and each.name in named
    }
    several = len(schema.returns) > 1
    results = [
        changed.get(each.alias_info, own) for each, own in zip(schema.returns, out if several else (out,), strict=True)
    ]
    return type(out)(results) if several else results[0]
