"""Operators on dtypes that kernels cannot compute with: the code that accepts their elements, and refusals by other operators.

The `roles` of a dtype and the option `narrow` of an operator decide which operators accept it. Views accept all dtypes.

    moves     the kernel moves the bytes of elements
    converts  the operator accepts such arrays unchanged
    reads     the kernel computes in float32 or complex64, and the result is rounded
    computes  like `reads`, except for float8_e8m0fnu, which has no sign
    alike     like `reads`, for 8-bit floats and one number
    halves    like `reads`, only for complex numbers of two halves
    eighths   like `reads`, only for 8-bit floats
    trivial   like `reads`, only for arrays without dimensions or without elements

Other operators raise their kernel's error for an unsupported dtype. If the kernel has no such error, the option
`narrow` may give PyTorch's name of the kernel after the role. The error then contains this name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import ndarray

from ..dtypes import OPAQUE, from_numpy, promote
from ..kernels.memory.copying import convert
from ..kernels.runtime.narrow_array import Narrow, is_narrow, kept, narrowed, widened
from .array_classes import Dense
from .declaration import Operator
from .extrapolation import leaves
from .meta import with_elements
from .plan import Plan


class OfNarrowDtype(Dense):
    """Arrays of elements that kernels cannot compute with."""

    words = ", if elements of that dtype take part"
    on_tensors = True

    def compute(self, plan: Plan, arrays: list[Any], kernel: Any = None) -> Any:
        """Return the results of the operator, or of its in-place `kernel`, for arrays with such dtypes among the operands."""
        op, compute = plan.op, super().compute
        role, _, name = (op.narrow or "").partition(" ")
        moves = role == "moves"
        if moves and op.operands:  # such as `where`, whose operands are promoted
            kinds = tuple((from_numpy(each.dtype), 2 if each.ndim else 1) for each in arrays[1:])
            arrays = [arrays[0], *(convert(each, promote(kinds).numpy) for each in arrays[1:])]
        given = [item for item in leaves(arrays) if isinstance(item, ndarray)]
        narrow = [array for array in given if type(array) is Narrow]
        if op.view or role == "converts" or not narrow:
            return compute(plan, arrays, kernel)
        dtype = narrow[0].dtype
        asked = arrays[op.names.index("dtype")] if "dtype" in op.names else None
        of_others = type(given[0]) is not Narrow and role and not moves  # a result has the dtype of the first operand
        if of_others or (asked is not None and not is_narrow(asked)):
            return compute(plan, with_elements(arrays, widened), kernel)
        roles = [(from_numpy(array.dtype).roles or "").split() for array in narrow]
        by_number = role == "alike" and "halves" not in roles[0] and narrow[-1].ndim == 0
        trivial = role == "trivial" and not any(array.size and array.ndim for array in narrow)
        if by_number or not (trivial or all(role in each for each in roles)):
            raise refusal(plan, arrays, dtype, compute, name or f"{op.function_name}_cpu")
        if moves:
            held = f"u{dtype.itemsize}"
            results = compute(plan, with_elements(arrays, lambda item: _seen(item, held)), kernel)
            return _mapped(results, lambda array: kept(array.view(dtype)) if array.dtype == held else array)
        wide = with_elements(arrays, widened)
        if asked is not None:
            wide[op.names.index("dtype")] = widened(narrow[0][:0]).dtype
        return _mapped(compute(plan, wide, kernel), lambda array: narrowed(array, dtype))

    def inplace_kernel(self, op: Operator) -> Any:
        """Return the kernel that writes to such arrays, or None if the operator computes in another dtype."""
        return op.kernel.inplace if op.narrow in ("moves", "converts") else None


NARROW = OfNarrowDtype()


def refusal(plan: Plan, arrays: list[Any], dtype: Any, compute: Callable[..., Any], kernel: str) -> Exception:
    """Return the error for an operator that does not accept elements of `dtype`, or its error about the arguments."""
    kind = from_numpy(dtype)
    name = f"'{kind.scalar_type}'"
    if not plan.op.random and "converts" in (kind.roles or ""):
        try:
            compute(plan, with_elements(arrays, widened))
        except Exception as error:
            text = str(error)
            named = text.replace("'ComplexFloat'", name).replace("'Float'", name)
            if named == text:
                raise
            return type(error)(named)
    try:
        compute(plan, with_elements(arrays, lambda item: _seen(item, OPAQUE)))
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, NotImplementedError) and error.__cause__ is None:  # the kernel itself refuses
            return error
    return NotImplementedError(f'"{kernel}" not implemented for {name}')


def _seen(item: Any, dtype: Any) -> Any:
    """Return the memory of such an array as elements of `dtype`, which may be a table by dtypes. Other values stay."""
    if type(item) is not Narrow:
        return item
    return item.view(ndarray).view(dtype if isinstance(dtype, str) else dtype[item.dtype])


def _mapped(results: Any, made: Callable[[Any], Any]) -> Any:
    several = isinstance(results, (list, tuple))
    return [made(each) for each in results] if several else results if results is None else made(results)
