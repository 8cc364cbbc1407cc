"""Stochastic gradient descent, with momentum or averaged."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .optimizer import (
    Optimizer,
    Params,
    as_real,
    check_fused,
    check_lr,
    check_not_negative,
    count_step,
    direction,
    number,
)

__all__ = ["ASGD", "SGD"]


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
