"""Optimizers that scale the step of each element by its past gradients."""

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
    start,
)

__all__ = ["Adadelta", "Adagrad", "RMSprop", "Rprop"]


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
            start(state, param, "square_avg", "acc_delta")
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
                start(self.state[param], param)
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
            start(state, param, "square_avg")
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
            start(state, param, "prev")
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
