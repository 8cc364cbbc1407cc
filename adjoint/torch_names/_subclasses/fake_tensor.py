"""Fake tensors: tensors without elements on the device `meta` that report another device."""

from __future__ import annotations

from functools import cache
from typing import Any

import adjoint as torch

__all__ = """
    DataDependentOutputException DynamicOutputShapeException FakeTensor FakeTensorMode UnsupportedFakeTensorException
    UnsupportedOperatorException is_fake
""".split()

_pytree: Any = torch.utils._pytree


class DataDependentOutputException(RuntimeError):
    """The error for a result that depends on elements."""


class DynamicOutputShapeException(RuntimeError):
    """The error for a result whose shape depends on elements."""


class UnsupportedFakeTensorException(RuntimeError):
    """The error for a tensor that has no fake tensor."""


class UnsupportedOperatorException(RuntimeError):
    """The error for an operator without a rule for fake tensors."""


class FakeTensor(torch.Tensor, plain=False):
    """A tensor without elements, created by `FakeTensorMode`."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    fake_mode: FakeTensorMode
    fake_device: torch.device
    is_meta = False

    @staticmethod
    def from_tensor(tensor: torch.Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """Return a fake tensor for another tensor, as the method of the mode does."""
        return fake_mode.from_tensor(tensor)

    @property
    def device(self) -> torch.device:
        """The device that the tensor reports."""
        return self.fake_device

    def __repr__(self) -> str:  # type: ignore[override]
        place = "" if self.fake_device.type == "cpu" else f"device='{self.fake_device}', "
        return super().__repr__().replace("device='meta', ", place, 1)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode = next(each.fake_mode for each in _pytree.tree_leaves((args, kwargs)) if is_fake(each))
        return mode.computed(func, args, kwargs or {}, mode.allow_non_fake_inputs)


@cache
def _begin() -> None:
    """Make fake tensors receive operators. This slows all operators down, so it starts with the first fake tensor."""
    super(FakeTensor, FakeTensor).__init_subclass__()


class FakeTensorMode(torch.utils._python_dispatch.TorchDispatchMode):
    """A context in which tensors are created and computed as fake tensors.

    Tensors with elements are treated as fake tensors.

    >>> import adjoint as torch
    >>> with torch._subclasses.FakeTensorMode():
    ...     torch.nn.Linear(3, 2)(torch.empty(5, 3))
    FakeTensor(..., size=(5, 2), grad_fn=<AddmmBackward0>)
    """

    def __init__(self, *, allow_non_fake_inputs: bool = False, shape_env: Any = None, **options: Any) -> None:
        super().__init__()
        _begin()
        self.shape_env = shape_env
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self._converted = torch.utils.weak.WeakIdKeyDictionary()

    def __deepcopy__(self, memo: Any) -> FakeTensorMode:
        return self

    def from_tensor(self, tensor: torch.Tensor) -> FakeTensor:
        """Return a fake tensor for another tensor. The same tensor always gives the same fake tensor."""
        found = self._converted.get(tensor)
        if found is None:
            found = self._faked(tensor.detach().to("meta"), tensor.device)
            if isinstance(tensor, torch.nn.Parameter):
                found = torch.nn.Parameter(found, tensor.requires_grad)
            else:
                found.requires_grad_(tensor.requires_grad)
            self._converted[tensor] = found
        return found

    def _faked(self, value: Any, place: torch.device) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        made = torch.Tensor._make_subclass(FakeTensor, value)
        made.fake_mode, made.fake_device = self, place
        return made

    def computed(self, func: Any, args: Any, kwargs: dict[str, Any], lenient: bool = True) -> Any:
        """Return the result of an operator on fake tensors."""
        tensors = [each for each in _pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        if not lenient and not all(map(is_fake, tensors)):
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {func}"
            )
        aten = torch.ops.aten
        if func is aten._local_scalar_dense.default and not is_fake(args[0]):
            return func(*args)
        if func in (aten._local_scalar_dense.default, aten.equal.default, aten.allclose.default):
            raise DataDependentOutputException(func)
        if func is aten.linalg_lstsq.default:
            raise DynamicOutputShapeException(func)
        place = next((each.device for each in tensors), torch.device("cpu"))
        if kwargs.get("device") is not None:
            place = torch.device(kwargs["device"])
            kwargs = {**kwargs, "device": "meta"}
        plain, kwargs = _pytree.tree_map(_without_elements, (args, kwargs))
        try:
            result = func(*plain, **kwargs)
        except NotImplementedError as error:
            if "depends on elements" in str(error):
                raise DynamicOutputShapeException(func) from error
            raise
        if plain and isinstance(result, torch.Tensor) and result is plain[0] and is_fake(args[0]):
            args[0]._array = result._array  # an operation in place may change the shape
            return args[0]
        return _pytree.tree_map(lambda each: self._faked(each, place), result)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.computed(func, args, kwargs or {})


def _without_elements(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.Tensor._make_subclass(torch.Tensor, value) if is_fake(value) else value.to("meta")


def is_fake(x: Any) -> bool:
    """Return whether a tensor is a fake tensor."""
    return isinstance(x, FakeTensor)
