"""`gradients`: statistics of the gradients of a model, for each parameter."""

from __future__ import annotations

from typing import Any

import numpy

from .._runtime.installed import install
from ..kernels.runtime.floating import unwarned
from ..kernels.runtime.narrow_array import widened
from ..tensor import Tensor
from .names import is_module, pairs_of
from .tables import Table


def gradients(model: Any, lr: Any = 1.0) -> Gradients:
    """Return norm, largest element, zeros, NaNs and infinities of each parameter's `.grad`, and the relative size of an update.

    Args:
        model: a Module, a dict of names and tensors, or an iterable of pairs.
        lr: the learning rate, or an optimizer that defines one for each parameter. `update/weight` is the norm of `lr *
            grad` divided by the norm of the parameter. This ratio is the relative change by one step of plain gradient
            descent. A typical value is 1e-3.

    Norms and extremes include only the finite elements.

    >>> import adjoint as torch
    >>> w = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * torch.tensor([0.0, 2.0])).sum().backward()
    >>> torch.inspect.gradients({"w": w}, lr=0.1)
    gradients
    parameter  shape  norm  max  zeros  nan  inf  weight norm  update/weight
    w          [2]       2    2  50.0%    0    0            5           0.04
    """
    rows = []
    with unwarned():
        for name, tensor in model.named_parameters() if is_module(model) else pairs_of("model", model):
            rows.append(_row(name, tensor, _rate(lr, tensor)))
    return Gradients("gradients", COLUMNS, rows, {"zeros": "{:.1%}".format})


COLUMNS = ("parameter", "shape", "norm", "max", "zeros", "nan", "inf", "weight norm", "update/weight")


class Gradients(Table):
    """The gradients of a model, one row per parameter. If a parameter has no gradient, its numbers are missing."""

    def plot(self, axes: Any = None) -> Any:
        """Draw the norms of gradients and the ratios of updates to weights with matplotlib, and return the axes.

        Args:
            axes: the axes to draw on; by default the axes of a new figure.

        Raises:
            ImportError: if matplotlib is not installed.
        """
        if axes is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise ImportError(f"A plot needs matplotlib: {install('inspect')}") from error

            _, axes = pyplot.subplots(figsize=(8, 1 + 0.25 * len(self.rows)), layout="constrained")
        shown = [row for row in self.rows if row["norm"] is not None][::-1]
        places = range(len(shown))
        axes.barh(places, [row["norm"] for row in shown], color="#74a9cf", label="norm of the gradient")
        axes.plot(
            [row["update/weight"] or float("nan") for row in shown],
            places,
            "o",
            color="#d7301f",
            label="update / weight",
        )
        for place, row in zip(places, shown, strict=True):
            if row["nan"] or row["inf"]:
                axes.text(
                    1, place, f" {row['nan']} nan, {row['inf']} inf", transform=axes.get_yaxis_transform(), va="center"
                )
        axes.set_yticks(list(places), [row["parameter"] for row in shown])
        if any(row["norm"] for row in shown):
            axes.set_xscale("log")
        axes.legend(loc="best")
        return axes


def _rate(lr: Any, tensor: Tensor) -> float | None:
    """Return the learning rate of a parameter, or None if the optimizer does not have the parameter."""
    if not hasattr(lr, "param_groups"):
        return float(lr)
    return next(
        (float(group["lr"]) for group in lr.param_groups if any(each is tensor for each in group["params"])), None
    )


def _row(name: str, tensor: Tensor, rate: float | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row["parameter"], row["shape"] = name, list(tensor.shape)
    weight = row["weight norm"] = norm_of(widened(tensor._array))
    if tensor._grad is None:
        return row
    grad = widened(tensor._grad._array)
    finite = numpy.isfinite(grad)
    numbers = grad if finite.all() else grad[finite]
    norm = row["norm"] = norm_of(numbers)
    row["max"] = float(abs(numbers).max()) if numbers.size else None
    row["zeros"] = float((grad == 0).mean()) if grad.size else None
    row["nan"] = int(numpy.isnan(grad).sum())
    row["inf"] = grad.size - int(finite.sum()) - row["nan"]
    row["update/weight"] = rate * norm / weight if weight and rate is not None else None
    return row


def norm_of(array: Any) -> float:
    """The Euclidean norm of all elements."""
    flat = abs(array).astype(numpy.float64).ravel()
    return float(numpy.sqrt(flat @ flat))
