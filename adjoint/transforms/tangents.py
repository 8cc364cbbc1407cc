"""Forward mode: the rules that compute the tangents of results, derived from declarations.

The `tangent` option of a declaration names the rule. `"linear"`: apply the operator itself to the tangents, as for all
views. `"multilinear"`: add the results of the operator with each operand in turn replaced by its tangent.
`"elementwise"`: apply the formula of the gradient to the tangent, because a diagonal Jacobian is its own transpose.
`"affine"`: add `beta` times the tangent of the first operand to the multilinear rule for the other operands. Without
the option, the vector-Jacobian product is transposed (`adjoint.autograd.forward_ad`). This is correct for every
operator, but needs two backward passes.
"""

from __future__ import annotations

from typing import Any

from ..dispatch.declaration import ARRAYS, VALUE, Operator, parameters_of
from ..dispatch.decorators import tensors as operators
from ..tensor import Tensor

TRANSPOSE: Any = type("Transpose", (), {"__repr__": lambda self: "<transpose the gradient>"})()
"""The result of `tangents` if the declaration names no simpler rule."""


def tangents(op: Operator, args: tuple[Any, ...], given: dict[str, Any], outputs: tuple[Tensor, ...]) -> Any:
    """Return the tangent of each output (None: zero), or `TRANSPOSE`, for the tangents `given` of operands, by name."""
    if op.tangent == "linear":
        return linear(op, args, given)
    if op.tangent == "multilinear":
        return multilinear(op, args, given)
    if op.tangent == "affine":
        return affine(op, args, given, outputs[0])
    if op.tangent == "elementwise" and op.joint is None:
        for value in (*args, *outputs):
            if is_complex(value):
                return TRANSPOSE
        return (elementwise(op, args, given, outputs), *(None,) * (len(outputs) - 1))
    return TRANSPOSE


def is_complex(value: Any) -> bool:
    """Return whether `value` is a complex tensor or number."""
    return isinstance(value, complex) or (isinstance(value, Tensor) and value._array.dtype.kind in "cW")


def linear(op: Operator, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...]:
    """Apply the operator to the tangents."""
    replaced = list(args)
    for position, name in enumerate(op.names):
        if name not in given:
            continue
        value, tangent = args[position], given[name]
        if op.kinds[name] == ARRAYS:
            replaced[position] = [
                t if t is not None else x.new_zeros(x.shape) for x, t in zip(value, tangent, strict=True)
            ]
        elif isinstance(value, Tensor):
            replaced[position] = tangent if tangent is not None else value.new_zeros(value.shape)
    result = op.apply(*replaced)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def multilinear(op: Operator, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...]:
    """Return the sum of the operator with each operand in turn replaced by its tangent."""
    total = None
    for name, tangent in given.items():
        if tangent is None:
            continue
        position = op.names.index(name)
        term = op.apply(*args[:position], tangent, *args[position + 1 :])
        total = term if total is None else total + term
    return (total,)


def affine(op: Operator, args: tuple[Any, ...], given: dict[str, Any], result: Tensor) -> tuple[Any, ...]:
    """Return `beta` times the tangent of the first operand, plus the result of `multilinear` for the other operands."""
    added = given.pop(op.names[0], None)
    (total,) = multilinear(op, (result.new_zeros(()), *args[1:]), given)
    if added is not None:
        added = (added * args[op.names.index("beta")]).to(result.dtype)
        total = added.expand(result.shape) if total is None else total + added
    return (total,)


def elementwise(op: Operator, args: tuple[Any, ...], given: dict[str, Any], outputs: tuple[Tensor, ...]) -> Any:
    """Return the sum of the gradient formulas, applied to the tangents, as the tangent of the first output."""
    result = outputs[0]
    named = dict(zip(op.names, args, strict=True))
    total = None
    for name, tangent in given.items():
        if tangent is None:
            continue
        if tangent._array.dtype is not result._array.dtype:
            tangent = tangent.to(result.dtype)
        if tangent._array.shape != result._array.shape:
            tangent = tangent.expand(result._array.shape)
        formula = op.formulas[name]
        special = {"grad": tangent, "grads": [tangent], "xp": operators, "result": result}
        special.update(zip(op.outputs, outputs, strict=False))
        values = [special[n] if n in special else operand(op, n, named, args) for n in parameters_of(formula)]
        term = formula(*values)
        total = term if total is None else total + term
    if total is None:
        return None
    if total._array.shape != result._array.shape:
        total = total.expand(result._array.shape)
    return total if total._array.dtype is result._array.dtype else total.to(result.dtype)


def operand(op: Operator, item: str, named: dict[str, Any], args: tuple[Any, ...]) -> Any:
    """Return the value that a formula calls `item`: an operand, a parameter, or the shape or dtype of an operand."""
    if item in named:
        value = named[item]
        return operators.as_tensor(value) if op.kinds[item] != VALUE and not isinstance(value, Tensor) else value
    return op.code.saving.values([named.get(name, arg) for name, arg in zip(op.names, args, strict=True)])[item]
