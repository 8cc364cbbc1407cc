"""Weight normalization by a hook before each call (Salimans and Kingma, 2016).

`parametrizations` offers the same without a hook.
"""

from __future__ import annotations

from typing import Any, TypeVar

import adjoint as torch

from ..._runtime.tracebacks import warn
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

_M = TypeVar("_M", bound=Module)


norm_except_dim = torch.norm_except_dim


class WeightNorm:
    """The hook that computes a weight from its length and direction."""

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """Return the weight for the current length and direction."""
        return torch._weight_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace a parameter by its length and direction, and register the hook."""
        warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, made.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Set the attribute to the weight."""
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: _M, name: str = "weight", dim: int | None = 0) -> _M:
    """Replace a weight by parameters for its length, `<name>_g`, and its direction, `<name>_v` (deprecated).

    Use `torch.nn.utils.parametrizations.weight_norm` instead.

    Args:
        dim: the dimension with one length per index; None for one length of the whole weight.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: _M, name: str = "weight") -> _M:
    """Remove weight normalization. Raise ValueError if the weight has no weight normalization."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            module._forward_pre_hooks.pop(key)
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
