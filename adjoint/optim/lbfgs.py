"""The limited-memory quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno (L-BFGS).

Its line search finds a step that satisfies the strong Wolfe conditions. It follows Nocedal and Wright, "Numerical
Optimization", 2006, algorithms 3.5 (bracketing) and 3.6 (zooming), with cubic interpolation (equation 3.59) and the
safeguards of Schmidt's minFunc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import adjoint as torch
from adjoint import Tensor

from .declared import learning_rate, number
from .optimizer import Optimizer, Params

__all__ = ["LBFGS"]

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
TOLERANCE_CHANGE = 1e-9


class Point(NamedTuple):
    """A point on the line: its position, the loss, the gradient and the slope. Tensors round as in PyTorch."""

    t: Any
    loss: float
    grad: Tensor
    slope: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Return the minimum of the cubic through two points with given slopes, limited to `bounds` (the points by default)."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t <= b.t:
        place = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        place = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(place, low), high)


def strong_wolfe(
    evaluate: Callable[[Any], tuple[float, Tensor]],
    t: Any,
    direction: Tensor,
    loss: float,
    grad: Tensor,
    slope: Tensor,
    trials: int,
) -> tuple[float, Tensor, Any, int]:
    """Find a step along `direction` that decreases the loss and reduces the slope sufficiently.

    Args:
        evaluate: a function that returns the loss and the gradient at a step.
        t: the first step to try.
        loss, grad, slope: the values at step 0.
        trials: the maximum number of steps to try after the first.

    Returns:
        The loss and the gradient at the final step, the step, and the number of evaluations.
    """
    largest = direction.abs().max()
    start = Point(0, loss, grad, slope)

    def look(t: Any) -> Point:
        value, gradient = evaluate(t)
        return Point(t, value, gradient.clone(), gradient.dot(direction))

    bracket, evaluations, done = _bracket(look, start, t, trials)
    if done:
        return bracket[0].loss, bracket[0].grad, bracket[0].t, evaluations
    best, evaluations = _zoom(look, start, bracket, evaluations, trials, largest)
    return best.loss, best.grad, best.t, evaluations


def _bracket(look: Callable[[Any], Point], start: Point, t: Any, trials: int) -> tuple[list[Point], int, bool]:
    """Enlarge the step until two points bracket an acceptable step, or until an acceptable step is found (`done`)."""
    previous, point = start, look(t)
    evaluations = 1
    for iteration in range(trials):
        too_high = point.loss > start.loss + SUFFICIENT_DECREASE * point.t * start.slope
        if too_high or (iteration > 1 and point.loss >= previous.loss):
            return [previous, point], evaluations, False
        if abs(point.slope) <= -CURVATURE * start.slope:
            return [point], evaluations, True
        if point.slope >= 0:
            return [previous, point], evaluations, False
        least = point.t + 0.01 * (point.t - previous.t)
        place = cubic_minimum(previous, point, bounds=(least, point.t * 10))
        previous, point = point, look(place)
        evaluations += 1
    return [start, point], evaluations, False


def _zoom(
    look: Callable[[Any], Point], start: Point, bracket: list[Point], evaluations: int, trials: int, largest: Tensor
) -> tuple[Point, int]:
    """Narrow the bracket until its lower end is acceptable. Of equal losses, the first counts as lower."""
    low = _lower(bracket)
    insufficient_progress = False
    while evaluations <= trials:
        width = abs(bracket[1].t - bracket[0].t)
        if width * largest < TOLERANCE_CHANGE:
            break
        first, last = min(bracket[0].t, bracket[1].t), max(bracket[0].t, bracket[1].t)
        place = cubic_minimum(bracket[0], bracket[1])
        # Move a trial away from an end of the bracket if it is at the end, or near an end twice in a row.
        if min(last - place, place - first) / (last - first) < 0.1:
            if insufficient_progress or place >= last or place <= first:
                margin = 0.1 * (last - first)
                place = last - margin if abs(place - last) < abs(place - first) else first + margin
                insufficient_progress = False
            else:
                insufficient_progress = True
        else:
            insufficient_progress = False
        point = look(place)
        evaluations += 1
        if point.loss > start.loss + SUFFICIENT_DECREASE * place * start.slope or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = _lower(bracket)
            continue
        if abs(point.slope) <= -CURVATURE * start.slope:
            return point, evaluations
        if point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low], evaluations


def _lower(bracket: list[Point]) -> int:
    """Return the position of the point with the lower loss."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1


class LBFGS(Optimizer):
    """L-BFGS (Nocedal and Wright, "Numerical Optimization", 2006, algorithms 7.4 and 7.5).

    Args:
        params: parameters. Groups are not supported.
        lr: the length of the step, or of the first trial of the line search.
        max_iter: the maximum number of iterations in one `step`.
        max_eval: the maximum number of evaluations of the closure in one `step`, `max_iter * 5 / 4` by default.
        tolerance_grad: the largest absolute value in the gradient at which the iteration stops.
        tolerance_change: the change of the loss, or of all parameters, below which the iteration stops.
        history_size: the number of stored updates.
        line_search_fn: None or "strong_wolfe".

    `step` requires a closure that reevaluates the model and returns the loss.

    Raises:
        ValueError: if several groups or a negative rate are given.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
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
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    # All parameters as one real vector

    def _gather_flat_grad(self) -> Tensor:
        parts = []
        for param in self._params:
            grad = torch.zeros_like(param) if param.grad is None else param.grad.to_dense()
            parts.append((torch.view_as_real(grad) if torch.is_complex(grad) else grad).reshape(-1))
        return torch.cat(parts)

    def _add_grad(self, step_size: Any, direction: Tensor) -> None:
        """Move the parameters along the direction."""
        offset = 0
        for param in self._params:
            real = torch.view_as_real(param) if torch.is_complex(param) else param
            count = real.numel()
            real.add_(direction[offset : offset + count].view_as(real), alpha=step_size)
            offset += count

    def _set_params(self, values: list[Tensor]) -> None:
        for param, value in zip(self._params, values, strict=True):
            param.copy_(value)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Minimize for up to `max_iter` iterations, and return the initial loss.

        Args:
            closure: a function that reevaluates the model and returns the loss.
        """
        closure = torch.enable_grad()(closure)
        group = self.param_groups[0]
        lr = number(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = number(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if bool(grad.abs().max() <= group["tolerance_grad"]):
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction = grad.neg()
                state.update(d=direction, t=lr, old_dirs=[], old_stps=[], ro=[], H_diag=1)
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
                    loss = number(closure())
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
        direction: Tensor,
        loss: float,
        grad: Tensor,
        slope: Tensor,
        trials: int,
    ) -> tuple[float, Tensor, Any, int]:
        """Search along the direction, and move to the result."""
        start = [param.clone() for param in self._params]

        def evaluate(t: Any) -> tuple[float, Tensor]:
            self._add_grad(t, direction)
            value = number(closure())
            gradient = self._gather_flat_grad()
            self._set_params(start)
            return value, gradient

        loss, grad, step_size, used = strong_wolfe(evaluate, step_size, direction, loss, grad, slope, trials)
        self._add_grad(step_size, direction)
        return loss, grad, step_size, used


def _quasi_newton_direction(state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
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
