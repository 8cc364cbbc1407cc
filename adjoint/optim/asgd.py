"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .optimizer import Optimizer, Params, as_real, check_lr, check_not_negative, count_step, direction, number

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Stochastic gradient descent that also averages the parameters (Polyak and Juditsky, 1992).

    With gradient g (plus `weight_decay` times the parameter p) in step t:

        p ← (1 - lambd η) p - η g
        a ← a + μ (p - a)                                  (the average, `state["ax"]`)
        η ← lr / (1 + lambd lr t)^alpha,  μ ← 1 / max(1, t - t0)

    Args:
        params: parameters or groups of them.
        lr: the first η.
        lambd: the decay.
        alpha: the power of the learning rate's decay.
        t0: the step after which averaging begins.
        maximize: ascend instead.
        foreach, differentiable, capturable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for negative options.
    """

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        lr, lambd = number(group["lr"]), group["lambd"]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["eta"] = torch.tensor(lr, dtype=torch.float32)
            state["mu"] = torch.ones((), dtype=torch.float32)
            state["ax"] = torch.zeros_like(param)
        grad = direction(param, grad, group)
        average = state["ax"]
        if param.is_complex():
            param, grad, average = as_real(param, grad, average)
        step = count_step(state)
        eta, mu = state["eta"].item(), state["mu"].item()
        param.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        if mu == 1:
            average.copy_(param)
        else:
            average.add_(param.sub(average).mul_(mu))
        state["eta"].fill_(lr / ((1 + lambd * lr * step) ** group["alpha"]))
        state["mu"].fill_(1 / max(1, step - group["t0"]))
