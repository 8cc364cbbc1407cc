"""Adam with Nesterov momentum."""

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
    number,
)

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """Adam with Nesterov momentum (Dozat, 2016).

    With gradient g (plus `weight_decay` times the parameter p unless decoupled) in step t:

        μₜ = β₁ (1 - 0.96^(t ψ) / 2), and M = μ₁ … μₜ
        m ← β₁ m + (1 - β₁) g
        v ← β₂ v + (1 - β₂) g²
        p ← p - lr ((1 - μₜ) / (1 - M) g + μₜ₊₁ / (1 - M μₜ₊₁) m) / (√(v / (1 - β₂ᵗ)) + eps)

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        betas: β₁ and β₂.
        momentum_decay: ψ.
        decoupled_weight_decay: decay the parameter itself, as AdamW.
        maximize: ascend instead.
        foreach, capturable, differentiable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for options out of range.
    """

    _later_options = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["step"] = torch.tensor(0.0, dtype=torch.float32)
            state["mu_product"] = torch.tensor(1.0, dtype=torch.float32)
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
        decay = group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        mu_product = state["mu_product"].mul_(mu).item()
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.div(1 - beta2**step).sqrt().add_(group["eps"])
        param.addcdiv_(grad, denominator, value=(-lr * (1.0 - mu) / (1.0 - mu_product)))
        param.addcdiv_(mean, denominator, value=(-lr * mu_next) / (1.0 - mu_product * mu_next))
