"""The limited-memory quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch

from .declared import learning_rate, number
from .line_search import strong_wolfe
from .optimizer import Optimizer, Params

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS (Nocedal and Wright, "Numerical Optimization", 2006, algorithms 7.4 and 7.5).

    Args:
        params: parameters; groups are not supported.
        lr: the length of the step, or of the first trial of the line search.
        max_iter: iterations of one `step`.
        max_eval: evaluations of the closure in one `step`, `max_iter * 5 / 4` by default.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when neither the loss nor a parameter changes by more.
        history_size: how many updates are stored.
        line_search_fn: None or "strong_wolfe".

    `step` requires a closure that reevaluates the model and returns the loss.

    Raises:
        ValueError: for several groups or a negative rate.
    """

    def __init__(
        self,
        params: Params,
        lr: float | torch.Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        learning_rate({"lr": lr})
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[torch.Tensor]:
        return self.param_groups[0]["params"]

    # All parameters as one real vector

    def _gather_flat_grad(self) -> torch.Tensor:
        parts = []
        for param in self._params:
            grad = torch.zeros_like(param) if param.grad is None else param.grad
            parts.append((torch.view_as_real(grad) if torch.is_complex(grad) else grad).reshape(-1))
        return torch.cat(parts)

    def _add_grad(self, step_size: Any, direction: torch.Tensor) -> None:
        """Move the parameters along the direction."""
        offset = 0
        for param in self._params:
            real = torch.view_as_real(param) if torch.is_complex(param) else param
            count = real.numel()
            real.add_(direction[offset : offset + count].view_as(real), alpha=step_size)
            offset += count

    def _set_params(self, values: list[torch.Tensor]) -> None:
        for param, value in zip(self._params, values, strict=True):
            param.copy_(value)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Minimize for up to `max_iter` iterations and return the loss before.

        Args:
            closure: reevaluates the model and returns the loss.
        """
        closure = torch.enable_grad()(closure)
        group = self.param_groups[0]
        lr = number(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if bool(grad.abs().max() <= group["tolerance_grad"]):
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction = grad.neg()
                state.update(d=direction, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                direction = _quasi_newton_direction(state, grad, group["history_size"])
            state["d"] = direction
            state["prev_flat_grad"] = grad.clone()
            state["prev_loss"] = previous_loss = loss
            step_size = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                state["t"] = step_size
                break
            search = group["line_search_fn"]
            if search is None:
                self._add_grad(step_size, direction)
                used = 0
                if iteration != group["max_iter"]:
                    # The result of the last evaluation would not be used.
                    loss = float(closure())
                    grad = self._gather_flat_grad()
                    used = 1
            elif search == "strong_wolfe":
                trials = group["max_eval"] - evaluations
                loss, grad, step_size, used = self._search(closure, step_size, direction, loss, grad, slope, trials)
            else:
                raise RuntimeError("only 'strong_wolfe' is supported")
            state["t"] = step_size
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or bool(grad.abs().max() <= group["tolerance_grad"])
                or bool(direction.mul(step_size).abs().max() <= group["tolerance_change"])
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _search(
        self,
        closure: Callable[[], Any],
        step_size: Any,
        direction: torch.Tensor,
        loss: float,
        grad: torch.Tensor,
        slope: torch.Tensor,
        trials: int,
    ) -> tuple[float, torch.Tensor, Any, int]:
        """Search along the direction and move there."""
        start = [param.clone() for param in self._params]

        def evaluate(t: Any) -> tuple[float, torch.Tensor]:
            self._add_grad(t, direction)
            value = float(closure())
            gradient = self._gather_flat_grad()
            self._set_params(start)
            return value, gradient

        loss, grad, step_size, used = strong_wolfe(evaluate, step_size, direction, loss, grad, slope, trials)
        self._add_grad(step_size, direction)
        return loss, grad, step_size, used


def _quasi_newton_direction(state: dict[str, Any], grad: torch.Tensor, history_size: int) -> torch.Tensor:
    """Update the stored history with the last step, and multiply the gradient by its approximate inverse Hessian."""
    old_dirs, old_stps, ro = state["old_dirs"], state["old_stps"], state["ro"]
    change = grad.sub(state["prev_flat_grad"])
    step = state["d"].mul(state["t"])
    curvature = change.dot(step)
    if curvature > 1e-10:
        if len(old_dirs) == history_size:
            for remembered in (old_dirs, old_stps, ro):
                remembered.pop(0)
        old_dirs.append(change)
        old_stps.append(step)
        ro.append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change)
    factors = state.setdefault("al", [None] * history_size)
    q = grad.neg()
    for i in range(len(old_dirs) - 1, -1, -1):
        factors[i] = old_stps[i].dot(q) * ro[i]
        q.add_(old_dirs[i], alpha=-factors[i].item())
    direction = q.mul(state["H_diag"])
    for i in range(len(old_dirs)):
        correction = old_dirs[i].dot(direction) * ro[i]
        direction.add_(old_stps[i], alpha=(factors[i] - correction).item())
    return direction
