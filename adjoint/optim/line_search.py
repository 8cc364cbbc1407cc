"""A line search for the strong Wolfe conditions.

Nocedal and Wright, "Numerical Optimization", 2006, algorithms 3.5 (bracketing) and 3.6 (zooming), with cubic
interpolation (equation 3.59) and the safeguards of Schmidt's minFunc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import adjoint as torch

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
TOLERANCE_CHANGE = 1e-9


class Point(NamedTuple):
    """A point on the line: its position, the loss, the gradient and the slope.

    Positions and slopes are tensors, so that they are rounded as in PyTorch; the first positions may be numbers.
    """

    t: Any
    loss: float
    grad: torch.Tensor
    slope: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """The minimum of the cubic through two points with their slopes, limited to `bounds` (the points by default)."""
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
    evaluate: Callable[[Any], tuple[float, torch.Tensor]],
    t: Any,
    direction: torch.Tensor,
    loss: float,
    grad: torch.Tensor,
    slope: torch.Tensor,
    trials: int,
) -> tuple[float, torch.Tensor, Any, int]:
    """Find a step along `direction` that decreases the loss and flattens the slope enough.

    Args:
        evaluate: returns the loss and the gradient at a step.
        t: the first step to try.
        loss, grad, slope: at step 0.
        trials: how many steps may be tried after the first.

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
    """Enlarge the step until an acceptable step lies between two points, or is found immediately (`done`)."""
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
    look: Callable[[Any], Point],
    start: Point,
    bracket: list[Point],
    evaluations: int,
    trials: int,
    largest: torch.Tensor,
) -> tuple[Point, int]:
    """Narrow the bracket until its lower end is acceptable.

    The points keep their places in the bracket: of two equal losses, that of the first place is the lower.
    """
    low = _lower(bracket)
    insufficient_progress = False
    while evaluations <= trials:
        width = abs(bracket[1].t - bracket[0].t)
        if width * largest < TOLERANCE_CHANGE:
            break
        first, last = min(bracket[0].t, bracket[1].t), max(bracket[0].t, bracket[1].t)
        place = cubic_minimum(bracket[0], bracket[1])
        # A trial very near an end of the bracket, twice in a row or at the end itself, is moved away from it.
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
    """The place of the point with the lower loss."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1
