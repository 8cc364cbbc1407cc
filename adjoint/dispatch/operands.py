"""The tensors among an operator's arguments: checked, promoted to one dtype, with numbers converted to constants."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

import numpy

from .. import dtypes
from ..codegen.acceleration import THREADED
from ..codegen.backend import NUMPY
from ..dtypes import Rank, promote
from ..kernels.memory.copying import convert
from ..kernels.runtime.floating import HALVES, unwarned
from ..kernels.runtime.lazy_conj import lazy_bits_of, materialize, without_lazy_bits
from ..kernels.runtime.meta_array import Unread
from ..kernels.runtime.narrow_array import cast, kept
from ..tape import modes
from ..tape.edges import current_edge
from ..tensor import LEAF, PLAIN_TYPES, Tensor, ndarray, wrap
from .arguments import invalid_arguments, not_a_tensor
from .calls import words_for
from .constants import of_its_own_dtype
from .declaration import ARRAY, ARRAYS, OPTIONAL_ARRAY, VALUE, Operator
from .signatures import type_name


def operands(op: Operator, args: tuple[Any, ...]) -> tuple[dict[str, Any], list[Any]]:
    """The tensors among `args` by name, with numbers converted to constants, and the arguments of the array function."""
    tensors: dict[str, Any] = {}
    for position, (name, value) in enumerate(zip(op.names, args, strict=True)):
        kind = op.kinds[name]
        if kind == VALUE:
            continue
        if kind == ARRAYS:
            tensors[name] = checked_sequence(op, name, position, value)
        elif (
            isinstance(value, Tensor)
            or (value is None and kind == OPTIONAL_ARRAY)
            or (
                op.numbers
                and isinstance(value, (int, float, complex, numpy.number, numpy.bool_))
                and (position > 0 or op.number_first)
            )
        ):
            tensors[name] = value
        elif op.overloaded:
            raise invalid_arguments(op.function_name, *args)
        else:
            raise not_a_tensor(op, position, args)
    if op.overloaded and not any(isinstance(value, Tensor) for value in tensors.values()):
        raise invalid_arguments(op.function_name, *args)
    if op.check is not None:
        op.check(*args)
    for name, function in op.constants.items():
        check_constant(function, name, tensors[name])
    target = result_dtype(op, tensors) if op.promote else None
    if op.wide_numbers and target is not None and target.numpy in HALVES and has_wider(tensors.values(), target):
        target = dtypes.float32  # `result_arrays` rounds the result
    read = without_lazy_bits if op.view else materialize

    def operand(array: Any) -> Any:
        lazy = lazy_bits_of(array) and array.dtype.kind == "c" and (target is None or array.dtype == target.numpy)
        if lazy and not op.view:
            kernel = NUMPY.kernel(op.name).general
            if isinstance(kernel, numpy.ufunc) or getattr(kernel, "reads_lazy", False):
                return array  # which a ufunc reads itself, large ones without a copy
        return prepared(read(array), target)

    arrays: list[Any] = []
    for name, value in zip(op.names, args, strict=True):
        if op.kinds[name] == VALUE:
            arrays.append(value.numpy if isinstance(value, dtypes.dtype) and op.types.get(name) == "Dtype" else value)
        elif op.kinds[name] == ARRAYS:
            arrays.append([operand(item._array) for item in tensors[name]])
        elif isinstance(tensors[name], Tensor):
            arrays.append(operand(tensors[name]._array))
        elif tensors[name] is None:
            arrays.append(None)
        else:
            tensors[name] = constant_tensor(tensors[name], target or dtypes.scalar_dtype(value))
            arrays.append(tensors[name]._array)
    return tensors, arrays


def has_wider(values: Iterable[Any], target: Any) -> bool:
    """Whether a number, or a tensor without dimensions, is not of the half type `target`."""
    return any(
        not isinstance(value, Tensor) or (value.dtype is not target and not value._array.ndim) for value in values
    )


def given_arrays(op: Operator, arrays: list[Any]) -> list[Any]:
    """Those among the arguments of the array function that are single arrays."""
    single = (ARRAY, OPTIONAL_ARRAY)
    return [item for name, item in zip(op.names, arrays, strict=True) if op.kinds[name] in single and item is not None]


def check_constant(function: str, name: str, value: Tensor | None) -> None:
    """Raise if `value` requires grad; the operator has no derivative for this argument."""
    if value is not None and value.requires_grad and modes.is_recording():
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have "
            "requires_grad True."
        )


def checked_sequence(op: Operator, name: str, position: int, value: Any) -> list[Tensor]:
    """A sequence argument as a list, if all its elements are tensors."""
    if not isinstance(value, (list, tuple)):
        function, name, where = words_for(op.function_name, name, position, [None] * position + [value])
        raise TypeError(f"{function}(): argument '{name}'{where} must be tuple of Tensors, not {type_name(value)}")
    for index, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {index} in argument {position}, but got {type(item).__name__}")
    return list(value)


def plain_sequence(items: Any) -> tuple[list[Any] | None, tuple[Any, ...] | None]:
    """The arrays of a sequence of plain tensors of one dtype, and their edges, if any; None for any other sequence.

    Also None if one is on `meta`, or has lazy conjugation or negation: these arrays are instances of subclasses.
    """
    if type(items) is not list and type(items) is not tuple:
        return None, None
    arrays: list[Any] = []
    edges: list[Any] = []
    kind = recorded = None
    for item in items:
        if type(item) is not Tensor and type(item) not in PLAIN_TYPES:
            return None, None
        array = item._array
        if array.dtype is not kind or type(array) is not ndarray:
            if kind is not None or type(array) is not ndarray:
                return None, None
            kind = array.dtype
        arrays.append(array)
        edge = item._edge if item._base is None else current_edge(item)
        if edge is LEAF:
            recorded = edge = item
        elif edge is not None:
            recorded = edge
        edges.append(edge)
    return arrays, None if recorded is None else tuple(edges)


def prepared(array: Any, target: Any) -> Any:
    """`array` converted to the dtype `target`, if that is not None."""
    if target is None or array.dtype == target.numpy:
        return array
    if (array.size < THREADED and not target.roles) or isinstance(array, Unread):
        return array.astype(target.numpy)
    return convert(array, target.numpy)


def result_dtype(op: Operator, tensors: dict[str, Any]) -> Any:
    """The dtype that all inputs are promoted to."""
    kinds = []
    for value in tensors.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Tensor) and item._extra is not None and item._extra.number is not None:
                kinds.append((dtypes.scalar_dtype(item._extra.number.args[0]), Rank.SCALAR))
            elif isinstance(item, Tensor):
                kinds.append((item.dtype, Rank.DIMENSIONED if item._array.ndim else Rank.ZERO_DIM))
            elif item is not None:
                kinds.append((dtypes.scalar_dtype(item), Rank.SCALAR))
    if not kinds:
        return None
    return _computed_in(op, promote(tuple(kinds)))


def _computed_in(op: Operator, common: Any) -> Any:
    """The dtype that operands of the dtype `common` are converted to: the default one for integers where only floats will do."""
    if op.promote == "float" and not (common.is_floating_point or common.is_complex):
        return dtypes.get_default_dtype()
    return common


_targets: dict[Any, Any] = {}
"""The dtypes that arrays are promoted to, by the rule, the default dtype, and their dtypes and whether they have dimensions."""


def in_one_dtype(
    op: Operator, args: tuple[Any, ...], arrays: tuple[Any, ...], overwritten: bool
) -> tuple[Any, ...] | None:
    """The arrays of all tensors of `op`, converted to the dtype that they are promoted to.

    None for calls that the slow path refuses, or computes otherwise: dtypes that kernels do not compute with; `overwritten`:
    results that may not be written to the first array.
    """
    key: Any = (op.promote, op.wide_numbers, dtypes.get_default_dtype())
    for array in arrays:
        key += (array.dtype, array.ndim > 0)
    if key not in _targets:
        _targets[key] = target = _target(op, arrays)
    else:
        target = _targets[key]
    if target is None or (overwritten and not castable(target, arrays[0].dtype)):
        return None
    if op.check is not None:
        try:
            op.check(*args)
        except Exception:  # noqa: BLE001  (which the slow path raises again)
            return None
    return tuple(
        [
            array
            if array.dtype is target
            else array.astype(target)
            if array.size < THREADED
            else convert(array, target)
            for array in arrays
        ]
    )


@cache
def castable(source: Any, target: Any) -> bool:
    """Whether a result of NumPy's dtype `source` may be written to an array of `target`, of which kernels know the elements."""
    kinds = dtypes.from_numpy(source), dtypes.from_numpy(target)
    return kinds[1].roles is None and dtypes.can_cast(*kinds)


