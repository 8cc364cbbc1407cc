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

from numpy import ndarray

from ..autograd.backward import grad
from ..autograd.function import FunctionNode
from ..device import strided
from ..dispatch.declaration import ARRAYS, VALUE, Operator, parameters_of
from ..dispatch.decorators import tensors as operators
from ..kernels.memory import storage
from ..kernels.runtime.addresses import may_share_memory
from ..operators.memory.storage_views import lazily
from ..tensor import Tensor, lazy_bits

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


def recorded_grad(outputs: Any, inputs: Any, vectors: Any, create_graph: bool, retain_graph: bool | None = None) -> Any:
    """Return `grad` of the outputs that have a history, by the vector of each. Without such outputs, return Nones."""
    wanted = [each for each in zip(outputs, vectors, strict=True) if each[0] is not None and each[0].requires_grad]
    if not wanted:
        return (None,) * len(inputs)
    roots, given = zip(*wanted, strict=True)
    return grad(roots, inputs, given, retain_graph, create_graph, allow_unused=True)


# --- the memory layout of tangents, which equals that of their primals, so that views and in-place changes match -----


def with_own_memory(tangent: Tensor, output: Tensor, given: dict[str, Any], operator: Operator) -> Tensor:
    """Return a tangent of a result in the layout of the result and in separate memory, except for views."""
    if operator.view:
        return tangent
    array, strides = tangent._array, output._array.strides
    if 0 in strides and array.size > 1:  # not the layout of elements in separate memory
        return tangent.clone()
    if array.strides == strides:
        tensors = [item for each in given.values() for item in (each if isinstance(each, list) else (each,))]
        if not any(item is not None and may_share_memory(array, item._array) for item in tensors):
            return tangent
        tangent = tangent.clone()
    return laid_out_like(tangent, output)


def window(whole: Tensor, base: Tensor, view: Tensor) -> Tensor:
    """Return the part of `whole`, which has the layout of `base`, at the position of `view` in `base`."""
    scale = 1
    whole = lazily(whole, lazy_bits(base))
    if base._array.dtype.kind in "cW" and view._array.dtype.kind not in "cW":
        whole, scale = operators.view_as_real(whole), 2
    offset = storage.storage_offset(view._array) - scale * storage.storage_offset(base._array)
    part = whole.as_strided(view.shape, view.stride(), offset + whole.storage_offset())
    return lazily(part, lazy_bits(view))


def laid_out_like(tangent: Tensor, primal: Tensor) -> Tensor:
    """Return `tangent` with the strides of `primal`, so that views match, unless elements of `primal` share memory."""
    array, own = primal._array, tangent._array
    if type(array) is type(own) is ndarray and array.strides == own.strides and _place(primal) == _place(tangent):
        return tangent
    if not primal.layout is tangent.layout is strided:
        return pending_like(tangent, primal)
    if storage.overlaps(primal.shape, primal.stride()):
        return pending_like(tangent, primal)
    if tangent.stride() == primal.stride() and _place(tangent) == _place(primal):
        return pending_like(tangent, primal)
    return empty_like(primal, tangent).copy_(tangent)


def empty_like(primal: Tensor, tangent: Tensor, dtype: Any = None) -> Any:
    """Return memory for a tangent with the layout and lazy bits of `primal`, and zeros in the rest of its storage."""
    offset, length = _place(primal)
    if length == primal._array.size:
        made = tangent.new_empty_strided(primal.shape, primal.stride(), dtype=dtype)
    else:
        made = tangent.new_zeros(length, dtype=dtype).as_strided(primal.shape, primal.stride(), offset)
    return lazily(made, lazy_bits(primal))


def _place(tensor: Tensor) -> tuple[int, int]:
    """Return the position of a tensor in its storage, and the number of elements of the storage."""
    array = tensor._array
    return storage.storage_offset(array), storage.owner(array).nbytes // array.itemsize


def pending_like(tangent: Tensor, primal: Tensor) -> Tensor:
    """Return `tangent` with the same lazy conjugation and negation as `primal`."""
    if type(primal._array) is type(tangent._array) is ndarray:
        return tangent
    if (dense := primal.layout is strided) != (tangent.layout is strided):
        return tangent.to_dense() if dense else tangent.sparse_mask(primal)
    if (bits := lazy_bits(primal)) == lazy_bits(tangent):
        return tangent
    return lazily(lazily(tangent, bits).clone(), bits)


# --- tangents that the `jvp` of a custom `Function` returns ------------------------------------------------------


def checked_tangents(returned: Any, count: int) -> tuple[Tensor | None, ...]:
    """Return the result of a `jvp` as a tuple of `count` tangents. Raise RuntimeError for any other result."""
    tangents: tuple[Any, ...] = returned if isinstance(returned, tuple) else (returned,)
    for number, tangent in enumerate(tangents):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}.")
    if len(tangents) != count:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {count} but got {len(tangents)})"
        )
    return tangents


def check_changed(given: Tensor | None, version: int | None, tangent: Tensor | None) -> None:
    """Raise an error unless `jvp` has changed and returned the tangent `given`, as `forward` has done with the input."""
    if given is None or given._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
            "input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input "
            "inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def is_view_of_dual(output: Tensor, tangent: Tensor, args: tuple[Any, ...], given: list[Any]) -> bool:
    """Return whether an output is a view of an input with a tangent, of which its tangent must then be a view."""
    if output._base is None:
        return False
    found = False
    for arg, direction in zip(args, given, strict=True):
        if (
            not isinstance(arg, Tensor)
            or direction is None
            or output._base is not (arg if arg._base is None else arg._base)
        ):
            continue
        if tangent._base is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            )
        if tangent._base is not (direction if direction._base is None else direction._base):
            of = "the given grad input" if direction._base is None else "the same base as the given grad input"
            raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of {of}.")
        found = True
    return found


def check_layout(view: Tensor, tangent: Tensor) -> None:
    """Raise an error unless `tangent` has the layout of `view`, so that in-place changes reach the same elements."""
    if tangent.stride() != view.stride():
        raise RuntimeError(
            "Expected the output of forward differentiable view operations to have the tangent have the same layout as primal. "
            f"The strides of the view are {list(view.stride())} and those of its tangent {list(tangent.stride())}."
        )


def share_tangents(output: Tensor) -> None:
    """Give the saved form of an output the tangents of that output."""
    edge = output._edge
    for saved in edge[0]._saved or () if type(edge) is tuple and isinstance(edge[0], FunctionNode) else ():
        if saved is not None and saved.output_nr == edge[1] and isinstance(saved.tensor, Tensor):
            saved.tensor._own_extra().tangents = output._own_extra().tangents
