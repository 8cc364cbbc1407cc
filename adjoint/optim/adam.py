"""Adam and its relatives."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch

from .optimizer import (
    Optimizer,
    Params,
    as_real,
    check_betas,
    check_eps,
    check_fused,
    check_lr,
    check_not_negative,
    count_step,
    decayed,
    direction,
    number,
    start,
)

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


class Adam(Optimizer):
    """Adaptive moment estimation (Kingma and Ba, 2015).

    With gradient g (plus `weight_decay` times the parameter p unless decoupled) in step t:

        m ← β₁ m + (1 - β₁) g
        v ← β₂ v + (1 - β₂) g²
        p ← p - lr (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + eps)

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        betas: β₁ and β₂.
        eps: added to the denominator.
        amsgrad: use the largest v so far (Reddi et al., 2018).
        maximize: ascend instead.
        decoupled_weight_decay: decay the parameter itself (AdamW).
        foreach, capturable, differentiable, fused: accepted; `differentiable` records the update.

    Raises:
        ValueError: for options out of range.
    """

    _later_options = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr, foreach, capturable)
        check_eps(eps)
        if isinstance(betas[0], torch.Tensor) != isinstance(betas[1], torch.Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        if isinstance(betas[0], torch.Tensor) and foreach and not capturable:
            raise ValueError("betas[0] as a Tensor is not supported for capturable=False and foreach=True")
        check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _update_group(self, group: dict[str, Any]) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        betas = group["betas"]
        tensor_options = any(isinstance(option, torch.Tensor) for option in (group["lr"], *betas))
        if group["differentiable"] or tensor_options or any(param.is_complex() for param in params):
            super()._update_group(group)
            return
        amsgrad = group["amsgrad"]
        states = [self.state[param] for param in params]
        for param, state in zip(params, states, strict=True):
            if not state:
                start(state, param, *_averages(amsgrad))
            state["step"].add_(1)
        step = torch._fused_adamw_ if group["decoupled_weight_decay"] else torch._fused_adam_
        step(
            params,
            [param.grad for param in params],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if amsgrad else [],
            [state["step"] for state in states],
            lr=group["lr"],
            beta1=betas[0],
            beta2=betas[1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=amsgrad,
            maximize=group["maximize"],
        )

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            start(state, param, *_averages(group["amsgrad"]))
        beta1, beta2 = group["betas"]
        beta1, beta2 = number(beta1), number(beta2)
        lr = group["lr"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if group["maximize"]:
            grad = -grad
        step = count_step(state)
        grad = decayed(param, grad, group, lr)
        largest = state["max_exp_avg_sq"] if group["amsgrad"] else None
        if param.is_complex():
            param, grad, mean, square = as_real(param, grad, mean, square)
            if largest is not None:
                (largest,) = as_real(largest)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if largest is not None:
            torch.maximum(largest, square, out=largest)
            square = largest
        denominator = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        param.addcdiv_(mean, denominator, value=-number(lr / (1 - beta1**step)))


def _averages(amsgrad: bool) -> tuple[str, ...]:
    """What `Adam` keeps of each parameter."""
    return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019): p ← (1 - lr weight_decay) p first.

    The arguments are those of `Adam`.
    """

    _later_options = {**Adam._later_options, "decoupled_weight_decay": True}

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # A state of another Adam loaded here decays as AdamW does.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


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
            start(state, param, "exp_avg", "exp_inf")
        step = count_step(state)
        grad = direction(param, grad, group)
        mean, largest = state["exp_avg"], state["exp_inf"]
        if param.is_complex():
            param, grad, mean, largest = as_real(param, grad, mean, largest)
        beta1, beta2 = group["betas"]
        mean.lerp_(grad, 1 - beta1)
        torch.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"]), out=largest)
        param.addcdiv_(mean, largest, value=-number(group["lr"]) / (1 - beta1**step))


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
        grad = decayed(param, grad, group, lr)
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


class RAdam(Optimizer):
    """Adam whose step is rectified while few gradients are known (Liu et al., 2020).

    As Adam, but with ρ∞ = 2 / (1 - β₂) - 1 and ρₜ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ) the step is multiplied by
    √((ρₜ - 4)(ρₜ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρₜ)) where ρₜ > 5, and not divided by the root of v before.

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        betas: β₁ and β₂.
        decoupled_weight_decay: decay the parameter itself, as AdamW.
        maximize: ascend instead.
        foreach, capturable, differentiable: accepted; `differentiable` records the update.

    Raises:
        ValueError: for options out of range.
    """

    _later_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, param: torch.Tensor, grad: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            start(state, param, "exp_avg", "exp_avg_sq")
        if group["maximize"]:
            grad = -grad
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if param.is_complex():
            param, grad, mean, square = as_real(param, grad, mean, square)
        step = count_step(state)
        lr = number(group["lr"])
        grad = decayed(param, grad, group, lr)
        beta1, beta2 = group["betas"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        update = mean / (1 - beta1**step) * lr
        rectification = _rectification(beta2, step)
        if rectification is not None:
            inverse_root = square.sqrt().add_(group["eps"]).reciprocal() * (1 - beta2**step) ** 0.5
            update = update * inverse_root * rectification
        param.add_(update, alpha=-1.0)


def _rectification(beta2: float, step: float) -> float | None:
    """The rectification of the variance in step `step`, None while it is intractable (ρₜ ≤ 5)."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * (beta2**step) / (1 - beta2**step)
    if length <= 5.0:
        return None
    return math.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
