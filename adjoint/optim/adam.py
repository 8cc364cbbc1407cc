"""Adam and its variants."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .declared import (
    Declared,
    Given,
    decay_rates,
    decayed,
    decays,
    direction,
    epsilon,
    learning_rate,
    not_negative,
    number,
)
from .optimizer import Params, scalar_dtype

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


def _in_lists(given: Given) -> bool:
    return bool(given["foreach"]) and not given["capturable"]


def _rate_in_lists(given: Given) -> None:
    if isinstance(given["lr"], Tensor) and _in_lists(given):
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")


def _both_betas(given: Given) -> None:
    first, second = given["betas"]
    if isinstance(first, Tensor) != isinstance(second, Tensor):
        raise ValueError("betas must be either both floats or both Tensors")
    if isinstance(first, Tensor) and _in_lists(given):
        raise ValueError("betas[0] as a Tensor is not supported for capturable=False and foreach=True")


class Adam(Declared):
    """Adaptive moment estimation (Kingma and Ba, 2015).

    The update with gradient g (plus `weight_decay` times the parameter p unless decoupled) in step t is::

        m ← β₁ m + (1 - β₁) g
        v ← β₂ v + (1 - β₂) g²
        p ← p - lr (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + eps)

    Args:
        params: parameters, or groups of parameters.
        lr: the learning rate.
        betas: β₁ and β₂.
        eps: a number that is added to the denominator.
        amsgrad: whether to use the largest v so far (Reddi et al., 2018).
        maximize: whether to maximize the loss.
        decoupled_weight_decay: whether to decay the parameter itself (AdamW).
        foreach, differentiable, fused: accepted. `differentiable` records the update.
        capturable: must be False. Otherwise a step raises AssertionError, because CUDA graphs do not exist on a CPU.

    Raises:
        ValueError: if an option is out of range.
    """

    _sparse_advice = ", please consider SparseAdam instead"
    _options = (
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"
    )
    _checks = (_rate_in_lists, learning_rate, epsilon, _both_betas, decay_rates, not_negative("weight_decay"))
    _state = ("exp_avg", "exp_avg_sq")
    _rounds_once = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
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
        super().__init__(params, locals())

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return (*self._state, "max_exp_avg_sq") if group["amsgrad"] else self._state

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        lr = group["lr"]
        beta1, beta2 = map(number, group["betas"])
        return {
            **decays(group, lr),
            "beta1": beta1,
            "beta2": beta2,
            "eps": number(group["eps"]),
            "root": (1 - beta2**step) ** 0.5,
            "size": number(lr / (1 - beta1**step)),
        }

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, mean: Any, square: Any, largest: Any = None) -> None:
        grad = decayed(xp, options, param, grad)
        xp.lerp_(mean, grad, 1 - options.beta1)
        xp.mul_(square, options.beta2)
        xp.addcmul_(square, grad, grad, value=1 - options.beta2)
        if largest is not None:
            xp.copy_(largest, xp.maximum(largest, square))
            square = largest
        denominator = xp.sqrt(square) / options.root
        denominator += options.eps
        xp.addcdiv_(param, mean, denominator, value=-options.size)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019). Each step starts with p ← (1 - lr weight_decay) p.

    For the arguments, see `Adam`.
    """

    _later_options = {"decoupled_weight_decay": True}

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
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
        Declared.__init__(self, params, {**locals(), "decoupled_weight_decay": True})

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # A state that another Adam has saved decays as in AdamW.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class Adamax(Declared):
    """Adam with the maximum norm (Kingma and Ba, 2015, section 7.1).

    The update with gradient g (plus `weight_decay` times the parameter p) in step t is::

        m ← β₁ m + (1 - β₁) g
        u ← max(β₂ u, |g| + eps)
        p ← p - lr / (1 - β₁ᵗ) m / u

    Args:
        lr: the learning rate.
        betas: β₁ and β₂.
        maximize, foreach, differentiable, capturable: as in `Adam`.
    """

    _options = "lr betas eps weight_decay foreach maximize differentiable capturable"
    _checks = (learning_rate, epsilon, decay_rates, not_negative("weight_decay"))
    _state = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        return {
            "maximize": group["maximize"],
            "weight_decay": number(group["weight_decay"]),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "size": number(group["lr"]) / (1 - beta1**step),
        }

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, mean: Any, largest: Any) -> None:
        grad = direction(xp, options, param, grad)
        xp.lerp_(mean, grad, 1 - options.beta1)
        xp.mul_(largest, options.beta2)
        xp.copy_(largest, xp.maximum(largest, xp.abs(grad) + options.eps))
        xp.addcdiv_(param, mean, largest, value=-options.size)


