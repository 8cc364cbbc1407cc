"""Compare two results. Every function returns None, or describes the difference."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy
import torch

from .conversion import to_array

# Relative and absolute tolerance, the defaults of torch.testing.assert_close.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "complex32": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
}


class Exact(NamedTuple):
    """PyTorch's results in double precision: `true` for the given arguments, and `nearby` for several changes of the arguments in
    their last digits. The distances of `nearby` from `true` show how precisely the arguments determine the result.
    """

    true: Any
    nearby: list[Any]

    def items(self, count: int) -> list["Exact | None"]:
        """Return one `Exact` for each item, if the results are sequences of `count` items."""
        if not _has_items(self.true, count):
            return [None] * count
        nearby = [near for near in self.nearby if _has_items(near, count)]
        return [Exact(self.true[index], [near[index] for near in nearby]) for index in range(count)]

    def arrays(self, shape: tuple[int, ...]) -> "Exact | None":
        """Return the results as arrays, if they are tensors of this shape."""
        found = [to_array(one) for one in (self.true, *self.nearby) if is_tensor(one) and tuple(one.shape) == shape]
        return Exact(found[0], found[1:]) if is_tensor(self.true) and tuple(self.true.shape) == shape else None


def _has_items(value: Any, count: int) -> bool:
    return isinstance(value, list | tuple) and len(value) == count


def is_tensor(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "grad_fn") and hasattr(value, "requires_grad")


def dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def arrays_differ(actual: numpy.ndarray, expected: numpy.ndarray, exact: Exact | None = None) -> str | None:
    """Compare two arrays within the tolerance of the dtype.

    If a less precise dtype exceeds the tolerance, compare errors, which are the distances from the `exact` result. The
    results of both libraries contain rounding errors, because the order of sums and the rounding of intermediate
    results differ.
    """
    rtol, atol = TOLERANCES.get(actual.dtype.name, (0, 0))
    if actual.dtype.kind == "W" and expected.dtype == actual.dtype:
        actual, expected = actual.astype(numpy.complex64), expected.astype(numpy.complex64)
    if not rtol:
        wrong = actual != expected
    else:
        wrong = ~_close(actual, expected, rtol, atol)
        if exact is not None and wrong.any():
            wrong &= ~_close(actual, exact.true.astype(actual.dtype), rtol, atol)
            wrong &= ~_errors_allow(actual, expected, exact)
    if not wrong.any():
        return None
    where = tuple(int(index) for index in numpy.argwhere(wrong)[0])
    first = f"{actual[where]!r}, expected {expected[where]!r}"
    return f"{int(wrong.sum())} of {wrong.size} elements differ, first at {where}: {first}"


def _close(actual: numpy.ndarray, expected: numpy.ndarray, rtol: float, atol: float) -> numpy.ndarray:
    """Compare arrays.

    A complex number is infinite if one of its parts is infinite. The other part is then undefined (C99, annex G).
    """
    kind = numpy.complex128 if actual.dtype.kind == "c" else numpy.float64
    one, two = actual.astype(kind), expected.astype(kind)
    close = numpy.isclose(one, two, rtol, atol, equal_nan=True)
    if kind is numpy.complex128:
        close |= numpy.isinf(one) & numpy.isinf(two)
    return close


def _errors_allow(actual: numpy.ndarray, expected: numpy.ndarray, exact: Exact) -> numpy.ndarray:
    """Return which elements are as precise as PyTorch's elements.

    The error of such an element has one of three limits: twice the error of PyTorch's element, four times the effect of
    changes in the last digits of arguments, or eight units in the last place of the largest element. PyTorch's error is
    used only if half of the digits of PyTorch's result are correct. This condition fails for numbers that depend on the
    dtype, such as random numbers.
    """
    kind = exact.true.dtype if exact.true.dtype.kind in "fc" else numpy.dtype(numpy.float64)
    one, two, true = actual.astype(kind), expected.astype(kind), exact.true.astype(kind)
    known = numpy.isfinite(one) & numpy.isfinite(two) & numpy.isfinite(true)
    nearby = numpy.max([numpy.abs(near - true) for near in exact.nearby], axis=0, initial=0)
    of_pytorch = numpy.abs(two - true)
    eps = float(ml_dtypes.finfo(actual.dtype).eps)
    measured = of_pytorch <= eps**0.5 * numpy.maximum(1, numpy.abs(true))
    units = 8 * eps * numpy.abs(true).max(where=known, initial=0)
    allowed = numpy.maximum(numpy.maximum(4 * nearby, units), numpy.where(measured, 2 * of_pytorch, 0))
    return known & (numpy.abs(one - true) <= allowed)


def results_differ(actual: Any, expected: Any, exact: Exact | None = None, *, values: bool = True) -> str | None:
    """Compare the results of two calls: types, named fields, dtypes, shapes, requires_grad and (by default) values."""
    if is_tensor(expected):
        if not is_tensor(actual):
            return f"returned {type(actual).__name__} {actual!r}, expected a tensor"
        return tensors_differ(actual, expected, exact, values=values)
    if isinstance(expected, list | tuple):
        return _sequences_differ(actual, expected, exact, values=values)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or list(actual) != list(expected):
            return f"returned {actual!r}, expected {expected!r}"
        return next((d for k in expected if (d := results_differ(actual[k], expected[k], values=values))), None)
    if isinstance(expected, torch.dtype | torch.device | torch.layout | torch.memory_format):
        return None if str(actual) == str(expected) else f"returned {actual}, expected {expected}"
    if type(actual).__name__ != type(expected).__name__:
        return f"returned {type(actual).__name__} {actual!r}, expected {type(expected).__name__} {expected!r}"
    if isinstance(expected, float | complex) and values:
        difference = arrays_differ(numpy.asarray(actual), numpy.asarray(expected))
        return difference and f"returned {actual!r}, expected {expected!r}"
    return None if actual == expected or not values else f"returned {actual!r}, expected {expected!r}"


def tensors_differ(
    actual: Any, expected: torch.Tensor, exact: Exact | None = None, *, values: bool = True
) -> str | None:
    if dtype_name(actual.dtype) != dtype_name(expected.dtype):
        return f"dtype {dtype_name(actual.dtype)}, expected {dtype_name(expected.dtype)}"
    if tuple(actual.shape) != tuple(expected.shape):
        return f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    if actual.requires_grad != expected.requires_grad:
        return f"requires_grad {actual.requires_grad}, expected {expected.requires_grad}"
    if not values:
        return None
    array = to_array(actual)
    if array.shape != tuple(expected.shape):
        return f"numpy() has shape {array.shape} but the tensor has {tuple(expected.shape)}"
    return arrays_differ(array, to_array(expected), exact and exact.arrays(array.shape))


def _sequences_differ(actual: Any, expected: Any, exact: Exact | None, *, values: bool) -> str | None:
    if isinstance(actual, list) != isinstance(expected, list) or not isinstance(actual, list | tuple):
        return f"returned a {type(actual).__name__}, expected a {type(expected).__name__}"
    if len(actual) != len(expected):
        return f"returned {len(actual)} items, expected {len(expected)}"
    if type(expected).__module__ == "torch.return_types":
        if type(actual).__name__ != type(expected).__name__:
            return f"returned type {type(actual).__name__}, expected {type(expected).__name__}"
        missing = [field for field in type(expected).__match_args__ if not hasattr(actual, field)]
        if missing:
            return f"the returned tuple has no field {missing}"
    exacts = exact.items(len(expected)) if exact else [None] * len(expected)
    for index, (one, two, three) in enumerate(zip(actual, expected, exacts, strict=True)):
        difference = results_differ(one, two, three, values=values)
        if difference:
            return f"item {index}: {difference}"
    return None


def tensors_in(value: Any) -> Iterator[Any]:
    """Return the tensors of a result, depth first."""
    if is_tensor(value):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def graph(tensor: Any, limit: int = 200) -> list[tuple[str, list[tuple[int, int] | None]]]:
    """Return the graph of a tensor as plain data: names of nodes in the order of a walk, edges as (number of the node, index)."""
    root = tensor.grad_fn
    if root is None:
        return []
    order, numbers, described = [root], {root: 0}, []
    for node in order:
        if len(described) == limit:
            break
        edges: list[tuple[int, int] | None] = []
        for next_node, index in node.next_functions:
            if next_node is None:
                edges.append(None)
                continue
            if next_node not in numbers:
                numbers[next_node] = len(order)
                order.append(next_node)
            edges.append((numbers[next_node], index))
        described.append((node.name().removeprefix("torch::autograd::"), edges))
    return described


def graphs_differ(actual: Any, expected: Any) -> str | None:
    """Compare the class name of `grad_fn` and its graph: names, edges and output numbers."""
    one, two = type(actual.grad_fn).__name__, type(expected.grad_fn).__name__
    if one != two:
        return f"grad_fn is {one}, expected {two}"
    if actual.output_nr != expected.output_nr:
        return f"output_nr is {actual.output_nr}, expected {expected.output_nr}"
    first, second = graph(actual), graph(expected)
    return None if first == second else f"graph is {first}, expected {second}"


def errors_differ(actual: BaseException | None, expected: BaseException, *, messages: bool = False) -> str | None:
    """Compare the types of exceptions and, with `messages`, the messages without PyTorch's advice to its developers."""
    if actual is None:
        return f"raised nothing, expected {type(expected).__name__}: {expected}"
    if type(actual).__name__ != type(expected).__name__:
        return f"raised {type(actual).__name__}: {actual}, expected {type(expected).__name__}: {expected}"
    one, two = (str(error).partition("  (Could this error")[0] for error in (actual, expected))
    return f"said {one!r}, expected {two!r}" if messages and one != two else None
