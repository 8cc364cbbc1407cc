"""Stochastic gradient descent, with momentum or with averaging."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .declared import Batch, Declared, Given, direction, learning_rate, not_negative, number
from .optimizer import Params, scalar_dtype

__all__ = ["ASGD", "SGD"]


def _nesterov(given: Given) -> None:
    if given["nesterov"] and (given["momentum"] <= 0 or given["dampening"] != 0):
        raise ValueError("Nesterov momentum requires a momentum and zero dampening")


class SGD(Declared):
    """Stochastic gradient descent with momentum (Sutskever et al., 2013).

    The update with gradient g (plus `weight_decay` times the parameter p) and velocity v is::

        v ← momentum v + (1 - dampening) g        (v ← g in the first step)
        p ← p - lr v                              (p ← p - lr (g + momentum v) if `nesterov`)

    Args:
        lr: the learning rate.
        maximize, foreach, differentiable, fused: as in `Adam`.

    Raises:
        ValueError: if an option is negative, or if `nesterov` is used without momentum or with dampening.

    >>> import adjoint as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.], requires_grad=True)
    """

    _options = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
    _checks = (learning_rate, not_negative("momentum", "weight_decay"), _nesterov)
    _later_options = {"fused": False}
    _rounds_once = True
    _takes_sparse = True
    _counts_steps = False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        numbers = {name: number(group[name]) for name in ("lr", "momentum", "dampening", "weight_decay")}
        return {**numbers, "nesterov": group["nesterov"], "maximize": group["maximize"], "is_first_step": False}

    def _batches(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> Iterator[Batch]:
        options = SimpleNamespace(**self._numbers(group, 0, {}))
        if group["momentum"] == 0:
            yield options, [params, grads]
            return
        pairs = list(zip(params, grads, strict=True))
        later = [pair for pair in pairs if self.state[pair[0]].get("momentum_buffer") is not None]
        first = pairs if not later else [pair for pair in pairs if self.state[pair[0]].get("momentum_buffer") is None]
        for param, grad in first:
            self.state[param]["momentum_buffer"] = torch.empty_like(grad)
        for some, is_first_step in ((later, False), (first, True)):
            if some:
                velocities = [self.state[param]["momentum_buffer"] for param, _ in some]
                options.is_first_step = is_first_step
                yield options, [*map(list, zip(*some, strict=True)), velocities]

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, velocity: Any = None) -> None:
        grad = direction(xp, options, param, grad)
        if velocity is not None:
            if options.is_first_step:
                xp.copy_(velocity, grad)
            else:
                xp.mul_(velocity, options.momentum)
                xp.add_(velocity, grad * (1 - options.dampening) if options.dampening else grad)
            grad = grad + velocity * options.momentum if options.nesterov else velocity
        xp.add_(param, grad * -options.lr)


class ASGD(Declared):
    """Stochastic gradient descent that also averages the parameters (Polyak and Juditsky, 1992).

    The update with gradient g (plus `weight_decay` times the parameter p) in step t is::

        p ← (1 - lambd η) p - η g
        a ← a + μ (p - a)                                  (the average, `state["ax"]`)
        η ← lr / (1 + lambd lr t)^alpha,  μ ← 1 / max(1, t - t0)

    Args:
        lr: the initial value of η.
        lambd: the decay rate.
        alpha: the exponent of the learning rate's decay.
        t0: the step after which averaging begins.
        maximize, foreach, differentiable, capturable: as in `Adam`.
    """

    _options = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
    _checks = (learning_rate, not_negative("weight_decay"))
    _later_tensors = ("step", "eta", "mu")
    _captured = "params, mus, etas, and state_steps", "params, mus, etas, and state_steps"
    _state = ("ax",)
    _own_numbers = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _start(self, state: dict[str, Any], param: Tensor, group: dict[str, Any]) -> None:
        dtype = scalar_dtype(group)
        state["step"] = torch.zeros((), dtype=dtype)
        state["eta"] = torch.as_tensor(number(group["lr"]), dtype=dtype)
        state["mu"] = torch.ones((), dtype=dtype)
        state["ax"] = torch.zeros_like(param)

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        lr, lambd, alpha = (number(group[name]) for name in ("lr", "lambd", "alpha"))
        eta, mu = number(state["eta"]), number(state["mu"])
        state["eta"].fill_(lr / ((1 + lambd * lr * step) ** alpha))
        state["mu"].fill_(1 / max(1, step - group["t0"]))
        return {
            "maximize": group["maximize"],
            "weight_decay": number(group["weight_decay"]),
            "shrink": 1 - lambd * eta,
            "eta": eta,
            "mu": mu,
        }

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, average: Any) -> None:
        grad = direction(xp, options, param, grad)
        xp.mul_(param, options.shrink)
        xp.add_(param, grad, alpha=-options.eta)
        if options.mu == 1:
            xp.copy_(average, param)
        else:
            xp.add_(average, (param - average) * options.mu)