class NAdam(Declared):
    """Adam with Nesterov momentum (Dozat, 2016).

    The update with gradient g (plus `weight_decay` times the parameter p unless decoupled) in step t is::

        μₜ = β₁ (1 - 0.96^(t ψ) / 2), and M = μ₁ … μₜ
        m ← β₁ m + (1 - β₁) g
        v ← β₂ v + (1 - β₂) g²
        p ← p - lr ((1 - μₜ) / (1 - M) g + μₜ₊₁ / (1 - M μₜ₊₁) m) / (√(v / (1 - β₂ᵗ)) + eps)

    Args:
        lr: the learning rate.
        betas: β₁ and β₂.
        momentum_decay: ψ.
        decoupled_weight_decay: whether to decay the parameter itself, as AdamW does.
        maximize, foreach, differentiable, capturable: as in `Adam`.
    """

    _options = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable"
    )
    _checks = (learning_rate, epsilon, decay_rates, not_negative("weight_decay", "momentum_decay"))
    _later_tensors = ("step", "mu_product")
    _captured = "params, mu_products and state_steps", "params, mu_products, and state_steps"
    _state = ("exp_avg", "exp_avg_sq")
    _own_numbers = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
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
        super().__init__(params, locals())

    def _start(self, state: dict[str, Any], param: Tensor, group: dict[str, Any]) -> None:
        state["step"] = torch.zeros((), dtype=scalar_dtype(group))
        state["mu_product"] = torch.ones((), dtype=scalar_dtype(group))
        state["exp_avg"] = torch.zeros_like(param)
        state["exp_avg_sq"] = torch.zeros_like(param)

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        lr, decay = number(group["lr"]), number(group["momentum_decay"])
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        mu_product = number(state["mu_product"].mul_(mu))
        return {
            **decays(group, lr),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "correction": 1 - beta2**step,
            "grad_size": lr * (1.0 - mu) / (1.0 - mu_product),
            "mean_size": lr * mu_next / (1.0 - mu_product * mu_next),
        }

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, mean: Any, square: Any) -> None:
        grad = decayed(xp, options, param, grad)
        xp.lerp_(mean, grad, 1 - options.beta1)
        xp.mul_(square, options.beta2)
        xp.addcmul_(square, grad, grad, value=1 - options.beta2)
        denominator = xp.sqrt(square / options.correction) + options.eps
        xp.addcdiv_(param, grad, denominator, value=-options.grad_size)
        xp.addcdiv_(param, mean, denominator, value=-options.mean_size)


class RAdam(Declared):
    """Adam with a rectified step in the first iterations, when few gradients are known (Liu et al., 2020).

    It works like Adam, with ρ∞ = 2 / (1 - β₂) - 1 and ρₜ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ). If ρₜ > 5, the step is multiplied
    by √((ρₜ - 4)(ρₜ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρₜ)). Otherwise, the step is not divided by the root of v.

    Args:
        lr: the learning rate.
        betas: β₁ and β₂.
        decoupled_weight_decay: whether to decay the parameter itself, as AdamW does.
        maximize, foreach, differentiable, capturable: as in `Adam`.
    """

    _options = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
    _checks = (learning_rate, epsilon, decay_rates, not_negative("weight_decay"))
    _state = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
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
        super().__init__(params, locals())

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        lr = number(group["lr"])
        return {
            **decays(group, lr),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "lr": lr,
            "correction": 1 - beta1**step,
            "root": (1 - beta2**step) ** 0.5,
            "rectification": _rectification(beta2, step),
        }

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, mean: Any, square: Any) -> None:
        grad = decayed(xp, options, param, grad)
        xp.lerp_(mean, grad, 1 - options.beta1)
        xp.mul_(square, options.beta2)
        xp.addcmul_(square, grad, grad, value=1 - options.beta2)
        update = mean / options.correction * options.lr
        if options.rectification is not None:
            inverse_root = xp.reciprocal(xp.sqrt(square) + options.eps) * options.root
            update = update * inverse_root * options.rectification
        xp.add_(param, update, alpha=-1.0)


def _rectification(beta2: float, step: float) -> float | None:
    """Return the rectification of the variance in step `step`, or None while the variance is intractable (ρₜ ≤ 5)."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * (beta2**step) / (1 - beta2**step)
    if length <= 5.0:
        return None
    return ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
