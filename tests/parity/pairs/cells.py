"""A cell: one operator within two features, the results of both libraries, and the difference of the results."""

import random
import re
import warnings
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy
import torch

from tests.parity.candidate import candidate
from tests.parity.comparison import dtype_name
from tests.parity.conversion import to_array

from .features import FEATURES, flat, loss, numbers
from .operators import OPERATORS

# The tolerance, relative to the largest number of a tensor, for each number of digits that the features preserve.
TOLERANCES = {2: 3e-2, 4: 2e-5, 7: 1e-7}

LARGE = 36_000
"""The number of elements in the first input of a large cell, which is above the thresholds of compiled kernels and threads."""


class Cell(NamedTuple):
    """`outer` of `inner` of `operator`."""

    outer: str
    inner: str
    operator: str

    def __str__(self) -> str:
        return f"{self.outer} of {self.inner} of {self.operator}"


class Answer(NamedTuple):
    """Results and gradients as plain data, and the error that ended the program."""

    parts: list[tuple[str, Any]]
    error: Exception | None


def all_cells() -> list[Cell]:
    return [Cell(outer, inner, operator) for operator in OPERATORS for outer in FEATURES for inner in FEATURES]


@cache
def arrays(name: str, *, large: bool) -> list[numpy.ndarray]:
    """Return the inputs of an operator."""
    shapes = OPERATORS[name].shapes
    rest = numpy.prod([size for size in shapes[0] if size != "n"])
    count = LARGE // int(rest) if large else 3
    generator = numpy.random.default_rng(len(name))
    return [_distinct(generator, [count if size == "n" else size for size in shape]) for shape in shapes]


def _distinct(generator: numpy.random.Generator, shape: list[int]) -> numpy.ndarray:
    size = int(numpy.prod(shape))
    return (0.3 + 1.4 * (generator.permutation(size) + 0.5) / size).reshape(shape)


def program(library: Any, cell: Cell, plain: tuple[bool, bool] = (False, False)) -> tuple[Any, list[Any]]:
    """Return a cell's function and its leaves. `plain` names the features that are replaced by their meanings."""
    features = FEATURES[cell.outer], FEATURES[cell.inner]
    function = partial(OPERATORS[cell.operator].function, library)
    for each, by_meaning in zip(features[::-1], plain[::-1], strict=True):
        function = partial(each.meaning if by_meaning else each.apply, library, function)
    large = any(each.is_large for each in features)
    first_run(library, cell.operator)
    library.manual_seed(0)
    return function, [
        library.from_numpy(array).clone().requires_grad_() for array in arrays(cell.operator, large=large)
    ]


