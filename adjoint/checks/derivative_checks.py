"""The checks of `gradcheck`, with one function for each: agreement with finite differences, and other requirements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy

from .._runtime.tracebacks import warn
from ..autograd.backward import grad
from ..autograd.function import Function
from ..device import strided
from ..dispatch.sequential import read_array
from ..dtypes import float32
from ..kernels.runtime.floating import unwarned
from ..kernels.sparse.layouts import coalesce, places_in_dense, to_dense
from ..operators import allclose, empty, rand, randn_like, stack, view_as_real, zeros_like
from ..random import Generator
from ..tensor import Tensor, wrap
from . import report
from .gradcheck import GradcheckError
from .jacobians import (
    Mapping,
    backward_jacobians,
    backward_product,
    complex_ones,
    elements_of,
    forward_along,
    forward_jacobians,
    forward_product,
    is_source,
    numerical,
    numerical_along,
    numerical_by,
    tangents_at,
)

Array = numpy.ndarray[Any, Any]


@dataclass(frozen=True)
class Options:
    """The options for comparing derivatives."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    fast_mode: bool


def check_inputs(inputs: tuple[Any, ...]) -> None:
    """Warn about inputs with low precision. Refuse expanded inputs. Refuse inputs if none of them requires grad."""
    for number, value in enumerate(inputs):
        if not is_source(value):
            continue
        if value._array.dtype not in (numpy.float64, numpy.complex128):
            warn(
                f"Input #{number} requires gradient and is not a double precision floating point or complex. This check will "
                "likely fail if all the inputs are not of double precision floating point or complex. "
            )
        if value.layout is strided and any(
            stride == 0 and size > 1 for stride, size in zip(value.stride(), value.shape, strict=True)
        ):
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping "
                "to be able to compute the numerical gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )
    if not any(is_source(value) for value in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def check_constant(mapping: Mapping, options: Options) -> None:
    """Check that outputs without grad do not depend on the inputs that require grad."""
    for source in mapping.sources:
        if options.fast_mode:
            directions = directions_of(source, Directions())
            found = [value for along in numerical_along(mapping, source, directions, options.eps) for value in along]
        else:
            found = numerical_by(mapping, source, options.eps)
        if any(value.any() for value in found):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def check_backward(mapping: Mapping, options: Options) -> None:
    """Compare backward with finite differences."""
    for part in parts(mapping, mapping.outputs, mapping.part_of_outputs):
        (compare_along if options.fast_mode else compare_jacobians)(part, options)


def check_forward(mapping: Mapping, options: Options) -> None:
    """Compare forward mode with finite differences."""
    for part in parts(mapping, mapping.sources, mapping.part_of_inputs):
        if options.fast_mode:
            compare_forward_along(part, options)
        else:
            compare_jacobians(part, options, forward=True)


def parts(mapping: Mapping, tensors: list[Tensor], part_of: Callable[[str], Mapping]) -> Iterable[Mapping]:
    """Return the mapping, or its imaginary and its real part if one of `tensors` is complex."""
    return map(part_of, ("imag", "real")) if complex_ones(tensors) else [mapping]


def compare_jacobians(mapping: Mapping, options: Options, forward: bool = False) -> None:
    """Compare the full Jacobians of backward or forward mode."""
    sources, outputs = range(len(mapping.sources)), range(len(mapping.outputs))
    evaluated = mapping.sources if forward else [*mapping.outputs, *mapping.outputs]
    total = moves(mapping) + sum(tensor._array.size for tensor in evaluated)
    found: dict[tuple[int, int], Array] = {}
    with progress(mapping, total, "gradcheck, forward" if forward else "gradcheck"):
        expected = numerical(mapping, options.eps)
        for source in sources if forward else ():
            found.update(((output, source), each) for output, each in enumerate(forward_jacobians(mapping, source)))
        for output in () if forward else outputs:
            by_source = backward_jacobians(mapping, output)
            check_reentrant(by_source, backward_jacobians(mapping, output), options.nondet_tol)
            found.update(((output, source), each) for source, each in enumerate(by_source))
    for output, source in itertools.product(outputs, sources):
        analytical, expect = found[output, source], expected[source][output]
        if not close(analytical, expect, options.rtol, options.atol):
            raise mismatch(mapping, output, source, analytical, expect, options, forward)


def compare_along(mapping: Mapping, options: Options) -> None:
    """Compare `v^T J u` of backward, for each input and output."""
    draw = Directions()
    directions = [directions_of(source, draw) for source in mapping.sources]
    vectors = [draw(output) for output in mapping.outputs]
    expected = [
        numerical_along(mapping, source, along, options.eps)
        for source, along in zip(mapping.sources, directions, strict=True)
    ]
    found = []
    for output, vector in enumerate(vectors):
        found.append(gradients_along(mapping, output, vector, directions))
        check_reentrant(found[-1], gradients_along(mapping, output, vector, directions), options.nondet_tol)
    for source, along in enumerate(directions):
        for output, vector in enumerate(vectors):
            products = [vector.astype(by[output].dtype) @ by[output].reshape(-1) for by in expected[source]]
            expect = joined(products)
            atol = options.atol * sum(float(u.sum()) for u in along) * float(vector.sum())
            if not close(found[output][source], expect, options.rtol, atol):
                raise mismatch(mapping, output, source, found[output][source], expect, options)


def compare_forward_along(mapping: Mapping, options: Options) -> None:
    """Compare `J u` of forward mode, for each input and output."""
    draw = Directions()
    for source, tensor in enumerate(mapping.sources):
        direction = draw(tensor)
        (expected,) = numerical_along(mapping, tensor, [direction], options.eps)
        found = forward_along(mapping, source, direction)
        for output, analytical in enumerate(found):
            expect = expected[output].reshape(-1)
            if not close(analytical, expect, options.rtol, options.atol * float(direction.sum())):
                raise mismatch(mapping, output, source, analytical, expect, options, forward=True)


def check_reentrant(first: list[Array], second: list[Array], tolerance: float) -> None:
    """Raise an error unless two runs of the same backward agree."""
    with unwarned():
        if any((numpy.abs(one - other) > tolerance).any() for one, other in zip(first, second, strict=True)):
            raise failure(report.NOT_REENTRANT.format(tolerance), report.NOT_REENTRANT_NOTE)


def check_linear(mapping: Mapping) -> None:
    """Check that zero gradients of the outputs give zero gradients of the inputs, in the layouts of the inputs."""
    zeros = [wrap(numpy.zeros_like(output._array)) for output in mapping.outputs]
    found = grad(mapping.outputs, mapping.sources, zeros, retain_graph=True, allow_unused=True)
    for gradient, source in zip(found, mapping.sources, strict=True):
        if gradient is not None and gradient.layout is not strided:
            check_layout(gradient, source)
    if any(gradient is not None and to_dense(read_array(gradient)).any() for gradient in found):
        raise GradcheckError("backward not multiplied by grad_output")


def check_layout(gradient: Tensor, source: Tensor) -> None:
    """Check that a sparse gradient has the layout of its input."""
    if gradient.layout is not source.layout:
        raise GradcheckError(f"grad is incorrect layout ({gradient.layout} is not {source.layout})")
    kind = str(gradient.layout).removeprefix("torch.").removesuffix("_coo")
    for name in ("sparse_dim", "dense_dim"):
        got, expected = getattr(gradient, name)(), getattr(source, name)()
        if got != expected:
            raise GradcheckError(f"grad is {kind} tensor, but has incorrect {name} {got}, expected {expected}")


def check_undefined_gradients(mapping: Mapping) -> None:
    """Check that undefined gradients of outputs are treated as zeros, for all outputs together and for each output separately."""
    count = len(mapping.outputs)
    cases = [set(range(count)), *({number} for number in range(count) if count > 1)]
    for undefined in cases:
        error: BaseException | None = None
        try:
            found = gradients_of_undefined(mapping, undefined)
        except RuntimeError as raised:
            error = raised
        if error is None and not any(
            gradient is not None and to_dense(read_array(gradient)).any() for gradient in found
        ):
            continue
        warn(report.UNDEFINED_WARNING)
        words = report.UNDEFINED_GRADS_UNEXPECTED if error else report.UNDEFINED_GRADS_MEAN_ZERO
        raise failure(words, report.UNDEFINED_NOTE) from error


class Undefined(Function):
    """Return the input, and drop its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return a view of `x`."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> None:
        """Return no gradient."""


def gradients_of_undefined(mapping: Mapping, undefined: set[int]) -> tuple[Any, ...]:
    """Return the gradients of the inputs if the gradients of some outputs are undefined and the other gradients are zero."""
    outputs = [
        Undefined.apply(output) if number in undefined else output
        for number, output in enumerate(mapping(*mapping.inputs))
    ]
    zeros = [wrap(numpy.zeros_like(output._array)) for output in outputs]
    return grad(outputs, mapping.sources, zeros, allow_unused=True)


def check_undefined_tangents(mapping: Mapping) -> None:
    """Check that an input without a tangent is treated like an input with tangent zero, for each of several inputs."""
    draw = Directions()
    directions: list[Array | None] = [draw(source) for source in mapping.sources]
    for number, source in enumerate(mapping.sources):
        zero = tangents_at(mapping, number, numpy.zeros(source._array.size), directions)
        of_zero = forward_product(mapping, zero)
        zero[number] = None
        of_undefined = forward_product(mapping, zero)
        for output, (got, expected) in enumerate(zip(of_zero, of_undefined, strict=True)):
            if got is not None and expected is not None and not close(got._array, expected._array, 1e-5, 1e-8):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {output} when input: {source} has an undefined "
                    f"tangent value. Got: {got} but expected: {expected}"
                )


def check_batched_gradients(mapping: Mapping) -> None:
    """Check that a batch of gradients gives the same results as separate gradients."""
    for number, output in enumerate(mapping.outputs):

        def product(vector: Tensor, output: Tensor = output) -> list[Any]:
            return list(grad(output, mapping.sources, vector, retain_graph=True, allow_unused=True))

        def place(source: int, output: int = number) -> str:
            return f"For output {output} and input {source}:"

        compare_batched(product, output, mapping.sources, place, report.BATCHED, report.BATCHED_NOTE)


def check_batched_tangents(mapping: Mapping) -> None:
    """Check that a batch of tangents gives the same results as separate tangents."""
    for number, source in enumerate(mapping.sources):

        def product(tangent: Tensor, number: int = number) -> list[Any]:
            given = [tangent if position == number else None for position in range(len(mapping.sources))]
            return forward_product(mapping, given)

        def place(output: int, source: int = number) -> str:
            return f"For output {output} and input {source}:"

        compare_batched(product, source, mapping.outputs, place, report.BATCHED_FORWARD, report.BATCHED_FORWARD_NOTE)


def compare_batched(
    product: Callable[[Tensor], list[Any]],
    like: Tensor,
    tensors: list[Tensor],
    place: Callable[[int], str],
    words: str,
    note: str,
) -> None:
    """Raise an error unless `product` gives the same results for a batch of vectors, with one result for each of `tensors`."""
    from ..transforms.vmap import vmap
    from ..transforms.vmap_interpreter import LEGACY

    def completed(vector: Tensor) -> tuple[Tensor, ...]:
        found = zip(product(vector), tensors, strict=True)
        return tuple(zeros_like(tensor.detach()) if result is None else result for result, tensor in found)

    vectors = [randn_like(like.detach()) for _ in range(2)]
    separate = [completed(vector) for vector in vectors]
    try:
        found = vmap(completed, randomness=LEGACY)(stack(vectors))
    except RuntimeError as error:
        raise failure(f"While computing batched gradients, got: {error}\n{words}", note) from error
    for number, (got, *expected) in enumerate(zip(found, *separate, strict=True)):
        wanted = stack(expected)
        if not close(got._array, wanted._array, 1e-5, 1e-8):
            raise failure(f"{place(number)}\n{words}\nGot:\n{got}\n\nExpected:\n{wanted}", note)


# --- directions -----------------------------------------------------------------------------------------------------


class Directions:
    """Draws random directions of norm 1. Every check gets the same directions, which equal PyTorch's."""

    def __init__(self) -> None:
        self.generator = Generator()

    def __call__(self, tensor: Tensor) -> Array:
        """Return a flat direction with as many elements as `tensor`, in its precision."""
        values = rand(tensor.numel(), generator=self.generator, dtype=float32)._array
        values = values.astype(tensor._array.real.dtype)
        with unwarned():  # without elements
            return values / values.dtype.type(numpy.linalg.norm(values.astype(numpy.float64)))


def directions_of(source: Tensor, draw: Directions) -> list[Array]:
    """Return one direction for a real tensor, and two for a complex tensor. Only stored elements move."""
    found = [draw(source) for _ in range(2 if source.is_complex() else 1)]
    if source.layout is not strided:
        array: Any = source._array
        places = places_in_dense(coalesce(array))
        for direction in found:
            direction[~numpy.isin(numpy.arange(direction.size), places)] = 0
    return found


def gradients_along(mapping: Mapping, output: int, vector: Array, directions: list[list[Array]]) -> list[Array]:
    """Return `v^T J u` for all inputs and one output."""
    found = []
    for gradient, along in zip(backward_product(mapping, output, vector), directions, strict=True):
        if gradient is None:
            found.append(joined([numpy.zeros((), u.dtype) for u in along]))
        else:
            flat = to_dense(elements_of(gradient)).reshape(-1)
            found.append(joined([part @ u for part, u in zip((flat.real, flat.imag), along, strict=False)]))
    return found


def joined(parts: list[Any]) -> Array:
    """Return a number from its real part and, if given, its imaginary part."""
    if len(parts) == 1:
        return numpy.asarray(parts[0])
    return numpy.asarray(parts[0] + 1j * parts[1])


# --- comparing and failing ------------------------------------------------------------------------------------------


def close(analytical: Array, expected: Array, rtol: float, atol: float) -> bool:
    """Return whether two arrays agree, in the precision of the more precise array."""
    kind = numpy.result_type(analytical, expected)
    return bool(allclose(wrap(analytical.astype(kind)), wrap(expected.astype(kind)), rtol, atol))


def failure(words: str, note: str) -> GradcheckError:
    """Return an error with PyTorch's message and an additional note."""
    error = GradcheckError(words)
    error.add_note(note)
    return error


def mismatch(
    mapping: Mapping, output: int, source: int, found: Array, expected: Array, options: Options, forward: bool = False
) -> GradcheckError:
    """Return the error for a derivative that differs from finite differences."""
    words = report.mismatch(mapping, output, source, found, expected, forward)
    matrices = (found, expected)
    if options.fast_mode:
        analytical = (
            forward_jacobians(mapping, source)[output] if forward else backward_jacobians(mapping, output)[source]
        )
        matrices = (analytical, numerical_by(mapping, mapping.sources[source], options.eps)[output])
        words += report.explained(*matrices, close(*matrices, options.rtol, options.atol))
    return failure(words, report.note(mapping, output, source, matrices, options.rtol, options.atol))


def moves(mapping: Mapping) -> int:
    """Return the number of times that finite differences evaluate the function."""
    return sum(source._array.size * (4 if source.is_complex() else 2) for source in mapping.sources)


@contextmanager
def progress(mapping: Mapping, total: int, what: str) -> Iterator[None]:
    """Show the progress of a check that takes a long time."""
    mapping.watch = bar = report.Progress(total, what)
    try:
        yield
    finally:
        bar.close()


def random_gradient(output: Tensor, non_contiguous: bool) -> Tensor:
    """Return a gradient for `output` that requires grad, with uniformly distributed elements from -1 to 1."""
    shape: tuple[int, ...] = output.shape
    if non_contiguous and output.numel() > 1:  # a view of every second element
        shape = (*shape[:-1], 2 * shape[-1])
    gradient = empty(shape, dtype=output.dtype)
    (view_as_real(gradient) if output.is_complex() else gradient).uniform_(-1, 1)
    if shape != output.shape:
        gradient = gradient[..., 1::2]
    return gradient.requires_grad_()