def _target(op: Operator, arrays: tuple[Any, ...]) -> Any:
    """NumPy's dtype for the arrays in one; None if kernels do not compute with it, or if there is none."""
    ranks = (Rank.ZERO_DIM, Rank.DIMENSIONED)
    try:
        target = promote(tuple([(dtypes.from_numpy(each.dtype), ranks[each.ndim > 0]) for each in arrays]))
    except (RuntimeError, TypeError):
        return None
    target = _computed_in(op, target)
    of_halves = op.wide_numbers and target.numpy in HALVES and any(not array.ndim for array in arrays)
    return None if target.roles or of_halves else target.numpy


def constant_tensor(number: Any, kind: Any) -> Tensor:
    """A zero-dimensional tensor of dtype `kind` for a Python number."""
    try:
        with unwarned():
            array = numpy.asarray(number, dtype=None if kind.roles else kind.numpy)
        array = kept(cast(array, kind.numpy)) if kind.roles else array
    except (OverflowError, TypeError):
        array = wrapped_integer(number, kind)
    tensor = wrap(array)
    tensor._own_extra().number = partial(of_its_own_dtype, number)
    return tensor


def wrapped_integer(number: Any, kind: Any) -> Any:
    """An integer beyond the range of `kind`, modulo its size, as a cast in C does."""
    if isinstance(number, int) and number.bit_length() <= 64:
        return numpy.asarray(number & ((1 << 64) - 1), dtype=numpy.uint64).astype(kind.numpy)
    raise RuntimeError("value cannot be converted to type without overflow")
