"""Spectral normalization by a hook before each call (Miyato et al., 2018). `parametrizations` offers the same without a hook."""

from __future__ import annotations

from typing import Any, TypeVar

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

_M = TypeVar("_M", bound=Module)


class SpectralNorm:
    """The hook that divides a weight by its spectral norm."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix with the dimension `dim` as rows."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight divided by the estimate of its norm, after steps of power iteration if requested."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with torch.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(torch.mv(matrix, v), dim=0, eps=self.eps))
                # Copies, because the next call changes the buffers, which the backward of this call needs.
                u, v = u.clone(), v.clone()
        return weight / torch.dot(u, torch.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with torch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        delattr(module, self.name + "_u")
        delattr(module, self.name + "_v")
        delattr(module, self.name + "_orig")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Set the attribute to the normalized weight."""
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Replace a parameter by its unnormalized form, and register the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying spectral normalization"
            )
        with torch.no_grad():
            rows, columns = made.reshape_weight_to_matrix(weight).size()
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormStateDictHook:
    """Writes the version of the hook into the metadata of a state dict."""

    def __init__(self, hook: SpectralNorm) -> None:
        self.fn = hook

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        noted = local_metadata.setdefault("spectral_norm", {})
        noted[self.fn.name + ".version"] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Adds a vector that state dicts before version 1 lack. The vector preserves the norm."""

    def __init__(self, hook: SpectralNorm) -> None:
        self.fn = hook

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        key = prefix + self.fn.name
        if version is not None or not all(key + part in state_dict for part in ("_orig", "_u", "")):
            return
        weight, u = state_dict[key + "_orig"], state_dict[key + "_u"]
        norm = (weight / state_dict.pop(key)).mean()
        matrix = self.fn.reshape_weight_to_matrix(weight)
        v = torch.linalg.pinv(matrix.t() @ matrix) @ matrix.t() @ u
        state_dict[key + "_v"] = v * (norm / (u @ (matrix @ v)))


def spectral_norm(
    module: _M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> _M:
    """Divide a weight by an estimate of its spectral norm before each call.

    `torch.nn.utils.parametrizations.spectral_norm` does the same without a hook.

    Args:
        n_power_iterations: the number of steps of power iteration for each call in training.
        eps: a number that is added to norms.
        dim: the dimension of the weight that becomes the rows of the matrix; by default 1 for transposed convolutions,
            and 0 otherwise.
    """
    if dim is None:
        dim = int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: _M, name: str = "weight") -> _M:
    """Remove spectral normalization. Raise ValueError if the weight has no spectral normalization."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for key, noted in module._state_dict_hooks.items():
        if isinstance(noted, SpectralNormStateDictHook) and noted.fn.name == name:
            del module._state_dict_hooks[key]
            break
    for key, wrapped in module._load_state_dict_pre_hooks.items():
        if isinstance(wrapped.hook, SpectralNormLoadStateDictPreHook) and wrapped.hook.fn.name == name:
            del module._load_state_dict_pre_hooks[key]
            break
    return module
