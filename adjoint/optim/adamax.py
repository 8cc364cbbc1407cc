"""Adamax."""

from __future__ import annotations

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
    direction,
    number,
)

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Adam with the maximum norm (Kingma and Ba, 2015, section 7.1).

    With gradient g (plus `weight_decay` times the parameter p) in step t:

        m ← β₁ m + (1 - β₁) g
        u ← max(β₂ u, |g| + eps)
        p ← p - lr / (1 - β₁ᵗ) m / u

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        betas: β₁ and β₂.
        maximize: ascend instead.
        foreach, differentiable, capturable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for options out of range.
    """

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
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
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["step"] = torch.tensor(0.0, dtype=torch.float32)
            state["exp_avg"] = torch.zeros_like(param)
            state["exp_inf"] = torch.zeros_like(param)
        step = count_step(state)
        grad = direction(param, grad, group)
        mean, largest = state["exp_avg"], state["exp_inf"]
        if param.is_complex():
            param, grad, mean, largest = as_real(param, grad, mean, largest)
        beta1, beta2 = group["betas"]
        mean.lerp_(grad, 1 - beta1)
        torch.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"]), out=largest)
        param.addcdiv_(mean, largest, value=-number(group["lr"]) / (1 - beta1**step))
