"""Computing missing values of intermediate tensors again, from the values in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from ..autograd.grad_mode import no_grad
from ..tape.node import Node
from ..tape.saved import RELEASED
from ..tensor import Tensor, wrap
from .model import OperationBox
from .reading import kind_of
from .recording import MOST_ELEMENTS, plain_array


def recomputed(node: Node, operation: OperationBox, values: Mapping[str, Any]) -> Any:
    """Return the result of the operation that recorded `node`, or None if an operand is unknown.

    Args:
        operation: the record of the operation, with the names and ids of its operands.
        values: the arrays of tensors, by the ids of their records.
    """
    operator = kind_of(type(node)).operator
    if operator is None or operator.sequence is not None or operator.random or type(node._grad_shape) is list:
        return None
    if numpy.prod(node._grad_shape, dtype=numpy.int64) > MOST_ELEMENTS:
        return None
    operands = dict(zip(operation.names, operation.inputs, strict=True))
    arguments: list[Any] = []
    for name in operator.names:
        if name in operator.tensors:
            if name not in operands and operator.kinds[name] != "Array":
                return None  # omitted, or not recorded
            array = values.get(operands.get(name, ""))
            if array is None:
                return None
            arguments.append(wrap(array))
        elif name in operator.saved_values:
            value = getattr(node, f"saved_{name}", RELEASED)
            if value is RELEASED:
                return None
            arguments.append(value)
        else:
            return None
    with no_grad():
        try:
            result = operator.function(*arguments)
        except Exception:  # noqa: BLE001  (of the operator: then the value is not known)
            return None
    array = plain_array(result._array) if isinstance(result, Tensor) else None
    if array is None or array.shape != tuple(node._grad_shape) or array.dtype != node._grad_dtype:
        return None
    return array
