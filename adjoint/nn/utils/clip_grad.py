"""Limiting gradients by their norm or by value."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn

Tensors = Tensor | Iterable[Tensor]


def _as_list(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Iterable[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


@torch.no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all tensors together, treated as one vector.

    Args:
        norm_type: the order p of the norm; infinity gives the largest absolute value.
        foreach: accepted, but has no effect.

    Raises:
        RuntimeError: if `error_if_nonfinite` and the norm is nan or infinite.
    """
    listed = _as_list(tensors)
    norm_type = float(norm_type)
    if not listed:
        return torch.tensor(0.0)
    norms = torch.stack([torch.linalg.vector_norm(tensor, norm_type) for tensor in listed])
    total_norm = torch.linalg.vector_norm(norms, norm_type)
    if error_if_nonfinite and not bool(total_norm.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total_norm


@torch.no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients by `max_norm / total_norm` if that is below 1."""
    _scale(_gradients(_as_list(parameters)), max_norm, total_norm)


def _scale(grads: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    if not grads:
        return
    # 1e-6 as in PyTorch, to prevent division by zero.
    coefficient = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(coefficient)


@torch.no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients in place so that their total norm is at most `max_norm`. Return the norm before scaling.

    Raises:
        RuntimeError: if `error_if_nonfinite` and the norm is nan or infinite.
    """
    listed = _as_list(parameters)
    if isinstance(parameters, Generator) and not listed:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    grads = _gradients(listed)
    total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    _scale(grads, float(max_norm), total_norm)
    return total_norm


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The deprecated name of `clip_grad_norm_`."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(*args, **kwargs)


@torch.no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the gradients to the interval from `-clip_value` to `clip_value`."""
    clip_value = float(clip_value)
    for grad in _gradients(_as_list(parameters)):
        grad.clamp_(min=-clip_value, max=clip_value)
