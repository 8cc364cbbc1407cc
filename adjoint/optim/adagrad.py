"""Adagrad."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .optimizer import (
    Optimizer,
    Params,
    as_real,
    check_eps,
    check_fused,
    check_lr,
    check_not_negative,
    count_step,
    direction,
    number,
)

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Divides by the root of the sum of all squared gradients so far (Duchi et al., 2011).

    With gradient g (plus `weight_decay` times the parameter p) in step t:

        s ← s + g²
        p ← p - lr / (1 + (t - 1) lr_decay) g / (√s + eps)

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        initial_accumulator_value: the first s.
        eps: added to the denominator.
        maximize: ascend instead.
        foreach, differentiable, fused: accepted; `differentiable` records the update.

    Raises:
        ValueError: for negative options.
    """

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
        )
        check_eps(eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                first: Any = group["initial_accumulator_value"]
                if param.is_complex():
                    first = complex(first, first)
                self.state[param]["step"] = torch.tensor(0.0, dtype=torch.float32)
                self.state[param]["sum"] = torch.full_like(param, first).detach()

    def share_memory(self) -> None:
        """Move the state to shared memory."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        step = count_step(state)
        total = state["sum"]
        grad = direction(param, grad, group)
        lr = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        if param.is_complex():
            param, grad, total = as_real(param, grad, total)
        total.addcmul_(grad, grad)
        param.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-lr)
