"""Convert tensors and arguments of PyTorch's sample inputs to either library; keep strides, offsets and aliasing."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy
import torch


@dataclass(frozen=True)
class Recipe:
    """A recipe for one tensor:

    the storage, and the window on the storage. The window is None if the storage has the tensor's shape.
    """

    storage: numpy.ndarray
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    requires_grad: bool

    def build(self, module: Any, *, requires_grad: bool | None = None) -> Any:
        """Return a new leaf of `module` on a separate copy of the storage."""
        tensor = from_array(module, self.storage).clone()
        if self.strides is not None:
            tensor = tensor.as_strided(self.shape, self.strides).data
        return tensor.requires_grad_() if (self.requires_grad if requires_grad is None else requires_grad) else tensor


@lru_cache(4096)  # the same samples are built for each library and for every aspect
def recipe(tensor: torch.Tensor, version: int) -> Recipe:
    """Return the recipe of a PyTorch tensor with this version number."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    span = (
        0
        if plain.numel() == 0
        else 1 + sum((size - 1) * step for size, step in zip(plain.shape, plain.stride(), strict=True))
    )
    storage = to_array(plain.as_strided((span,), (1,), plain.storage_offset())).copy()
    if span and plain.stride() == torch.empty(plain.shape, device="meta").stride():
        return Recipe(storage.reshape(plain.shape), tuple(plain.shape), None, tensor.requires_grad)
    return Recipe(storage, tuple(plain.shape), plain.stride(), tensor.requires_grad)


def from_array(module: Any, array: numpy.ndarray) -> Any:
    """Return a tensor of `module` on the array's memory."""
    if module is torch and array.dtype.isbuiltin != 1:
        return torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, array.dtype.name))
    return module.from_numpy(array)


def to_array(tensor: Any) -> numpy.ndarray:
    """Return the tensor's values as an array, which shares the tensor's memory if possible."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if isinstance(tensor, torch.Tensor):
        if tensor._is_zerotensor():
            tensor = tensor.clone()
        held = getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch."), None)
        if held is not None:
            whole = {1: torch.int8, 2: torch.int16, 4: torch.int32}[tensor.itemsize]
            return tensor.view(whole).numpy().view(held)
    return tensor.numpy()


class Converter:
    """A converter of arguments for one library. A tensor that occurs twice stays one tensor."""

    def __init__(self, module: Any, *, requires_grad: bool | None = None) -> None:
        self.module = module
        self.requires_grad = requires_grad
        self._built: dict[int, tuple[torch.Tensor, Any]] = {}

    @property
    def tensors(self) -> list[Any]:
        """Return all tensors built so far, in order."""
        return [built for _, built in self._built.values()]

    def __call__(self, value: Any) -> Any:
        match value:
            case torch.Tensor():
                return self._tensor(value)
            case torch.Size():
                return self.module.Size(value)
            case tuple() | list():
                return type(value)(self(item) for item in value)
            case dict():
                return {key: self(item) for key, item in value.items()}
            case slice():
                return slice(self(value.start), self(value.stop), self(value.step))
            case torch.dtype() | torch.memory_format() | torch.layout():
                return getattr(self.module, str(value).removeprefix("torch."))
            case torch.device():
                return self.module.device(str(value))
            case torch.nn.Module():
                return self._module(value)
            case _ if callable(value) and getattr(torch.nn.functional, getattr(value, "__name__", ""), None) is value:
                return getattr(self.module.nn.functional, value.__name__)
            case _:
                return value

    def _module(self, module: torch.nn.Module) -> Any:
        """Return a module of the same name, with the same attributes."""
        kind = getattr(self.module.nn, type(module).__name__, self.module.nn.Linear)
        made = kind.__new__(kind)
        self.module.nn.Module.__init__(made)
        for name, value in vars(module).items():
            if name in ("_parameters", "_buffers", "_modules"):
                vars(made)[name].update((key, self(each)) for key, each in value.items())
            elif not name.startswith("_") or name not in vars(torch.nn.Module()):
                vars(made)[name] = self(value)
        return made

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if id(tensor) not in self._built:
            needs = None if self.requires_grad is None else self.requires_grad and tensor.requires_grad
            self._built[id(tensor)] = tensor, recipe(tensor, tensor._version).build(self.module, requires_grad=needs)
        return self._built[id(tensor)][1]
