"""Adam and its variant with decoupled weight decay."""

from __future__ import annotations

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
    count_step,
    number,
)

__all__ = ["Adam", "AdamW"]


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

    def _new_state(self, param: torch.Tensor, amsgrad: bool) -> dict[str, Any]:
        state = {
            "step": torch.tensor(0.0, dtype=torch.float32),
            "exp_avg": torch.zeros_like(param),
            "exp_avg_sq": torch.zeros_like(param),
        }
        if amsgrad:
            state["max_exp_avg_sq"] = torch.zeros_like(param)
        return state

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
                state.update(self._new_state(param, amsgrad))
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
            state.update(self._new_state(param, group["amsgrad"]))
        beta1, beta2 = group["betas"]
        beta1, beta2 = number(beta1), number(beta2)
        lr = group["lr"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if group["maximize"]:
            grad = -grad
        step = count_step(state)
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(number(1 - lr * group["weight_decay"]))
            else:
                grad = grad.add(param, alpha=group["weight_decay"])
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
