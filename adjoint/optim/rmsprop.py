"""RMSprop."""

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

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Divides by a running root mean square of the gradient (Hinton, lecture 6 of "Neural Networks for ML", 2012).

    With gradient g (plus `weight_decay` times the parameter p):

        v ← alpha v + (1 - alpha) g²
        p ← p - lr g / (√v + eps)

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        alpha: how slowly v forgets.
        eps: added to the denominator.
        momentum: what is subtracted is kept and added again, times this.
        centered: subtract the squared running mean of g from v (Graves, 2013).
        maximize: ascend instead.
        capturable, foreach, differentiable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for negative options.
    """

    _later_options = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_eps(eps)
        check_not_negative(momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["square_avg"] = torch.zeros_like(param)
            if group["momentum"] > 0:
                state["momentum_buffer"] = torch.zeros_like(param)
            if group["centered"]:
                state["grad_avg"] = torch.zeros_like(param)
        state["step"].add_(1)
        grad = direction(param, grad, group)
        square, velocity, mean = state["square_avg"], state.get("momentum_buffer"), state.get("grad_avg")
        if param.is_complex():
            param, grad, square = as_real(param, grad, square)
            velocity = None if velocity is None else torch.view_as_real(velocity)
            mean = None if mean is None else torch.view_as_real(mean)
        alpha = group["alpha"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean.lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root.add_(group["eps"])
        if group["momentum"] > 0:
            velocity.mul_(group["momentum"]).addcdiv_(grad, root)
            param.add_(velocity, alpha=-number(group["lr"]))
        else:
            param.addcdiv_(grad, root, value=-number(group["lr"]))
