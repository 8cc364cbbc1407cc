"""Conditions that programs and libraries check with PyTorch's private functions, and the errors of failed checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint import dtypes
from adjoint.array_attributes import takes_data
from adjoint.dispatch.decorators import tensors as operators
from adjoint.tensor import Tensor

_UNSAID = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement "
    "request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of the given type, with the text that `message()` returns, unless `cond` is true."""
    if not isinstance(cond, bool):
        advice = "For tensor conditions, use torch._check_tensor_all() to assert that all elements are true."
        raise TypeError(
            f"cond must be a bool, but got {f'a Tensor. {advice}' if isinstance(cond, Tensor) else type(cond)}"
        )
    if cond:
        return
    if message is None:
        raise error_type(_UNSAID)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless `cond` is true."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise IndexError unless `cond` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise ValueError unless `cond` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise TypeError unless `cond` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise NotImplementedError unless `cond` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless a number can be a size, from 0 to `max`."""
    _check(bool(i >= 0), message)
    if max is not None:
        _check(bool(i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of the given type unless all elements of a tensor of dtype bool are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless all elements of a tensor of dtype bool are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError unless a tensor has one element, which is nonzero."""
    if not bool(input):
        raise RuntimeError(assert_msg)


def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return the sizes of a tensor, as a tensor of dtype int64."""
    return operators.tensor(list(input.shape), dtype=dtypes.int64)


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Return whether `input.data = from_` is possible: devices are equal, and both are dense, COO, or compressed."""
    return takes_data(input, from_)
