"""`SparseAdam`, for sparse gradients."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .declared import decay_rates, learning_rate, number
from .optimizer import Optimizer, Params

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam (Kingma and Ba, 2015) for sparse gradients. It updates only the moments of elements that a gradient stores.

    Args:
        params: dense parameters with sparse gradients, or groups of them.
        lr: the learning rate.
        betas: the decay rates of the two moments.
        eps: a number that is added to the denominator.
        maximize: whether to maximize the loss.

    Raises:
        ValueError: if an option is out of range, or if a parameter is sparse.

    >>> import adjoint as torch
    >>> table = torch.nn.Embedding(3, 1, sparse=True)
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(torch.tensor([0, 2])).sum().backward()
    >>> optimizer.step()
    >>> optimizer.state[table.weight]["exp_avg"].flatten()
    tensor([0.1000, 0.0000, 0.1000])
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor):
            learning_rate({"lr": lr})
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        decay_rates({"betas": betas})
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for kind, words in (
            ("Sparse", "requires dense parameter tensors"),
            ("Complex", "does not support complex parameters"),
        ):
            places = [
                [place, index]
                for place, group in enumerate(self.param_groups)
                for index, param in enumerate(group["params"])
                if (param.is_sparse if kind == "Sparse" else param.is_complex())
            ]
            if places:
                raise ValueError(f"{kind} params at indices {places}: SparseAdam {words}")

    def _update_group(self, group: dict[str, Any]) -> None:
        grads = self._gradients(group)
        if any(grad is not None and not grad.is_sparse for grad in grads):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        for param, grad in zip(group["params"], grads, strict=True):
            if grad is None:
                continue
            state = self.state[param]
            if not state:
                state["step"] = 0
                state["exp_avg"] = torch.zeros_like(param, memory_format=torch.preserve_format)
                state["exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)
            state["step"] += 1
            _update(group, param, grad, state)


def _update(group: dict[str, Any], param: Tensor, grad: Any, state: dict[str, Any]) -> None:
    """Change the moments and the parameter at the elements that the gradient stores."""
    grad = (-grad if group.get("maximize") else grad).coalesce()
    places, values, size = grad.indices(), grad.values(), grad.shape
    if not values.numel():
        return
    (first, second), step = group["betas"], state["step"]
    moments = []
    for name, beta, target in (("exp_avg", first, values), ("exp_avg_sq", second, values.pow(2))):
        old = state[name].sparse_mask(grad)._values()
        change = (target - old).mul_(1 - beta)
        state[name].add_(torch.sparse_coo_tensor(places, change, size))
        moments.append(change.add_(old))
    mean, square = moments
    rate = number(group["lr"]) * math.sqrt(1 - second**step) / (1 - first**step)
    update = mean.div_(square.sqrt_().add_(group["eps"])).mul_(-rate)
    param.add_(torch.sparse_coo_tensor(places, update, size))
