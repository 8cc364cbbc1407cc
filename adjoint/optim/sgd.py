"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .optimizer import Optimizer, Params, check_fused, check_lr, check_not_negative, direction, number

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al., 2013).

    With gradient g (plus `weight_decay` times the parameter p) and velocity v:

        v ← momentum v + (1 - dampening) g        (v ← g in the first step)
        p ← p - lr v                              (p ← p - lr (g + momentum v) if `nesterov`)

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        maximize: ascend instead.
        foreach, differentiable, fused: accepted; `differentiable` records the update.

    Raises:
        ValueError: for negative options, or `nesterov` without momentum or with dampening.

    >>> import adjoint as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.], requires_grad=True)
    """

    _later_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | torch.Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _update_group(self, group: dict[str, Any]) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        momentum = group["momentum"]
        started = [param for param in params if momentum != 0 and "momentum_buffer" in self.state[param]]
        if group["differentiable"] or (started and len(started) < len(params)) or any(p.is_complex() for p in params):
            super()._update_group(group)
            return
        first = momentum != 0 and not started
        if first:
            for param in params:
                self.state[param]["momentum_buffer"] = torch.empty_like(param)
        torch._fused_sgd_(
            params,
            [param.grad for param in params],
            [self.state[param]["momentum_buffer"] for param in params] if momentum != 0 else [],
            weight_decay=group["weight_decay"],
            momentum=momentum,
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first_step=first,
        )

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        momentum = group["momentum"]
        if group["maximize"] or group["weight_decay"] != 0:
            grad = direction(param, grad, group)
        if momentum != 0:
            state = self.state[param]
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.detach().clone()
            else:
                dampening = group["dampening"]
                velocity.mul_(momentum).add_(grad * (1 - dampening) if dampening else grad)
            grad = grad + velocity * momentum if group["nesterov"] else velocity
        param.sub_(grad * number(group["lr"]))
