"""The slow path of every operator: all cases that the generated common case leaves out.

Numbers in place of tensors, mixed dtypes, `out=`, keyword aliases, wrong arguments, saved-tensor hooks, inference mode, several
outputs, sequences of tensors. It alone is correct for every call; the generated code is a shortcut. `inplace` has the changes.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import dtypes
from .._runtime.late_bound import LATE
from ..codegen.compiled_ufuncs import of_any_size
from ..kernels.memory.bounds import in_words_of_pytorch
from ..kernels.runtime.floating import HALVES, OFF, WARNINGS, refuse, restore
from ..kernels.runtime.layout import laid_out
from ..kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits, without_lazy_bits
from ..kernels.runtime.meta_array import Meta
from ..kernels.runtime.narrow_array import Narrow
from ..kernels.runtime.shapes import broadcast_shapes
from ..kernels.runtime.sparse_array import SparseArray
from ..tape import modes, views
from ..tape.anomaly import note_operation
from ..tape.inference_tensors import mark_inference
from ..tape.interpreters import innermost, lower, note_created
from ..tensor import Tensor, as_array, wrap
from .arguments import MISSING, bind
from .declaration import Operator
from .lazy_stubs import overridden
from .meta import check_places, computed, on_meta, put, special_class
from .narrow import computed_narrow, is_narrow_now
from .operands import given_arrays, operands, result_dtype
from .out import check_out, in_dtype_of, write_out
from .recording import make_view, record, wanted_edges
from .sparse_layouts import computed_sparse, dense_arguments

getframe = sys._getframe


def call(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` to `args`, given in the order of the declaration."""
    try:
        state = modes.STATE
        recorder = state.recorder
        if recorder is not None and recorder.asks():
            return recorder.operation(op.aten_name, call, args, op, args, out, **names)
        if state.general or modes.ANOMALY.enabled or state.interpreters:
            return run_slow_path(op, args, out, **names)
        for value in names.values():
            if value is not MISSING:
                return run_slow_path(op, args, out, **names)
        if out is not None:
            return op.code.out_path(*args, out)
        # Another thread, or a transform, has raised the flag, and may have lowered it since: the fast path is correct for
        # this call too. Its result, to the last bit, does not depend on what other threads do.
        return note_created(op.fast_path(*args), op.saved_results)
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            raise
    return again()


