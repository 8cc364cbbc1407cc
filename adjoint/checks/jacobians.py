"""Jacobians of a user's function by finite differences, by backward and by forward mode, in full or along a direction.

A matrix has a row for each element of an input and a column for each element of an output. Results are indexed by
input, then by output. The derivative with respect to a complex input is `d/dx + 1j * d/dy`. As in PyTorch, the gradient
of a real function is therefore twice the derivative with respect to the conjugate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..autograd.backward import grad
from ..kernels.math import finite_differences
from ..kernels.runtime.floating import is_inexact
from ..kernels.runtime.lazy_conj import materialize
from ..kernels.runtime.sparse_array import SparseArray
from ..kernels.sparse.layouts import all_stored, coalesce, places_in_dense, to_dense
from ..tape.torch_dispatch import DISPATCHING
from ..tensor import Tensor, wrap

Array = numpy.ndarray[Any, Any]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return the results, or inputs, of a function as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def nothing() -> None:
    """Do nothing. This is the callback after each evaluation if there is no observer."""


class Mapping:
    """A function at given inputs, as a check sees it.

    It maps the inputs that require grad to the outputs that depend on them.

    If no output requires grad, all floating-point and complex outputs are compared. `part`: "real" or "imag" to compare
    only this part of the outputs (or inputs) with the numbers `parted`. `watch`: a function that is called after each
    evaluation.
    """

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[Any], part: str = "", parted: Sequence[int] = ()
    ) -> None:
        self.function = function
        self.inputs = tuple(inputs)
        self.part, self.parted = part, parted
        self.sources = [value for value in self.inputs if is_source(value)]
        self.watch: Callable[[], None] = nothing
        self.check_dtypes = False
        self.masked = False
        outputs = as_tuple(function(*self.inputs))
        self.positions = [number for number, output in enumerate(outputs) if output.requires_grad]
        self.differentiable = bool(self.positions)
        if not self.differentiable:
            self.positions = [number for number, output in enumerate(outputs) if is_inexact(output._array.dtype)]
        self.outputs: list[Tensor] = [outputs[number] for number in self.positions]
        self.below: list[Tensor] | None = None

    def __call__(self, *inputs: Any) -> list[Tensor]:
        """Return the outputs that are compared, at other inputs."""
        outputs = as_tuple(self.function(*inputs))
        return [outputs[number] for number in self.positions]

    def moving(self, source: Tensor, every: bool) -> tuple[list[Any], Array, SparseArray | None]:
        """Return the inputs with a movable tensor in place of `source`, its elements, and its array if it is sparse."""
        if type(source) in DISPATCHING:
            return list(self.inputs), elements_of(source), None
        if type(source._array) is not SparseArray:
            return list(self.inputs), source._array, None
        array = (all_stored if every else coalesce)(source._array).copy()
        moved = wrap(array, requires_grad=True)
        return [moved if value is source else value for value in self.inputs], array.parts.values, array

    def evaluate(self, eps: float, index: tuple[int, ...] | None, inputs: Sequence[Any]) -> list[Array]:
        """Return the outputs at `inputs` after a change by `eps`, in the form of the call before."""
        results = self(*inputs)
        place = "" if index is None else f" on index {index}"
        before, self.below = self.below, results if self.below is None else None
        for result, output in zip(results, before or (), strict=before is not None):
            for what in ("shape", "dtype"):
                expected, actual = getattr(output, what), getattr(result, what)
                if expected != actual:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed{place} by {eps}, "
                        f"but got: {what}s {expected} and {actual}."
                    )
        self.watch()
        return [materialize(elements_of(result)) for result in results]

    def part_of_outputs(self, part: str) -> Mapping:
        """Return the same function with complex outputs replaced by their real or imaginary parts."""

        def function(*inputs: Any) -> tuple[Any, ...]:
            return tuple(
                getattr(output, part) if output.is_complex() else output for output in as_tuple(self.function(*inputs))
            )

        return self._with(Mapping(function, self.inputs, part, complex_ones(self.outputs)))

    def part_of_inputs(self, part: str) -> Mapping:
        """Return the same function of the real or imaginary parts of complex inputs that require grad."""
        from ..operators import complex as complex_of

        def whole(given: Any, value: Any) -> Any:
            if not (is_source(value) and value.is_complex()):
                return given
            fixed = value.detach()
            return complex_of(given, fixed.imag) if part == "real" else complex_of(fixed.real, given)

        def function(*inputs: Any) -> Any:
            return self.function(*map(whole, inputs, self.inputs))

        parts = [
            getattr(value.detach(), part).clone().requires_grad_() if is_source(value) and value.is_complex() else value
            for value in self.inputs
        ]
        return self._with(Mapping(function, parts, part, complex_ones(self.sources)))

    def _with(self, other: Mapping) -> Mapping:
        other.check_dtypes, other.masked = self.check_dtypes, self.masked
        return other


def elements_of(tensor: Tensor) -> Any:
    """Return the elements. The class of a tensor with `__torch_dispatch__` copies them."""
    if type(tensor) not in DISPATCHING:
        return tensor._array
    copy = wrap(numpy.zeros(tensor.shape, tensor._array.dtype))
    copy.copy_(tensor.detach())
    return copy._array


def is_source(value: Any) -> bool:
    """Return whether `value` is an input whose gradient is checked."""
    return isinstance(value, Tensor) and value.requires_grad


def complex_ones(tensors: Sequence[Tensor]) -> list[int]:
    """Return the positions of complex tensors in `tensors`."""
    return [number for number, tensor in enumerate(tensors) if tensor.is_complex()]


# --- finite differences ---------------------------------------------------------------------------------------------


def numerical(mapping: Mapping, eps: float) -> list[list[Array]]:
    """Return the Jacobians by finite differences."""
    return [numerical_by(mapping, source, eps) for source in mapping.sources]


def evaluation(
    mapping: Mapping, source: Tensor, elements: Array, inputs: list[Any], eps: float
) -> Callable[..., list[Array]]:
    """Return a function that evaluates the mapping after a change of `elements` at an index by `eps`."""

    def evaluate(index: tuple[int, ...] | None) -> list[Array]:
        if type(source) in DISPATCHING:
            source.detach().copy_(wrap(elements.copy()))
        return mapping.evaluate(eps, index, inputs)

    return evaluate


def numerical_by(mapping: Mapping, source: Tensor, eps: float) -> list[Array]:
    """Return the Jacobians of all outputs for one tensor. The Jacobians for elements that do not move are zero."""
    inputs, elements, array = mapping.moving(source, every=not mapping.masked)

    evaluate = evaluation(mapping, source, elements, inputs, eps)
    found = finite_differences.jacobians(evaluate, elements, eps)
    if array is None:
        return found
    whole = [numpy.zeros((array.size, rows.shape[1]), rows.dtype) for rows in found]
    for matrix, rows in zip(whole, found, strict=True):
        matrix[places_in_dense(array)] = rows
    return whole


def numerical_along(mapping: Mapping, source: Tensor, directions: Sequence[Array], eps: float) -> list[list[Array]]:
    """Return the derivatives of all outputs for one tensor, along one direction or (for complex tensors: x, y) two directions."""
    inputs, elements, array = mapping.moving(source, every=False)

    evaluate = evaluation(mapping, source, elements, inputs, eps)

    def step(direction: Array) -> Array:
        taken = direction if array is None else direction[places_in_dense(array)]
        return taken.reshape(elements.shape)

    return [
        finite_differences.along(evaluate, elements, step(direction) * unit, eps)
        for direction, unit in zip(directions, (1, 1j), strict=False)
    ]


def check_dtypes(derivatives: Sequence[Tensor | None], tensors: Sequence[Tensor], words: str) -> None:
    """Raise an error unless each derivative has the dtype of its tensor."""
    from .gradcheck import GradcheckError

    for derivative, tensor in zip(derivatives, tensors, strict=True):
        if derivative is not None and derivative.dtype != tensor.dtype:
            raise GradcheckError(words)


# --- backward -------------------------------------------------------------------------------------------------------


def backward_product(mapping: Mapping, output: int, vector: Array) -> list[Tensor | None]:
    """Return the gradients of all inputs for the gradient `vector` of one output, or None for independent inputs."""
    root = mapping.outputs[output]
    gradient = wrap(vector.astype(root._array.dtype).reshape(root._array.shape))
    found = list(grad(root, mapping.sources, gradient, retain_graph=True, allow_unused=True))
    if mapping.check_dtypes:
        check_dtypes(found, mapping.sources, "Gradient has dtype mismatch")
    mapping.watch()
    return found


def backward_jacobians(mapping: Mapping, output: int) -> list[Array]:
    """Return the Jacobians of one output, by backward, column by column."""
    size = mapping.outputs[output]._array.size
    found = [numpy.zeros((source._array.size, size), source._array.dtype) for source in mapping.sources]
    for column in range(size):
        vector = numpy.zeros(size)
        vector[column] = 1
        for matrix, gradient in zip(found, backward_product(mapping, output, vector), strict=True):
            if gradient is not None:
                matrix[:, column] = to_dense(elements_of(gradient)).reshape(-1)
    return found


# --- forward mode ---------------------------------------------------------------------------------------------------


def forward_product(mapping: Mapping, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return the tangents of all outputs for given tangents of the inputs that require grad."""
    from ..transforms.forward_mode import dual_level, make_dual, unpack_dual

    given = iter(tangents)
    with dual_level():
        inputs = []
        for value in mapping.inputs:
            if is_source(value):
                tangent, value = next(given), value.detach()
                if tangent is not None:
                    value = make_dual(value, tangent)
            inputs.append(value)
        found = [unpack_dual(output).tangent for output in mapping(*inputs)]
    if mapping.check_dtypes:
        check_dtypes(found, mapping.outputs, "Forward AD gradient has dtype mismatch.")
    mapping.watch()
    return found


