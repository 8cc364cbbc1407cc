"""The memory layout of the weights of convolutions."""

from __future__ import annotations

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

_M = TypeVar("_M", bound=Module)


def _convert(module: Module, memory_format: Any, kinds: tuple[type[Module], ...]) -> None:
    for each in module.modules():
        if isinstance(each, kinds):
            weight: Any = each.weight
            weight.data = weight.detach().clone(memory_format=memory_format)


def convert_conv2d_weight_memory_format(module: _M, memory_format: Any) -> _M:
    """Give the weights of all `Conv2d` and `ConvTranspose2d` in `module` the memory format, in place."""
    _convert(module, memory_format, (Conv2d, ConvTranspose2d))
    return module


def convert_conv3d_weight_memory_format(module: _M, memory_format: Any) -> _M:
    """Give the weights of all `Conv3d` and `ConvTranspose3d` in `module` the memory format, in place."""
    _convert(module, memory_format, (Conv3d, ConvTranspose3d))
    return module