def answer(library: Any, cell: Cell, plain: tuple[bool, bool] = (False, False)) -> Answer:
    """Return the library's result."""
    function, leaves = program(library, cell, plain)
    parts: list[tuple[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = flat(function(*leaves))
            parts += [(f"result {number}", seen(one)) for number, one in enumerate(results)]
            total = loss(library, results)
            if total is not None:
                total.backward()
            parts += [(f"gradient {number}", seen(leaf.grad)) for number, leaf in enumerate(leaves)]
        except Exception as error:  # all exceptions are compared
            return Answer(parts, error)
    return Answer(parts, None)


@cache
def first_run(library: Any, name: str) -> None:
    """Let an operator create its module once, outside of all features."""
    OPERATORS[name].function(library, *map(library.from_numpy, arrays(name, large=False)))


class Seen(NamedTuple):
    """The compared properties of a tensor."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool
    layout: str
    values: numpy.ndarray | None


def seen(tensor: Any) -> Seen | None:
    if tensor is None:
        return None
    values = None
    if tensor.device.type != "meta":
        values = to_array(tensor.to_dense() if tensor.is_sparse else tensor)
        values = values.astype(numpy.complex128 if tensor.is_complex() else numpy.float64)
    return Seen(
        type(tensor).__name__.partition("_")[0],
        dtype_name(tensor.dtype),
        tuple(tensor.shape),
        tensor.requires_grad,
        dtype_name(tensor.layout),
        values,
    )


def difference_of(actual: Seen | None, expected: Seen | None, tolerance: float, *, by_meaning: bool) -> str | None:
    """Return the difference of two tensors. If the standard is a meaning, do not compare classes, layouts and `requires_grad`."""
    if actual is None or expected is None:
        return None if actual is expected else f"{_shown(actual)}, expected {_shown(expected)}"
    for name in ("dtype", "shape") if by_meaning else ("kind", "dtype", "shape", "layout"):
        one, two = getattr(actual, name), getattr(expected, name)
        if one != two:
            return f"{name} {one}, expected {two}"
    if actual.values is None or expected.values is None:
        return None if actual.values is expected.values else "values, expected none"
    return _values_differ(actual.values, expected.values, tolerance)


def _values_differ(actual: numpy.ndarray, expected: numpy.ndarray, tolerance: float) -> str | None:
    known = numpy.abs(expected[numpy.isfinite(expected)])
    largest = max(1.0, known.max(initial=0.0))
    wrong = ~numpy.isclose(actual, expected, 0, tolerance * largest, equal_nan=True)
    if not wrong.any():
        return None
    where = tuple(int(index) for index in numpy.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} numbers, first at {where}: {actual[where]}, expected {expected[where]}"


def _shown(tensor: Seen | None) -> str:
    return "nothing" if tensor is None else f"{tensor.dtype} {tensor.shape}"


def plain_words(error: Exception) -> str:
    """Return the type and the first line of an error, without the library's name and addresses."""
    text = re.sub(r"\b(adjoint|torch)\.|(?<=Tagged_)\w+", "torch.", str(error).partition("\n")[0])
    return f"{type(error).__name__}: {re.sub('0x[0-9a-f]+', '0x', text)}"


def answers_differ(actual: Answer, expected: Answer, tolerance: float, *, by_meaning: bool = False) -> str | None:
    """Return the difference of two programs: an error, the number of results, or one result."""
    for (name, one), (expected_name, two) in zip(actual.parts, expected.parts, strict=False):
        difference = (
            difference_of(one, two, tolerance, by_meaning=by_meaning) if name == expected_name else expected_name
        )
        if difference:
            return f"{name}: {difference}"
    one, two = (each.error and plain_words(each.error) for each in (actual, expected))
    if one != two:
        return f"raised {one or 'nothing'}, expected {two or 'nothing'}"
    if len(actual.parts) != len(expected.parts):
        return f"{len(actual.parts)} results and gradients, expected {len(expected.parts)}"
    if by_meaning:
        return None
    return next(
        (d for one, two in zip(actual.parts, expected.parts, strict=True) if (d := recording_differs(*one, two[1]))),
        None,
    )


def recording_differs(name: str, actual: Seen | None, expected: Seen | None) -> str | None:
    """Return a difference in `requires_grad`. It is checked last, after all values are equal."""
    if actual is None or expected is None or actual.requires_grad == expected.requires_grad:
        return None
    return f"{name}: requires_grad {actual.requires_grad}, expected {expected.requires_grad}"


def tolerance_of(cell: Cell) -> float:
    return TOLERANCES[min(FEATURES[cell.outer].digits, FEATURES[cell.inner].digits)]


AS_PYTORCH, AS_MEANT_BY_PYTORCH, AS_MEANT, REFUSED = "as PyTorch", "as PyTorch answers to the meaning", "as meant", ""


def meanings(cell: Cell) -> Iterator[tuple[bool, bool]]:
    """Yield the features to replace by their meanings: first no feature, then one feature, then both."""
    possible = [FEATURES[name].meaning is not None for name in (cell.outer, cell.inner)]
    for outer, inner in ((True, False), (False, True), (True, True)):
        if possible[0] >= outer and possible[1] >= inner:
            yield outer, inner


def judge(cell: Cell) -> tuple[str, str | None]:
    """Return the standard for the cell, and the difference from this standard."""
    expected, actual = answer(torch, cell), answer(candidate, cell)
    difference = answers_differ(actual, expected, tolerance_of(cell))
    if difference is None or expected.error is None or actual.error is not None:
        return AS_PYTORCH, difference
    for library, judged in ((torch, AS_MEANT_BY_PYTORCH), (candidate, AS_MEANT)):
        others = differences_from_meanings(cell, actual, library)
        if None in others:
            return judged, None
        if others:
            return judged, f"{others[0]} (by its meaning; {difference})"
    return AS_PYTORCH, difference


def differences_from_meanings(cell: Cell, actual: Answer, library: Any) -> list[str | None]:
    """Return the difference between adjoint's result and a library's result for the cell with meanings in place of features."""
    meant = [one for one in (answer(library, cell, plain) for plain in meanings(cell)) if one.error is None]
    return [answers_differ(actual, one, tolerance_of(cell), by_meaning=True) for one in meant]


def is_as_meant(cell: Cell) -> bool:
    """Return whether adjoint agrees with PyTorch's result for a meaning of the cell or, without such a result, with adjoint's."""
    actual = answer(candidate, cell)
    return None in (
        differences_from_meanings(cell, actual, torch) or differences_from_meanings(cell, actual, candidate)
    )


def is_derivative(cell: Cell) -> bool:
    """Return whether adjoint's gradients agree with central differences along one direction, if everything is float64."""
    cell = Cell(*("negated" if FEATURES[name].digits < 7 else name for name in cell[:2]), cell.operator)
    function, leaves = program(candidate, cell)
    directions = [numbers(candidate, leaf, 2.0) for leaf in leaves]
    total = loss(candidate, function(*leaves))
    total.backward()
    slope = sum(
        float((leaf.grad * way).sum()) for leaf, way in zip(leaves, directions, strict=True) if leaf.grad is not None
    )
    ends = []
    for step in (STEP, -STEP):
        function, leaves = program(candidate, cell)
        moved = [(leaf.detach() + step * way).requires_grad_() for leaf, way in zip(leaves, directions, strict=True)]
        ends.append(float(loss(candidate, function(*moved)).detach()))
    return abs((ends[0] - ends[1]) / (2 * STEP) - slope) <= 1e-5 * max(1.0, abs(slope))


STEP = 1e-5


def sample(seed: int, count: int | None = None) -> list[Cell]:
    """Return cells in an order that depends on the seed."""
    cells = all_cells()
    random.Random(seed).shuffle(cells)
    return cells[:count]
