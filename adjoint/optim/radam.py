"""Rectified Adam."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch

from .optimizer import (
    Optimizer,
    Params,
    as_real,
    check_betas,
    check_eps,
    check_lr,
    check_not_negative,
    count_step,
    number,
)

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """Adam whose step is rectified while few gradients are known (Liu et al., 2020).

    As Adam, but with ρ∞ = 2 / (1 - β₂) - 1 and ρₜ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ) the step is multiplied by
    √((ρₜ - 4)(ρₜ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρₜ)) where ρₜ > 5, and not divided by the root of v before.

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        betas: β₁ and β₂.
        decoupled_weight_decay: decay the parameter itself, as AdamW.
        maximize: ascend instead.
        foreach, capturable, differentiable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for options out of range.
    """

    _later_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_eps(eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["step"] = torch.tensor(0.0, dtype=torch.float32)
            state["exp_avg"] = torch.zeros_like(param)
            state["exp_avg_sq"] = torch.zeros_like(param)
        if group["maximize"]:
            grad = -grad
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if param.is_complex():
            param, grad, mean, square = as_real(param, grad, mean, square)
        step = count_step(state)
        lr = number(group["lr"])
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(param, alpha=group["weight_decay"])
        beta1, beta2 = group["betas"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        update = mean / (1 - beta1**step) * lr
        rectification = _rectification(beta2, step)
        if rectification is not None:
            inverse_root = square.sqrt().add_(group["eps"]).reciprocal() * (1 - beta2**step) ** 0.5
            update = update * inverse_root * rectification
        param.add_(update, alpha=-1.0)


def _rectification(beta2: float, step: float) -> float | None:
    """The rectification of the variance in step `step`, None while it is intractable (ρₜ ≤ 5)."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * (beta2**step) / (1 - beta2**step)
    if length <= 5.0:
        return None
    return math.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