def tangents_at(
    mapping: Mapping, number: int, tangent: Array, others: Sequence[Array | None] | None = None
) -> list[Any]:
    """Return tangents for `forward_product`: `tangent` for one input, and 0 or the values in `others` for the other inputs."""
    found: list[Any] = []
    for position, source in enumerate(mapping.sources):
        array = source._array
        chosen = tangent if position == number else others[position] if others else numpy.zeros(array.shape)
        found.append(None if chosen is None else wrap(chosen.astype(array.dtype).reshape(array.shape)))
    return found


def forward_along(mapping: Mapping, number: int, direction: Array) -> list[Array]:
    """Return the flattened derivatives of all outputs for one input along a direction."""
    products = forward_product(mapping, tangents_at(mapping, number, direction))
    return [
        numpy.zeros(output._array.size, output._array.dtype)
        if product is None
        else materialize(elements_of(product)).reshape(-1)
        for product, output in zip(products, mapping.outputs, strict=True)
    ]


def forward_jacobians(mapping: Mapping, number: int) -> list[Array]:
    """Return the Jacobians of all outputs for one input, by forward mode, row by row."""
    size = mapping.sources[number]._array.size
    found = [numpy.zeros((size, output._array.size), output._array.dtype) for output in mapping.outputs]
    for row in range(size):
        direction = numpy.zeros(size)
        direction[row] = 1
        for matrix, product in zip(found, forward_along(mapping, number, direction), strict=True):
            matrix[row] = product
    return found
