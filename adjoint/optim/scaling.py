"""Optimizers that scale the step of each element by its past gradients."""

from __future__ import annotations

from typing import Any, cast

import adjoint as torch
from adjoint import Tensor

from .declared import Declared, Given, direction, epsilon, learning_rate, not_negative, number
from .optimizer import Params, scalar_dtype

__all__ = ["Adadelta", "Adagrad", "RMSprop", "Rprop"]


def _rho(given: Given) -> None:
    if not 0.0 <= given["rho"] <= 1.0:
        raise ValueError(f"Invalid rho value: {given['rho']}")


class Adadelta(Declared):
    """Scales the gradient by the ratio of the running root mean squares of updates and gradients (Zeiler, 2012).

    The update with gradient g (plus `weight_decay` times the parameter p) is::

        v ← rho v + (1 - rho) g²
        d = √(u + eps) / √(v + eps) g
        u ← rho u + (1 - rho) d²
        p ← p - lr d

    Args:
        lr: the learning rate.
        rho: the decay rate of the averages, between 0 and 1.
        maximize, foreach, differentiable, capturable: as in `Adam`.
    """

    _options = "lr rho eps weight_decay maximize capturable foreach differentiable"
    _checks = (learning_rate, _rho, epsilon, not_negative("weight_decay"))
    _state = ("square_avg", "acc_delta")
    _xla_captures = False, False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        return {name: number(group[name]) for name in ("lr", "rho", "eps", "weight_decay", "maximize")}

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, square: Any, update: Any) -> None:
        rho, eps = options.rho, options.eps
        grad = direction(xp, options, param, grad)
        xp.mul_(square, rho)
        xp.addcmul_(square, grad, grad, value=1 - rho)
        delta = xp.sqrt(update + eps) / xp.sqrt(square + eps) * grad
        xp.mul_(update, rho)
        xp.addcmul_(update, delta, delta, value=1 - rho)
        xp.add_(param, delta, alpha=-options.lr)


class Adagrad(Declared):
    """Divides the gradient by the root of the sum of all squared gradients so far (Duchi et al., 2011).

    The update with gradient g (plus `weight_decay` times the parameter p) in step t is::

        s ← s + g²
        p ← p - lr / (1 + (t - 1) lr_decay) g / (√s + eps)

    Args:
        lr: the learning rate.
        initial_accumulator_value: the initial value of s.
        eps: a number that is added to the denominator.
        maximize, foreach, differentiable, fused: as in `Adam`.
    """

    _options = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
    _checks = (learning_rate, not_negative("lr_decay", "weight_decay", "initial_accumulator_value"), epsilon)
    _state = ("sum",)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
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
        super().__init__(params, locals())
        for group in self.param_groups:
            for param in group["params"]:
                first: Any = initial_accumulator_value
                if param.is_complex():
                    first = complex(first, first)
                self.state[param].update(
                    step=torch.zeros((), dtype=scalar_dtype(group)), sum=torch.full_like(param, first).detach()
                )

    def share_memory(self) -> None:
        """Move the state to shared memory."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    _takes_sparse = True

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        return {
            "maximize": group["maximize"],
            "weight_decay": number(group["weight_decay"]),
            "eps": group["eps"],
            "lr": number(group["lr"]) / (1 + (step - 1) * group["lr_decay"]),
        }

    def _check_layouts(self, params: list[Tensor], grads: list[Any]) -> None:
        if any(grad.is_sparse and self._decay_of(param) != 0 for param, grad in zip(params, grads, strict=True)):
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")

    def _decay_of(self, param: Tensor) -> Any:
        groups = (group for group in self.param_groups if any(each is param for each in group["params"]))
        return next(groups)["weight_decay"]

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, total: Any) -> None:
        if isinstance(grad, Tensor) and grad.is_sparse:
            _update_stored(options, param, grad, total)
            return
        grad = direction(xp, options, param, grad)
        xp.addcmul_(total, grad, grad)
        xp.addcdiv_(param, grad, xp.sqrt(total) + options.eps, value=-options.lr)


def _update_stored(options: Any, param: Any, grad: Any, total: Any) -> None:
    """Apply Adagrad's update for a sparse gradient to the elements that the gradient stores."""
    grad = (-grad if options.maximize else grad).coalesce()
    places, values, size = grad.indices(), grad.values(), grad.shape
    if values.numel():
        total.add_(torch.sparse_coo_tensor(places, values.pow(2), size))
        root = total.sparse_mask(grad)._values().sqrt().add_(options.eps)
        param.add_(torch.sparse_coo_tensor(places, values / root, size), alpha=-options.lr)


