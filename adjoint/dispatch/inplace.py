"""The slow path of operators that change their first argument in place."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from .. import dtypes
from .._runtime.extra import note_former
from .._runtime.late_bound import LATE
from ..kernels.memory.copying import copy_, distinct
from ..kernels.memory.storages import resized
from ..kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits
from ..kernels.runtime.meta_array import Meta
from ..kernels.runtime.narrow_array import Narrow
from ..kernels.runtime.shapes import broadcast_shapes
from ..kernels.runtime.sparse_array import SparseArray
from ..kernels.sparse.layouts import to_dense
from ..tape import modes, views
from ..tape.interpreters import check_owned, checked_change, innermost
from ..tape.node import NOWHERE, start
from ..tape.packing import pack_saved
from ..tape.versions import bump
from ..tensor import LEAF, Tensor, as_array
from .arguments import bind, is_number, not_a_tensor
from .declaration import Operator
from .lazy_stubs import overridden, public_function
from .meta import check_change, special_class
from .narrow import computed_narrow, inplace_kernel
from .operands import given_arrays, operands, result_dtype
from .out import check_castable, check_overlap, check_partial_overlap
from .recording import record_change, wanted_edges, with_tensors
from .signatures import overload
from .slow_path import compute
from .sparse_layouts import change as change_sparse
from .sparse_layouts import computed_sparse, node_class_on_tensors, writing_kernel

getframe = sys._getframe


def call_inplace(op: Operator, args: tuple[Any, ...]) -> Tensor:
    """Apply `op`, and write the result to its first argument."""
    recorder = modes.STATE.recorder
    if recorder is not None and recorder.asks():
        return recorder.operation(f"{op.aten_name}_", call_inplace, args, op, args)
    target: Tensor = args[0]
    try:
        args = bind(op, args)
        if not isinstance(target, Tensor):
            raise not_a_tensor(op, 0, args)
        state = modes.STATE
        if state.transforms:
            check_owned(target, lambda: overload(op, args), lambda: views.check_inplace(target))
        if state.interpreters and (interpreter := innermost(args)) is not None:
            with checked_change():
                return interpreter.process_inplace(op, args)
        views.check_inplace(target)
        tensors, arrays = operands(op, args)
    except Exception:
        again = overridden(getframe(1))
        if again is not None:
            return again()
        if is_unknown_operand(args) and is_augmented(getframe(1)):
            return NotImplemented
        raise
    edges = wanted_edges(op, args)
    grad_enabled = modes.is_recording()
    if grad_enabled and target._base is not None:
        views.check_view_creation(target, any(edge is not None for edge in edges) or target._base.requires_grad)
    views.check_inference(target)
    special = special_class(args)
    if special is Tensor:
        return LATE.dispatched_inplace(op, args)
    if special is Meta:
        check_change(op, args, arrays)
        record_change(op, args, tensors, edges, lambda: None)
        return target
    if type(target._array) is SparseArray:
        record_change(op, args, tensors, edges, change_sparse(op, target, arrays, compute), True)
        return target
    array = target._array
    # Not the kernel that works in place if promotion has copied the target.
    found = op.kernel.inplace if special is None else inplace_kernel(op) if special is Narrow else writing_kernel(op)
    change_kernel = found if arrays[0] is array else None
    if change_kernel is None:
        result = inplace_result(op, arrays, tensors, special)
    elif op.operands:
        check_fits(array.shape, broadcast_shapes(*(item.shape for item in given_arrays(op, arrays))))
    array = target._array
    if not op.uniform_write:
        check_overlap(target)
        if op.copies or not lazy_bits_of(array):  # otherwise the copy must be materialized first
            check_partial_overlap(target, [args[1]._array] if op.copies else arrays[1:], op.no_overlap)
        if not array.flags.writeable:  # part of an expanded tensor, whose elements no longer share memory
            array = arrays[0] = distinct(array)

    def change() -> None:
        if change_kernel is None:
            copy_(array, result)
        elif special is Narrow:
            computed_narrow(op, arrays, compute, change_kernel)
        else:
            compute(op, arrays, change_kernel)

    record_change(op, args, tensors, edges, change, special in (SparseArray, Narrow))
    return target


def is_unknown_operand(args: tuple[Any, ...]) -> bool:
    """Whether the second argument is neither a tensor nor a number."""
    return len(args) > 1 and not isinstance(args[1], Tensor) and not is_number(args[1])


def is_augmented(frame: FrameType) -> bool:
    """Whether `frame` runs an augmented assignment, such as `+=`, not a method."""
    found = public_function([frame.f_code])
    return found is not None and found[1].__name__.startswith("__")


def check_fits(shape: tuple[int, ...], broadcast: tuple[int, ...]) -> None:
    """Raise unless the result has the shape of the tensor that it is written to."""
    if broadcast != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(broadcast)}")


def inplace_result(op: Operator, arrays: list[Any], tensors: dict[str, Any], special: Any = None) -> Any:
    """The value to be written to the first of `tensors`, checked."""
    target = tensors[op.tensors[0]]
    try:
        if special is None:
            result = as_array(compute(op, arrays))
        else:
            result = (
                computed_narrow(op, arrays, compute)
                if special is Narrow
                else to_dense(computed_sparse(op, arrays, compute, "_"))
            )
            result = as_array(result)
    except NotImplementedError:
        if op.promote and (kind := result_dtype(op, tensors)):
            check_castable(kind, target.dtype)
        raise
    check_castable(dtypes.from_numpy(result.dtype), target.dtype)
    shape = target._array.shape
    if result.shape != shape:
        if not op.resizes:
            check_fits(shape, result.shape)
        target._array = with_lazy_bits(resized(target._array, result.shape), lazy_bits_of(target._array))
    return result


def call_inplace_view(op: Operator, args: tuple[Any, ...]) -> Tensor:
    """Make the first argument another view of its memory, as `t_` does."""
    target: Tensor = args[0]
    args = bind(op, args)
    if modes.STATE.transforms:
        check_owned(target, lambda: overload(op, args), lambda: views.check_inplace(target))
    if modes.STATE.interpreters and (interpreter := innermost(args)) is not None:
        with checked_change():
            return interpreter.process_inplace_view(op, args)
    views.check_inplace(target)
    views.check_inference(target)
    if special_class(args) is Tensor:
        return LATE.dispatched_inplace(op, args)
    tensors, arrays = operands(op, args)
    edges = wanted_edges(op, args)
    is_sparse = type(target._array) is SparseArray
    if is_sparse:
        result = computed_sparse(op, arrays, compute, "_")
    else:
        result = with_lazy_bits(compute(op, arrays), lazy_bits_of(target._array))
    recording = any(edge is not None for edge in edges) and modes.is_recording()
    if recording:
        kind: Any = op.inplace_node_class
        node: Any = object.__new__(node_class_on_tensors(kind) if is_sparse else kind)
        start(node, tuple([None if edge is NOWHERE else edge for edge in edges]), 1)
        op.saving.inputs(node, edges, with_tensors(op, args, tensors), None)
        if modes.STATE.saved_tensor_hooks:
            pack_saved(node, ())
        node._grad_shape, node._grad_dtype = result.shape, result.dtype
        views.point_at(target, (node, 0))
    if target._edge is LEAF:
        note_former(target, result)
    target._array = result
    bump(target, f"{op.function_name}_", depth=2)
    if recording and target._base is not None:
        target._view_version = target._counter[0]  # type: ignore[index]
    return target
