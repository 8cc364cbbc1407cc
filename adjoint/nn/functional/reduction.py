"""The reduction of losses: `reduction`, the two deprecated arguments that select it, and weights of elements."""

from __future__ import annotations

from collections.abc import Callable

from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .declared import operators

REDUCTIONS = ("none", "mean", "sum")


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction that the deprecated arguments select, or `reduction`, unchecked, if neither is given."""
    if size_average is None and reduce is None:
        return reduction
    meant = selected_reduction(size_average, reduce)
    warn(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.")
    return meant


def selected_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """Return the reduction that the two deprecated arguments select. None counts as true."""
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def checked_reduction(
    size_average: bool | None, reduce: bool | None, reduction: str, allowed: tuple[str, ...] = REDUCTIONS
) -> str:
    """Return the requested reduction, from its name or from the deprecated arguments.

    Raises:
        ValueError: if the reduction is not in `allowed`.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction not in allowed:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def weighted(
    loss: Callable[..., Tensor],
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    by_weight: bool = True,
    **options: float,
) -> Tensor:
    """Return `loss` with an optional weight for each element.

    Args:
        by_weight: whether a mean divides the sum by the sum of the weights instead of the number of elements.
        options: additional arguments of the loss.

    Raises:
        ValueError: if the sizes of weights and input differ.
    """
    if weight is None:
        return loss(input, target, reduction=reduction, **options)
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    losses = loss(input, target, reduction="none", **options) * weight
    if by_weight and reduction == "mean":
        return losses.sum() / weight.sum()
    reduced: Tensor = operators.reduced(losses, reduction)
    return reduced
