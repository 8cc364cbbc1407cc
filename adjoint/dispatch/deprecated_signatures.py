"""Calls in a deprecated form with numbers before tensors, such as `x.add_(2, y)` for `x.add_(y, alpha=2)`."""

from __future__ import annotations

from typing import Any

from .._runtime.tracebacks import warn_once
from ..tensor import Tensor
from .arguments import MISSING, invalid_arguments, is_of_type
from .declaration import Operator


def in_new_order(op: Operator, args: tuple[Any, ...], keywords: tuple[Any, ...], inplace: bool) -> list[Any]:
    """Return the arguments of a deprecated form in the order of the declaration.

    `inplace` selects the in-place variant.

    Raises:
        TypeError: if the arguments match no deprecated form either.
    """
    given = [value for value in args if value is not MISSING]
    tensors = [value for value in given if isinstance(value, Tensor)]
    numbers = [value for value in given if is_of_type(value, "Number") and not isinstance(value, Tensor)]
    names = [name for name in op.names if name not in op.keyword_only]
    values = dict(zip([name for name in op.names if name in op.keyword_only], keywords, strict=True))
    function = f"{op.function_name}_" if inplace else op.function_name
    fits = len(tensors) == len(names) and len(tensors) + len(numbers) == len(given)
    fits = fits and all(isinstance(value, Tensor) for value in given[len(numbers) + 1 :])
    if (
        not fits
        or len(numbers) > len(op.deprecated_order)
        or any(values[name] is not op.defaults[name] for name in values)
    ):
        raise invalid_arguments(function, *given)
    others = [f"Tensor {name}" for name in names[1:]]
    former = [f"Number {name}" for _, name in zip(numbers, op.deprecated_order, strict=False)]
    warn_once(
        "deprecated order",
        f"This overload of {function} is deprecated:\n\t{function}({', '.join(former + others)})\n"
        "Consider using one of the following signatures instead:\n\t"
        f"{function}({', '.join(others)}, *, {', '.join(f'Number {name} = 1' for name in op.deprecated_order)})",
    )
    values.update(zip(op.deprecated_order, numbers, strict=False))
    return [*tensors, *values.values()]