def call_slowly(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` to `args` that the straight-line code, where no mode is on, has left."""
    try:
        return run_slow_path(op, args, out, **names)
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            raise
    return again()


def run_slow_path(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` in any mode, to any arguments."""
    args = bind(op, args, names)
    if modes.STATE.interpreters:
        if (interpreter := innermost(args if out is None else (*args, out))) is not None:
            return note_created(interpreter.process(op, args, out), op.saved_results)
        if out is None and not op.draws:
            with lower(modes.STATE.interpreters[0]):  # outside all interpreters, the fast path is possible again
                results = applied(op, args)
            return note_created(results, op.saved_results)
    if op.out_decides and isinstance(out, Tensor):
        args = in_dtype_of(op, args, out)
    tensors, arrays = operands(op, args)
    special = special_class(args)
    if special is Tensor:
        return LATE.dispatched(op, args, out)
    if special is Meta:
        check_places(op, args)
    elif out is not None:
        check_out(op, out, tensors)
    try:
        results, several = result_arrays(op, args, tensors, arrays, special, ordered=out is None)
    except (NotImplementedError, RuntimeError, IndexError):
        if special is not SparseArray or not modes.STATE.dense_if_refused:
            raise
        return applied(op, dense_arguments(args))
    if out is not None:
        return put(results, out) if special is Meta else write_out(op, results, out, tensors, several)
    outputs = [wrap(result) for result in results]
    if modes.STATE.result_cache is not None and not op.view:
        modes.STATE.result_cache.made(outputs)
    recorded = tie(op, args, tensors, outputs, several, special)
    if modes.ANOMALY.enabled:
        note_operation(op.function_name, tensors.values(), outputs, recorded)
    if not several:
        return outputs[0]
    return op.returns(*outputs) if op.outputs and op.returns is not tuple else tuple(outputs)


def result_arrays(
    op: Operator, args: tuple[Any, ...], tensors: dict[str, Any], arrays: list[Any], special: Any, ordered: bool
) -> tuple[list[Any], bool]:
    """The arrays of the results, and whether there are several; `ordered`: their memory order follows the operands."""
    result_cache = modes.STATE.result_cache
    if special is Meta:
        results = computed(op, arrays, compute)
    elif special is SparseArray:
        results = computed_sparse(op, arrays, compute)
    elif special is Narrow or (op.promote and is_narrow_now(arrays)):
        results = computed_narrow(op, arrays, compute)
    elif result_cache is None or op.view:
        results = compute(op, arrays)
    else:
        results = result_cache.compute(op, args, lambda: compute(op, arrays))
    several = isinstance(results, (tuple, list))
    results = [as_array(result) for result in results] if several else [as_array(results)]
    if special is SparseArray:
        return results, several
    if op.wide_numbers and (kind := result_dtype(op, tensors)) is not None and kind.numpy in HALVES:
        results[0] = results[0].astype(kind.numpy, copy=False)
    if op.view and (bits := lazy_bits_of(tensors[op.tensors[0]]._array)):
        results = [with_lazy_bits(result, bits) for result in results]
    if ordered and (names := op.operands or (op.operand and (op.operand,))):
        given = [tensors[name] for name in names]
        results[0] = laid_out(results[0], [None if item is None else without_lazy_bits(item._array) for item in given])
    return (on_meta(op, results) if special is Meta else results), several


def tie(
    op: Operator, args: tuple[Any, ...], tensors: dict[str, Any], outputs: list[Tensor], several: bool, special: Any
) -> bool:
    """Make the outputs views if the operator returns views, and record the operation if modes and inputs require it.

    Sparse tensors have no views.
    """
    edges = wanted_edges(op, args)
    recording = any(edge is not None for edge in edges) and modes.is_recording()
    if op.view and special is not SparseArray:
        source = tensors[op.tensors[0]]
        recording = recording and not source.is_inference()
        for output in outputs:
            make_view(output, source, recording, views.MULTI_OUTPUT if several else None)
            if modes.STATE.view_replay and not several:
                views.note_making(output, source, (op, args[1:]))
    elif modes.STATE.inference:
        for output in outputs:
            mark_inference(output)
    if recording:
        record(op, args, tensors, edges, outputs, several, special in (SparseArray, Narrow))
    return recording


def applied(op: Operator, args: tuple[Any, ...], function: Any = None) -> Any:
    """Call `op` (or a `function` with its parameters) as users do, with `args` in the order of the declaration."""
    function = function or op.function
    if not op.keyword_only:
        return function(*args)
    positional = [value for name, value in zip(op.names, args, strict=True) if name not in op.keyword_only]
    keywords = {name: value for name, value in zip(op.names, args, strict=True) if name in op.keyword_only}
    return function(*positional, **keywords)


def compute(op: Operator, arrays: list[Any], kernel: Any = None) -> Any:
    """Run the array function (or another `kernel`) without NumPy's warnings; its errors are raised in PyTorch's words."""
    token = WARNINGS[OFF]
    try:
        if kernel is None:
            return op.code.computing(*arrays)
        keywords = {name: a for name, a in zip(op.names, arrays, strict=True) if name in op.keyword_only}
        return of_any_size(kernel)(*arrays[: len(arrays) - len(keywords)], **keywords)
    except (MemoryError, OverflowError, ValueError) as error:
        if op.promote or "broadcast" in str(error):
            broadcast_shapes(*(array.shape for array in given_arrays(op, arrays)))
        raise in_words_of_pytorch(error) or RuntimeError(str(error)) from None
    except TypeError as error:
        if "ufunc" not in str(error):
            raise
        kind = dtypes.from_numpy(given_arrays(op, arrays)[0].dtype)
        raise refuse(f"{op.name}_cpu", kind) from error
    finally:
        restore(token)
