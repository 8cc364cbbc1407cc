"""The messages of failed gradient checks, in PyTorch's words, with notes on the largest differences, and the progress bar."""

from __future__ import annotations

import time
from typing import Any

import numpy

from ..kernels.math.comparison import isclose
from ..tape.edges import edge_of
from ..tensor import wrap
from .jacobians import Mapping

Array = numpy.ndarray[Any, Any]

NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
    "although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}."
)
NOT_REENTRANT_NOTE = "If that is meant, say how far two runs may differ: `nondet_tol`."

UNDEFINED_WARNING = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    "existing callers of this function. If this is true for you, you can call this function with "
    '"check_undefined_grad=False" to disable the feature'
)
UNDEFINED_GRADS_MEAN_ZERO = (
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look at "
    '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)
UNDEFINED_GRADS_UNEXPECTED = (
    "Expected backward function to handle undefined output grads. Please look at "
    '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)
UNDEFINED_NOTE = (
    "An undefined gradient is None in the `backward` of a `Function` with `ctx.set_materialize_grads(False)`; it stands "
    "for 0."
)

BATCHED = "\ngradcheck or gradgradcheck failed while testing batched gradient computation.\n"
BATCHED_NOTE = "The backward must work under `vmap`; `check_batched_grad=False` leaves this check out."
BATCHED_FORWARD = "\n\ngradcheck failed while testing batched gradient computation with forward-mode AD.\n"
BATCHED_FORWARD_NOTE = "Forward mode must work under `vmap`; `check_batched_forward_grad=False` leaves this check out."

_FAST = """
The above quantities relating the numerical and analytical jacobians are computed{space}
in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background{space}
about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:

Numerical:
 {numerical}
Analytical:
{analytical}

The max per-element difference (slow mode) is: {difference}.
"""
_FAST_FAILED_ALONE = """Fast gradcheck failed but element-wise differences are small. This means that the
test might've passed in slow_mode!
"""


def shown(array: Array) -> str:
    """Return a matrix in the form of a printed tensor, or a single value in the form of a number."""
    return str(array.item()) if array.ndim == 0 else str(wrap(array))


def mismatch(mapping: Mapping, output: int, source: int, analytical: Array, numerical: Array, forward: bool) -> str:
    """Return the first part of the message for two different Jacobians, or for their products with vectors."""
    part = ""
    if (source if forward else output) in mapping.parted:
        name = {"real": "real", "imag": "imaginary"}[mapping.part]
        part = f"While considering the {name} part of complex {'inputs' if forward else 'outputs'} only, "
    what = "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
    return (
        f"{part}{what} for output {output} with respect to input {source},\n"
        f"numerical:{shown(numerical)}\nanalytical:{shown(analytical)}\n"
    )


def explained(analytical: Array, numerical: Array, close: bool) -> str:
    """Return the second part of the message in fast mode: the Jacobians, and whether they are `close`."""
    words = _FAST.format(
        space=" ",
        numerical=shown(numerical),
        analytical=shown(analytical),
        difference=float(numpy.abs(analytical - numerical).max(initial=0)),
    )
    return words + _FAST_FAILED_ALONE if close else words


def note(mapping: Mapping, output: int, source: int, matrices: tuple[Array, Array], rtol: float, atol: float) -> str:
    """Describe where two Jacobians differ most, in how many elements, and which operation computed the output."""
    kind = numpy.result_type(*matrices)
    analytical, numerical = (matrix.astype(kind) for matrix in matrices)
    if not analytical.size:
        return "the matrices are empty"
    differing = int((~isclose(analytical, numerical, rtol, atol, False)).sum())
    difference = numpy.nan_to_num(numpy.abs(analytical - numerical), nan=numpy.inf)
    row, column = numpy.unravel_index(int(difference.argmax()), difference.shape)
    element_of_input = numpy.unravel_index(row, mapping.sources[source]._array.shape)
    element_of_output = numpy.unravel_index(column, mapping.outputs[output]._array.shape)
    text = (
        f"{differing} of {difference.size} elements differ; most, the derivative of element {_place(element_of_output)} of "
        f"output {output} by element {_place(element_of_input)} of input {source}: {numerical[row, column]} by finite "
        f"differences, {analytical[row, column]} analytically"
    )
    edge = edge_of(mapping.outputs[output])
    if type(edge) is tuple:
        text += f"\noutput {output} was computed by {edge[0].name()}, recorded at {edge[0].describe_origin()}"
    return text


def _place(index: tuple[Any, ...]) -> str:
    return str([int(number) for number in index])


class Progress:
    """A counter of evaluations. It shows a bar if the evaluations take long, tqdm is installed, and the output is a terminal."""

    PATIENCE = 2.0
    """The number of seconds before a bar appears."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what = total, what
        self.start = time.monotonic()
        self.done = 0
        self.bar: Any = None

    def __call__(self) -> None:
        """Count an evaluation."""
        self.done += 1
        if self.bar is not None:
            self.bar.update()
        elif self.done < self.total and time.monotonic() - self.start > self.PATIENCE:
            self.show()

    def show(self) -> None:
        """Show the bar."""
        try:
            from tqdm import tqdm
        except ImportError:
            self.start = float("inf")
            return
        self.bar = tqdm(total=self.total, initial=self.done, desc=self.what, disable=None, leave=False)

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
