"""Optimizers that treat parameters as matrices: `Adafactor` and `Muon`."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .declared import Declared
from .optimizer import Params, scalar_dtype

__all__ = ["Adafactor", "Muon"]


def _check_learning_rate(lr: Any) -> None:
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Learning rate should be >= 0 but is: {lr}")


class Adafactor(Declared):
    """Scales gradients by a second moment that is stored only for rows and columns (Shazeer and Stern, 2018).

    Args:
        lr: the largest relative step size. In step t, it is also at most `1 / sqrt(t)`.
        beta2_decay: the decay rate of the second moment in step t is `1 - t ** beta2_decay`.
        eps: a lower bound of the second moment (the machine epsilon if None), and of the root mean square of parameters.
        d: the largest root mean square of an update.
        weight_decay: the rate of the decoupled weight decay.
        foreach: has no effect.
        maximize: ascend.
    """

    _options = "lr beta2_decay eps d weight_decay foreach maximize"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check_learning_rate(lr)
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, locals())

    def _update_group(self, group: dict[str, Any]) -> None:
        lr = float(group["lr"])
        for param, grad in zip(group["params"], self._gradients(group), strict=True):
            if grad is None:
                continue
            if grad.is_sparse:
                raise RuntimeError("Adafactor does not support sparse gradients")
            if param.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            if group["maximize"]:
                grad = -grad
            state = self._started(param, group)
            state["step"] += 1
            step = state["step"].item()
            epsilon, least = group["eps"]
            epsilon = torch.finfo(param.dtype).eps if epsilon is None else epsilon
            share = step ** group["beta2_decay"]
            size = math.sqrt(param.numel())
            rate = max(least, param.norm(2).item() / size) * min(lr, 1 / math.sqrt(step))
            if group["weight_decay"] != 0:
                param.mul_(1 - lr * group["weight_decay"])
            moment = self._moment(state, grad, share, epsilon)
            update = moment.clamp_(min=epsilon * epsilon).rsqrt_().mul_(grad)
            limit = max(1.0, update.norm(2).item() / (size * group["d"]))
            param.add_(update, alpha=-rate / limit)

    def _started(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter. It is initially zero."""
        state = self.state[param]
        if not state:
            state["step"] = torch.zeros((), dtype=scalar_dtype(group))
            if param.dim() > 1:
                state["row_var"] = param.new_zeros([*param.shape[:-1], 1])
                state["col_var"] = param.new_zeros([*param.shape[:-2], 1, param.shape[-1]])
            else:
                state["variance"] = torch.zeros_like(param)
        return state

    @staticmethod
    def _moment(state: dict[str, Any], grad: Tensor, share: float, epsilon: float) -> Tensor:
        """Return the estimate of the second moment after this gradient."""
        if grad.dim() < 2:
            found: Tensor = state["variance"].lerp_(grad * grad, share).clone()
            return found
        rows, columns = state["row_var"], state["col_var"]
        rows.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1)), share)
        columns.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2)), share)
        return (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=epsilon))


def _orthogonalized(grad: Tensor, coefficients: Any, steps: int, eps: float) -> Tensor:
    """Return a matrix near `U @ V.T` of the singular value decomposition of `grad`, by Newton-Schulz iteration in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    matrix = grad.bfloat16()
    tall = grad.size(0) > grad.size(1)
    if tall:
        matrix = matrix.T
    matrix = matrix / matrix.norm().clamp(min=eps)
    for _ in range(steps):
        gram = matrix @ matrix.T
        matrix = torch.addmm(matrix, torch.addmm(gram, gram, gram, beta=b, alpha=c), matrix, beta=a)
    return matrix.T if tall else matrix


class Muon(Declared):
    """Momentum with an orthogonalized update, for parameters that are matrices (Jordan et al., 2024).

    Args:
        weight_decay: the rate of the decoupled weight decay.
        momentum: the weight of the previous momentum.
        nesterov: whether to use Nesterov momentum.
        ns_coefficients: the coefficients of the polynomial of the Newton-Schulz iteration.
        eps: a lower bound of the norm that divides the gradient.
        ns_steps: the number of Newton-Schulz iterations.
        adjust_lr_fn: how the learning rate depends on the shape: "original" (the default) or "match_rms_adamw".
    """

    _options = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        _check_learning_rate(lr)
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, locals())
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _update_group(self, group: dict[str, Any]) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        for param, grad in zip(group["params"], self._gradients(group), strict=True):
            if grad is None:
                continue
            if param.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            if grad.is_sparse:
                raise RuntimeError("Muon does not support sparse gradients")
            state = self.state[param]
            if not state:
                state["momentum_buffer"] = torch.zeros_like(grad)
            held = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(held, momentum) if group["nesterov"] else held
            update = _orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            rows, columns = param.shape
            if group["adjust_lr_fn"] == "match_rms_adamw":
                rate = lr * 0.2 * math.sqrt(max(rows, columns))
            else:
                rate = lr * math.sqrt(max(1, rows / columns))
            param.mul_(1 - lr * group["weight_decay"])
            param.add_(update, alpha=-rate)