class RMSprop(Declared):
    """Divides the gradient by its running root mean square (Hinton, lecture 6 of "Neural Networks for ML", 2012).

    The update with gradient g (plus `weight_decay` times the parameter p) is::

        v ← alpha v + (1 - alpha) g²
        p ← p - lr g / (√v + eps)

    Args:
        lr: the learning rate.
        alpha: the decay rate of v.
        eps: a number that is added to the denominator.
        momentum: each update also adds the previous update, multiplied by this factor.
        centered: whether to subtract the squared running mean of g from v (Graves, 2013).
        maximize, foreach, differentiable, capturable: as in `Adam`.
    """

    _later_options = {"momentum": 0}
    _options = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    _checks = (learning_rate, epsilon, not_negative("momentum", "weight_decay", "alpha"))
    _state = ("square_avg",)
    _xla_captures = True, True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
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
        super().__init__(params, locals())

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        momentum = ("momentum_buffer",) if group["momentum"] > 0 else ()
        return (*self._state, *momentum, *(("grad_avg",) if group["centered"] else ()))

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        names = ("lr", "alpha", "eps", "weight_decay", "momentum", "maximize", "centered")
        return {name: number(group[name]) for name in names}

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, square: Any, *others: Any) -> None:
        alpha = options.alpha
        grad = direction(xp, options, param, grad)
        xp.mul_(square, alpha)
        xp.addcmul_(square, grad, grad, value=1 - alpha)
        if options.centered:
            mean = others[-1]
            xp.lerp_(mean, grad, 1 - alpha)
            square = xp.clone(square)
            xp.addcmul_(square, mean, mean, value=-1)
        root = xp.sqrt(square) + options.eps
        if options.momentum > 0:
            velocity = others[0]
            xp.mul_(velocity, options.momentum)
            xp.addcdiv_(velocity, grad, root)
            xp.add_(param, velocity, alpha=-options.lr)
        else:
            xp.addcdiv_(param, grad, root, value=-options.lr)


def _etas(given: Given) -> None:
    shorter, longer = given["etas"]
    if not 0.0 < shorter < 1.0 < longer:
        raise ValueError(f"Invalid eta values: {shorter}, {longer}")


class Rprop(Declared):
    """Steps by the sign of the gradient. The step grows while the sign stays the same (Riedmiller and Braun, 1993).

    Args:
        lr: the first step size of each element.
        etas: the factors of the step size for a changed sign and for an unchanged sign.
        step_sizes: the smallest and the largest step size.
        maximize, foreach, differentiable, capturable: as in `Adam`.

    Raises:
        ValueError: if the rate is negative, or if `0 < etas[0] < 1 < etas[1]` is false.
    """

    _options = "lr etas step_sizes foreach maximize differentiable capturable"
    _checks = (learning_rate, _etas)
    _state = ("prev", "step_size")
    _xla_captures = True, True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _start(self, state: dict[str, Any], param: Tensor, group: dict[str, Any]) -> None:
        state["step"] = torch.zeros((), dtype=scalar_dtype(group))
        state["prev"] = torch.zeros_like(param)
        state["step_size"] = size = torch.zeros_like(cast(Any, param.grad))
        (torch.view_as_real(size) if size.is_complex() else size).fill_(number(group["lr"]))

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        shorter, longer = group["etas"]
        least, most = group["step_sizes"]
        return {"maximize": group["maximize"], "shorter": shorter, "longer": longer, "least": least, "most": most}

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, previous: Any, step_size: Any) -> None:
        if options.maximize:
            grad = -grad
        agreement = grad * previous
        changed = agreement < 0
        factor = xp.masked_fill(xp.new_ones(agreement, agreement.shape), agreement > 0, options.longer)
        xp.mul_(step_size, xp.masked_fill(factor, changed, options.shorter))
        xp.clamp_(step_size, options.least, options.most)
        # If the sign has changed, the element keeps its value, and the next step counts as a first step.
        grad = xp.masked_fill(grad, changed, 0)
        xp.addcmul_(param, xp.sign(grad), step_size, value=-1)
        xp.copy_(previous, grad)
