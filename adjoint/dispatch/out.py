"""`out=`: writing results to tensors that the caller passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy

from .. import dtypes
from .._runtime.extra import note_former
from .._runtime.tracebacks import warn
from ..kernels.memory import storage, storages
from ..kernels.memory.copying import copy_, preserved_order
from ..kernels.runtime.addresses import address, may_share_memory
from ..kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits
from ..kernels.runtime.sparse_array import SparseArray
from ..kernels.sparse.layouts import as_written_to, overwrite
from ..tape import modes, views
from ..tape.edges import LEAF, edge_of
from ..tape.node import NOWHERE, Node, start
from ..tape.refusals import count_change
from ..tape.versions import about_to_change, bump
from ..tensor import Tensor
from .arguments import wrong_type
from .declaration import Operator
from .signatures import type_name

STRICT = "Expected out tensor to have dtype {wanted_c}, but got {given_c} instead"
"""The error about a wrong dtype of `out=`, for most operators that require the dtype of the result (`same_out=STRICT`)."""

FOUND = "Found dtype {given} but expected {wanted}"
AMAX = "Expected the dtype for input and out to match, but got {wanted} for input's dtype and {given} for out's dtype."
TRUTH = "{name} only supports bool tensor for result, got: {given}"
SCALAR_TYPE = "expected scalar_type {wanted} but found {given}"
SAME_TYPE = "{name}(): self and result must have the same scalar type"


class Castable(str):
    """The error of a function of matrices whose result is cast to the dtype of `out=`, if that is possible."""

    __slots__ = ()

    def __new__(cls, name: str, result: str = "{result}") -> Castable:
        """`name`, `result`: the names of the function and of its result, for the error."""
        return super().__new__(
            cls,
            f"{name}: Expected {result} to be safely castable from {{wanted}} dtype, but got {result} with dtype {{given}}",
        )


def write_out(op: Operator, results: list[Any], out: Any, inputs: list[Tensor], several: bool) -> Any:
    """Write the results of an operator to the tensors given as `out=`."""
    targets = checked_targets(op.function_name, out, len(results) if several else None)
    wording: Any = FOUND if op.same_out is True else op.same_out
    arrays = [tensor._array for tensor in inputs]
    apart = 0 if op.out_no_overlap else 1 if op.no_overlap else len(arrays)  # the operands from here on share no memory
    may_be, never = (arrays[1:], arrays[:1]) if op.out_reuses else (arrays[:apart], arrays[apart:])
    names = op.outputs or ("result",) * len(results)
    for result, target, name in zip(results, targets, names, strict=True):
        if callable(wording):
            wording(result, target.dtype, inputs)
        if result.dtype is not target._array.dtype:
            check_dtype(op.function_name, result.dtype, target, None if callable(wording) else wording, name)
        shape = target._array.shape
        if result.shape != shape and op.promote and not op.out_no_overlap and any(each is target for each in inputs):
            raise RuntimeError(
                f"output with shape {list(shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        check_overlap(target)
        if may_be:
            check_partial_overlap(target._array, may_be, disjoint=False)
        if never:
            check_partial_overlap(target._array, never, disjoint=True)
        if target._extra is not None:
            views.check_inference(target)
    for result, target in zip(results, targets, strict=True):
        count_change(target, op.name, store, result, target, depth=6)
        if op.out_underived and modes.is_recording() and any(tensor.requires_grad for tensor in inputs):
            views.rebase_history(target, Underived(op.function_name, inputs, target), 3)
    if op.many or not several:
        return None if op.many else out  # PyTorch returns None if the number of results varies
    return op.returns.out(*targets) if op.outputs and op.returns is not tuple else tuple(targets)


def in_dtype_of(op: Operator, args: tuple[Any, ...], out: Tensor) -> tuple[Any, ...]:
    """Return the arguments with `dtype` set to the dtype of `out`. If `dtype` is given, `out` must have it."""
    position = op.names.index("dtype")
    given = args[position]
    if given is not None:
        wanted = given.numpy if isinstance(given, dtypes.dtype) else given
        check_dtype(op.function_name, wanted, out, op.same_out or STRICT)  # type: ignore[arg-type]
        return args
    if op.check_out is not None:
        op.check_out(args[0], out)
    dtype = out.dtype if op.types.get("dtype") else out._array.dtype
    return (*args[:position], dtype, *args[position + 1 :])


def checked_targets(name: str, out: Any, count: int | None = None) -> list[Tensor]:
    """Return `out=` as a list: of one tensor, or of the tensors in a tuple or list of length `count` (0: of any length)."""
    if count is not None:
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}")
        if count and len(out) != count:
            raise TypeError(f"expected tuple of {count} elements but got {len(out)}")
    targets = [out] if count is None else list(out)
    for target in targets:
        if not isinstance(target, Tensor):
            raise wrong_type(name, "out", "", "Tensor", target)
    return targets


def check_out(op: Operator, out: Any, inputs: list[Tensor]) -> None:
    """Raise an error if autograd would have to record the operator. This runs before the computation."""
    if op.differentiable:
        targets = checked_targets(op.function_name, out, 0 if op.many else len(op.outputs) or None)
        refuse_gradient(op.function_name, targets if op.out_underived else inputs + targets)


class Underived(Node):
    """The node of an operation that is recorded without a derivative. Its backward raises an error."""

    __slots__ = ("called",)

    def __init__(self, called: str, inputs: list[Tensor], result: Tensor) -> None:
        edges = map(edge_of, inputs)
        start(self, tuple([None if edge is NOWHERE else edge for edge in edges]), 3)
        self.called = called
        self._grad_shape, self._grad_dtype = result._array.shape, result._array.dtype

    def backward(self, grad: Any, retain_graph: bool, edges: Any) -> Any:
        """Raise an error, because the operation has no derivative."""
        raise RuntimeError(f"derivative for aten::{self.called} is not implemented")

    backward_recorded = backward


Underived.__name__, Underived.__module__ = "NotImplemented", "builtins"  # as PyTorch shows it


def stored(
    name: str,
    result: Tensor,
    out: Tensor | None,
    same: str | None = None,
    *,
    recorded: bool = False,
    underived: bool = False,
) -> Tensor:
    """Finish a function `name` that is composed of operators and accepts `out=`. Return `result`, or write it to `out`.

    `same`: the error about another dtype than the dtype of the result, if no other dtype is allowed. `recorded`:
    whether autograd records the function, as a copy. `underived`: whether autograd records it without a derivative.
    """
    if out is None:
        return result
    if not isinstance(out, Tensor):
        raise wrong_type(name, "out", "", "Tensor", out)
    _check_stored(name, result, out, same, () if recorded else (out,) if underived else (result, out))
    if recorded and (result.requires_grad or out.requires_grad):
        resize(out, result._array.shape)
        return out.copy_(result)
    count_change(out, name, store, result._array, out)
    if result.requires_grad and modes.is_recording():
        views.rebase_history(out, Underived(name, [result], out), 3)
    return out


def all_stored(
    name: str, results: tuple[Tensor, ...], out: Any, same: str, *, underived: tuple[Tensor | None, ...] = ()
) -> list[Tensor]:
    """Apply `stored` to several results. All of `out` are checked before the first is written."""
    targets = checked_targets(name, out, len(results))
    for result, target in zip(results, targets, strict=True):
        _check_stored(name, result, target, same, (target,) if underived else (result, target))
    for result, target in zip(results, targets, strict=True):
        count_change(target, name, store, result._array, target)
    inputs = [tensor for tensor in underived if tensor is not None]
    if modes.is_recording() and any(tensor.requires_grad for tensor in inputs):
        for target in targets:
            views.rebase_history(target, Underived(name, inputs, target), 3)
    return targets


def _check_stored(name: str, result: Tensor, out: Tensor, same: str | None, constant: Iterable[Tensor]) -> None:
    """Raise an error unless `result` may be written to `out`. The tensors `constant` must require no gradient."""
    refuse_gradient(name, constant)
    check_dtype(name, result._array.dtype, out, same)
    check_overlap(out)
    views.check_inference(out)


def refuse_gradient(name: str, tensors: Iterable[Tensor]) -> None:
    """Raise an error if autograd would have to record a function with `out=`."""
    for tensor in tensors if modes.is_recording() else ():
        if tensor.requires_grad:
            raise RuntimeError(
                f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )


def check_dtype(name: str, dtype: Any, target: Tensor, same: str | None, result: str = "result") -> None:
    """Raise an error unless `target` has the (NumPy) dtype of the result, or the result can be cast to it."""
    wanted, given = dtypes.from_numpy(dtype), target.dtype
    if isinstance(same, Castable) and dtypes.category(wanted) <= dtypes.category(given):
        return
    if same and wanted is not given and not (same is TRUTH and given is dtypes.uint8):
        words = {
            "wanted": wanted.scalar_type,
            "given": given.scalar_type,
            "wanted_c": dtypes.C_NAMES[wanted],
            "given_c": dtypes.C_NAMES[given],
        }
        raise RuntimeError(same.format(name=name, result=result, **words))
    check_castable(wanted, given)


def check_castable(source: Any, target: Any) -> None:
    """Raise an error unless a result of dtype `source` may be written to a tensor of dtype `target`."""
    if dtypes.category(source) > dtypes.category(target):
        raise RuntimeError(
            f"result type {source.scalar_type} can't be cast to the desired output type {target.scalar_type}"
        )


def shares_elements(target: Tensor) -> bool:
    """Return whether several elements of `target` share memory, as in an expanded tensor."""
    array = target._array
    return (
        0 in array.strides
        and bool(array.size)
        and type(array) is not SparseArray
        and any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))
    )


def written_repeatedly(target: Tensor, operation: str, example: str, write: Callable[[Any], object]) -> Tensor:
    """Change a tensor whose elements share memory by `write(array)`, with a warning. The last of several values stays."""
    if target.requires_grad:
        check_overlap(target)
    warn(
        f"Use of {operation} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
        f"This also applies to advanced indexing e.g. tensor[{example}"
    )
    about_to_change(target)
    write(target._array)
    bump(target, operation)
    return target


def check_overlap(target: Tensor) -> None:
    """Raise an error if several elements of `target` share memory, as in an expanded tensor."""
    if shares_elements(target):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
            "clone() the tensor before performing the operation."
        )


def store(result: Any, target: Tensor) -> None:
    """Write `result` to `target`, and give `target` its shape."""
    about_to_change(target)
    array: Any = target._array
    if type(result) is SparseArray or type(array) is SparseArray:
        result = as_written_to(array, result)
    if type(array) is SparseArray:
        if result.shape == array.shape:
            overwrite(array, result)
        else:
            target._array = result.astype(array.dtype)
        return
    if result.shape != array.shape:
        resize(target, result.shape, preserved_order(result))
    copy_(target._array, result)


def resize(target: Tensor, shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> None:
    """Give `target` the shape of the result. `order` lists the dimensions in memory order, the slowest first."""
    array = target._array
    if array.shape != shape:
        if array.size:
            warn(
                f"An output with one or more elements was resized since it had shape {list(array.shape)}, which does not "
                f"match the required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch "
                "release outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor "
                "t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        order = order or tuple(range(len(shape)))
        resized = storages.resized(array, tuple([shape[dim] for dim in order]))
        resized = with_lazy_bits(
            resized.transpose([order.index(dim) for dim in range(len(order))]), lazy_bits_of(array)
        )
        if target._edge is LEAF:
            note_former(target, resized)
        target._array = resized


def check_partial_overlap(array: Any, others: list[Any], disjoint: bool) -> None:
    """Raise an error if another operand overlaps a part of the written memory or, with `disjoint`, uses exactly this memory."""
    for other in others:
        if not isinstance(other, numpy.ndarray) or (other is array and not disjoint):
            continue
        if other is not array and not (other.size and may_share_memory(array, other)):
            continue
        begin = address(array)
        same = other.strides == array.strides and other.nbytes == array.nbytes and address(other) == begin
        if (disjoint or not same) and (other is array or storage.dense_and_overlapping(array, other)):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                "location. Please clone() the tensor before performing the operation."
            )
