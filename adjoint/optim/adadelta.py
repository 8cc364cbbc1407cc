"""Adadelta."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .optimizer import (
    Optimizer,
    Params,
    as_real,
    check_eps,
    check_lr,
    check_not_negative,
    direction,
    number,
)

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Scales by the ratio of running root mean squares of updates and gradients (Zeiler, 2012).

    With gradient g (plus `weight_decay` times the parameter p):

        v ← rho v + (1 - rho) g²
        d = √(u + eps) / √(v + eps) g
        u ← rho u + (1 - rho) d²
        p ← p - lr d

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        rho: how slowly the averages forget, between 0 and 1.
        maximize: ascend instead.
        foreach, capturable, differentiable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for options out of range.
    """

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_eps(eps)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["square_avg"] = torch.zeros_like(param)
            state["acc_delta"] = torch.zeros_like(param)
        state["step"].add_(1)
        grad = direction(param, grad, group)
        square, update = state["square_avg"], state["acc_delta"]
        if param.is_complex():
            param, grad, square, update = as_real(param, grad, square, update)
        rho, eps = group["rho"], group["eps"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = update.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        update.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-number(group["lr"]))
