"""The table of functions that turn operators into ONNX nodes, and their common code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import adjoint as torch

from .builder import Builder, Extent
from .capture import Call

Rule = Callable[..., Any]

RULES: dict[str, Rule] = {}
"""The functions by operator name.

Each takes the builder, the call and its arguments, and returns the names of the results.
"""


def rule(names: str) -> Callable[[Rule], Rule]:
    """Declare the function for operators of these names."""

    def put(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return put


def add_call(builder: Builder, call: Call) -> None:
    """Add the nodes of one call.

    Raises:
        RuntimeError: if the operator has no ONNX form here.
    """
    name = call.name
    changes = name.endswith("_") and not name.endswith("__") and name not in RULES
    found = RULES.get(name[:-1] if changes else name)
    if found is None:
        raise RuntimeError(
            f"{call.func} has no form in ONNX here. Write the model without it, or compute it outside of the model."
        )
    results = found(builder, call, *call.args, **call.keywords)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    for tensor, result in zip(call.outputs, results, strict=False):
        if isinstance(tensor, torch.Tensor) and result is not None:
            builder.names[id(tensor)] = result
            builder.alive.append(tensor)
    if changes:
        builder.names[id(call.args[0])] = results[0]


def number(value: Any, dtype: Any) -> Any:
    """Return a number as a constant of a dtype."""
    return numpy.asarray(value, dtype.numpy)


def operand(builder: Builder, value: Any, dtype: Any) -> Any:
    """Return a tensor converted to a dtype, or a number as a constant."""
    if isinstance(value, torch.Tensor):
        return value if value.dtype == dtype else builder.cast(value, dtype)
    return number(value, dtype)


def common(one: Any, other: Any) -> Any:
    """Return the dtype to which two operands are promoted."""
    return torch.result_type(one, other)


def axes(builder: Builder, dims: Any) -> str:
    """Return dimensions as a value."""
    if any(isinstance(dim, Extent) for dim in dims):
        raise RuntimeError(
            "an operator needs the size of a dynamic dimension as a number: export the model with it fixed"
        )
    return builder.constant(numpy.array([int(dim) for dim in dims], numpy.int64))


def reduced(builder: Builder, kind: str, value: Any, dims: Any, keepdim: bool) -> Any:
    """Add a reduction over dimensions, or over all dimensions if none are given."""
    dims = [dims] if isinstance(dims, int) else list(dims or ())
    if builder.opset >= 18 or kind == "ReduceSum":
        return builder.op(kind, value, axes(builder, dims) if dims else None, keepdims=int(keepdim))
    return builder.op(kind, value, axes=dims or None, keepdims=int(keepdim))
