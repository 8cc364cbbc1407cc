"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .optimizer import Optimizer, Params, as_real, check_lr, number

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Steps by the sign of the gradient, longer while it keeps its sign (Riedmiller and Braun, 1993).

    Args:
        params: parameters or groups of them.
        lr: the first step of each element.
        etas: what the step is multiplied by where the sign has changed, and where it has not.
        step_sizes: the smallest and the largest step.
        maximize: ascend instead.
        capturable, foreach, differentiable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for a negative rate, or unless `0 < etas[0] < 1 < etas[1]`.
    """

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            lr = number(group["lr"])
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["prev"] = torch.zeros_like(param)
            state["step_size"] = torch.full_like(grad, complex(lr, lr) if grad.is_complex() else lr)
        state["step"].add_(1)
        if group["maximize"]:
            grad = -grad
        previous, step_size = state["prev"], state["step_size"]
        if param.is_complex():
            param, grad, previous, step_size = as_real(param, grad, previous, step_size)
        shorter, longer = group["etas"]
        agreement = grad.mul(previous)
        changed = agreement < 0
        factor = torch.ones_like(agreement).masked_fill_(agreement > 0, longer).masked_fill_(changed, shorter)
        step_size.mul_(factor).clamp_(*group["step_sizes"])
        # Where the sign has changed the element stays, and the next step counts as a first one.
        grad = grad.masked_fill(changed, 0)
        param.addcmul_(grad.sign(), step_size, value=-1)
        previous.copy_(grad)
