"""The general path of every operator: all that the generated common case leaves out.

Numbers among tensors, mixed dtypes, `out=`, keyword aliases, wrong arguments, saved-tensor hooks, inference mode,
several outputs, sequences of tensors, in-place changes. Correctness lives here; the generated code is a shortcut.
"""

from __future__ import annotations

import sys
import weakref
from itertools import takewhile
from types import MappingProxyType
from typing import Any

import numpy

from .. import dtypes
from ..dtypes import Rank, promote
from ..kernels.memory.copying import clone, distinct
from ..kernels.memory.storage import resized
from ..kernels.runtime.floating import quiet, restore
from ..kernels.runtime.layout import laid_out
from ..kernels.runtime.lazy_conj import bits_of, resolved, toggled, unmarked
from ..kernels.runtime.shapes import broadcast_shapes
from ..tape import modes, views
from ..tape.anomaly import note_operation
from ..tape.edges import edge_of, edges_of
from ..tape.interpreters import below, check_owned, checked_change, innermost, note_births
from ..tape.node import NOWHERE, Node, own_hooks, start
from ..tape.saved import (
    about_to_change,
    bump,
    detached,
    mark_inference,
    pack_saved,
    save_input,
    save_result,
    shared_counter,
)
from ..tensor import PLAIN_TYPES, Tensor, as_array, can_require_grad, is_recorded, ndarray, wrap
from .declaration import ARRAYS, OPTIONAL_ARRAY, VALUE, Operator
from .lazy_stubs import overridden
from .meta import check_change, check_places, computed, has_meta, on_meta, put
from .out import STRICT, check_castable, check_dtype, check_out, check_overlap, check_partial_overlap, write_out
from .signatures import FORMS, expected, overload, type_name

getframe = sys._getframe
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
ALIASES = {"x": "self", "a": "self", "x1": "self", "x2": "other", "axis": "dim", "keepdims": "keepdim"}
NUMBERS = frozenset((int, float, bool, complex))


def call(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` to `args`, given in the order of the declaration."""
    try:
        state = modes.STATE
        recorder = state.recorder
        if recorder is not None and recorder.asks():
            return recorder.operation(op.called, call, args, op, args, out, **names)
        if state.general or out is not None or not modes.GATE.special or modes.ANOMALY.enabled:
            return call_generally(op, args, out, **names)
        for value in names.values():
            if value is not MISSING:
                return call_generally(op, args, out, **names)
        # The gate is closed for another thread, or for a transform: the short way is good for this call too.
        return note_births(op.behind_the_gate(*args))
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            raise
    return again()


def call_generally(op: Operator, args: tuple[Any, ...], out: Any, **names: Any) -> Any:
    """Apply `op` in any mode, to anything."""
    args = bind(op, args, names)
    if modes.STATE.levels:
        level = innermost(args if out is None else (*args, out))
        if level is not None:
            return note_births(level.call(op, args, out))
        if out is None and not op.draws:
            with below(modes.STATE.levels[0]):  # where the short way is open again
                return note_births(applied(op, args))
    if op.out_decides and isinstance(out, Tensor):
        args = in_dtype_of(op, args, out)
    tensors, arrays = operands(op, args)
    at_meta = has_meta(args)
    if at_meta:
        check_places(op, args)
    elif out is not None:
        check_out(op, out, tensors)
    keeper = None if op.view else modes.STATE.keeper
    if at_meta:
        results = computed(op, arrays, compute)
    else:
        results = compute(op, arrays) if keeper is None else keeper.compute(op, args, lambda: compute(op, arrays))
    several = isinstance(results, (tuple, list))
    results = [as_array(result) for result in results] if several else [as_array(results)]
    if op.view and (pending := bits_of(tensors[op.tensors[0]]._array)):
        results = [toggled(result, pending) for result in results]
    if op.operands and out is None:
        given = [tensors[name] for name in op.operands]
        results[0] = laid_out(results[0], [None if item is None else unmarked(item._array) for item in given])
    if at_meta:
        results = on_meta(op, results)
        if out is not None:
            return put(results, out)
    if out is not None:
        return write_out(op, results, out, tensors, several)
    outputs = [wrap(result) for result in results]
    if keeper is not None:
        keeper.made(outputs)
    edges = wanted_edges(op, args)
    recording = any(edge is not None for edge in edges) and modes.is_recording()
    if op.view:
        recording = recording and not tensors[op.tensors[0]].is_inference()
        for output in outputs:
            make_view(output, tensors[op.tensors[0]], recording, views.MULTI_OUTPUT if several else None)
            if modes.STATE.view_replay and not several:
                views.note_making(output, tensors[op.tensors[0]], (op, args[1:]))
    elif modes.STATE.inference:
        for output in outputs:
            mark_inference(output)
    if recording:
        record(op, args, tensors, arrays, edges, outputs, several)
    if modes.ANOMALY.enabled:
        note_operation(op.called, tensors.values(), outputs, recording)
    if not several:
        return outputs[0]
    return op.returns(*outputs) if op.outputs and op.returns is not tuple else tuple(outputs)


def in_dtype_of(op: Operator, args: tuple[Any, ...], out: Tensor) -> tuple[Any, ...]:
    """The arguments with the dtype of `out` for `dtype`; if that is given, `out` must have it."""
    position = op.names.index("dtype")
    given = args[position]
    if given is not None:
        wanted = given.numpy if isinstance(given, dtypes.dtype) else given
        check_dtype(op.called, wanted, out, op.same_out or STRICT)
        return args
    if callable(op.out_decides):
        op.out_decides(args[0], out)
    dtype = out.dtype if op.types.get("dtype") else out._array.dtype
    return (*args[:position], dtype, *args[position + 1 :])


def applied(op: Operator, args: tuple[Any, ...], function: Any = None) -> Any:
    """`op` (or a `function` of its parameters) called as users call it, with `args` in the order of the declaration."""
    function = function or op.function
    if not op.keyword_only:
        return function(*args)
    positional = [value for name, value in zip(op.names, args, strict=True) if name not in op.keyword_only]
    keywords = {name: value for name, value in zip(op.names, args, strict=True) if name in op.keyword_only}
    return function(*positional, **keywords)


def bind(op: Operator, args: tuple[Any, ...], names: Any = MappingProxyType({})) -> tuple[Any, ...]:
    """Put keyword aliases in their places; raise for what is missing or of the wrong type."""
    values = list(args)
    for name, value in names.items():
        if value is not MISSING:
            values[op.names.index(ALIASES[name])] = value
    for value in values:
        if value is MISSING:
            raise missing_arguments(op, values)
    for position, name in op.typed:
        values[position] = checked(op, name, position, values)
    return tuple(values)


def missing_arguments(op: Operator, values: list[Any]) -> TypeError:
    """The error for a call in which some of the arguments are not given."""
    if op.called in FORMS:
        return invalid_arguments(op.called, *takewhile(lambda value: value is not MISSING, values))
    missing = [f'"{"input" if n == "self" else n}"' for n, v in zip(op.names, values, strict=True) if v is MISSING]
    plural = "s" if len(missing) == 1 else ""  # sic
    return TypeError(f"{op.called}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}")


TYPE_WORDS = {
    "Int": "int", "Ints": "tuple of ints", "Dims": "tuple of ints", "Bool": "bool", "Number": "Number", "Dtype": "torch.dtype",
    "Str": "str", "Float": "float",
}  # fmt: skip
"""What parameters may be declared as (`dim: Int`), and what PyTorch calls that."""


def checked(op: Operator, name: str, position: int, values: list[Any]) -> Any:
    """The argument at `position` if it is of its parameter's declared type, lists as tuples.

    None is as good where it is the default.
    """
    value, kind = values[position], op.types[name]
    if is_of_type(value, kind):
        if kind in ("Number", "Float") and isinstance(value, Tensor):
            return value.item()
        return tuple(value) if type(value) is list else value
    if value is None and op.defaults.get(name, MISSING) is None:
        return None
    if op.overloaded and position == len(op.tensors):
        raise invalid_arguments(op.called, *values[: position + 1])
    where = "" if name in op.keyword_only else f" (position {position + (not op.method)})"
    raise TypeError(f"{op.called}(): argument '{name}'{where} must be {TYPE_WORDS[kind]}, not {type_name(value)}")


def is_of_type(value: Any, kind: str) -> bool:
    """Whether `value` is what a parameter declared as `kind` takes."""
    if kind == "Int":
        return type(value) is int or (hasattr(value, "__index__") and not isinstance(value, (bool, numpy.bool_, tuple)))
    if kind in ("Ints", "Dims"):
        several = isinstance(value, (tuple, list)) and all(is_of_type(item, "Int") for item in value)
        return several or (kind == "Dims" and is_of_type(value, "Int"))
    if kind == "Bool":
        return isinstance(value, (bool, numpy.bool_))
    if kind in ("Number", "Float"):
        if isinstance(value, Tensor):
            return not (value._array.ndim or value.requires_grad)
        return isinstance(value, (int, float, complex, numpy.number, numpy.bool_)) and (
            kind == "Number" or not isinstance(value, (complex, numpy.complexfloating))
        )
    return isinstance(value, dtypes.dtype if kind == "Dtype" else str)


def call_operator(op: Operator, args: tuple[Any, ...]) -> Any:
    """Apply `op` as a Python operator: `NotImplemented` lets the other operand's type have its turn."""
    if len(args) > 1 and type(value := args[1]) is not Tensor:
        if op.name == "eq" and isinstance(value, numpy.ndarray):  # the one operator that takes arrays
            return call(op, (args[0], wrap(value)), None)
        if not isinstance(value, (Tensor, int, float, complex, numpy.number, numpy.bool_)):
            return not_known(depth=1)
    return call(op, args, None)


def not_known(depth: int = 0) -> Any:
    """What a Python operator returns that does not know its other operand: NotImplemented, unless the call is taken over."""
    again = overridden(getframe(depth + 1))
    return NotImplemented if again is None else again()


def invalid_arguments(function: str, *args: Any, **names: Any) -> TypeError:
    """The error for arguments that no overload of `function` takes."""
    got = ", ".join([*map(type_name, args), *(f"{name}={type_name(value)}" for name, value in names.items())])
    return TypeError(f"{function}() received an invalid combination of arguments - got ({got}){expected(function)}")


# --- operands -------------------------------------------------------------------------------------------------


def operands(op: Operator, args: tuple[Any, ...]) -> tuple[dict[str, Any], list[Any]]:
    """The tensors among `args` by name, numbers made into constants, and the arguments of the array function."""
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
            raise invalid_arguments(op.called, *args)
        else:
            shown = "input" if name == "self" else name
            raise TypeError(
                f"{op.called}(): argument '{shown}' (position {position + 1}) must be Tensor, not {type_name(value)}"
            )
    if op.overloaded and not any(isinstance(value, Tensor) for value in tensors.values()):
        raise invalid_arguments(op.called, *args)
    if op.check is not None:
        op.check(*args)
    for name, function in op.constants.items():
        check_constant(function, name, tensors[name])
    target = result_dtype(op, tensors) if op.promote else None
    read = unmarked if op.view else resolved
    arrays: list[Any] = []
    for name, value in zip(op.names, args, strict=True):
        if op.kinds[name] == VALUE:
            arrays.append(value)
        elif op.kinds[name] == ARRAYS:
            arrays.append([prepared(read(item._array), target) for item in tensors[name]])
        elif isinstance(tensors[name], Tensor):
            arrays.append(prepared(read(tensors[name]._array), target))
        elif tensors[name] is None:
            arrays.append(None)
        else:
            tensors[name] = constant_tensor(tensors[name], target or dtypes.scalar_dtype(value))
            arrays.append(tensors[name]._array)
    return tensors, arrays


def check_constant(function: str, name: str, value: Tensor | None) -> None:
    """Raise if `value` requires grad, for an argument by which there is no derivative."""
    if value is not None and value.requires_grad and modes.is_recording():
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have "
            "requires_grad True."
        )


def checked_sequence(op: Operator, name: str, position: int, value: Any) -> list[Tensor]:
    """A sequence argument as a list, if all its elements are tensors."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"{op.called}(): argument '{name}' (position {position + 1}) must be tuple of Tensors, "
            f"not {type(value).__name__}"
        )
    for index, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {index} in argument {position}, but got {type(item).__name__}")
    return list(value)


def plain_sequence(items: Any) -> tuple[list[Any] | None, tuple[Any, ...] | None]:
    """The arrays of a sequence of plain tensors of one dtype, and their edges if there are any; None for what is none.

    Nor for arrays on `meta`, or yet to be conjugated or negated, which are instances of subclasses.
    """
    if type(items) is not list and type(items) is not tuple:
        return None, None
    arrays, with_edges, kind = [], False, None
    for item in items:
        if type(item) is not Tensor and type(item) not in PLAIN_TYPES:
            return None, None
        array = item._array
        if type(array) is not ndarray:
            return None, None
        if array.dtype is not kind:
            if kind is not None:
                return None, None
            kind = array.dtype
        arrays.append(array)
        if item._edge is not None or item._base is not None:
            with_edges = True
    return arrays, edges_of(items) if with_edges else None


def prepared(array: Any, target: Any) -> Any:
    """`array` with elements of `target`, if one is asked for."""
    return array if target is None or array.dtype == target.numpy else array.astype(target.numpy)


def result_dtype(op: Operator, tensors: dict[str, Any]) -> Any:
    """The dtype that all inputs are brought to."""
    kinds = []
    for value in tensors.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Tensor):
                kinds.append((item.dtype, Rank.DIMENSIONED if item._array.ndim else Rank.ZERO_DIM))
            elif item is not None:
                kinds.append((dtypes.scalar_dtype(item), Rank.SCALAR))
    if not kinds:
        return None
    target = promote(tuple(kinds))
    if op.promote == "float" and not (target.is_floating_point or target.is_complex):
        return dtypes.get_default_dtype()
    return target


def constant_tensor(number: Any, kind: Any) -> Tensor:
    """A zero-dimensional tensor of `kind` that stands for a Python number."""
    try:
        array = numpy.asarray(number, dtype=kind.numpy)
    except (OverflowError, TypeError):
        array = wrapped_integer(number, kind)
    tensor = wrap(array)
    tensor._own_extra().number = lambda: wrap(numpy.asarray(number, dtype=dtypes.scalar_dtype(number).numpy))
    return tensor


def wrapped_integer(number: Any, kind: Any) -> Any:
    """An integer beyond the range of `kind`, modulo its size, as a cast in C does."""
    if isinstance(number, int) and number.bit_length() <= 64:
        return numpy.asarray(number & ((1 << 64) - 1), dtype=numpy.uint64).astype(kind.numpy)
    raise RuntimeError("value cannot be converted to type without overflow")


def compute(op: Operator, arrays: list[Any], kernel: Any = None) -> Any:
    """Run the array function (or another `kernel` with its parameters).

    NumPy's floating-point warnings are off, its errors in PyTorch's words.
    """
    keywords = {name: a for name, a in zip(op.names, arrays, strict=True) if name in op.keyword_only}
    positional = arrays[: len(arrays) - len(keywords)]
    token = quiet()
    try:
        return (kernel or op.kernel)(*positional, **keywords)
    except ValueError as error:
        if op.promote or "broadcast" in str(error):
            broadcast_shapes(*(a.shape for a in arrays if isinstance(a, numpy.ndarray)))
        raise RuntimeError(str(error)) from error
    except TypeError as error:
        if "ufunc" not in str(error):
            raise
        kinds = [dtypes.from_numpy(a.dtype) for a in arrays if isinstance(a, numpy.ndarray)]
        raise NotImplementedError(f"\"{op.name}_cpu\" not implemented for '{kinds[0].scalar_type}'") from error
    finally:
        restore(token)


# --- views and recording --------------------------------------------------------------------------------------


def make_view(view: Tensor, source: Tensor, recording: bool, creation: str | None) -> None:
    """Tie `view`, on the memory of `source`, to the base of `source`."""
    if source._extra is not None and source._extra.inference:
        mark_inference(view)  # which no history concerns, neither its own nor that of a base
        return
    view._base = source if source._base is None else source._base
    view._counter = shared_counter(source)
    view._view_version = view._counter[0]
    if modes.STATE.inference:
        creation = views.INFERENCE
    elif not modes.is_recording():
        creation = views.NO_GRAD
    elif creation is None and source._base is not None and source._creation is not None:
        creation = source._creation
    view._creation = creation
    if not recording and view._base._edge is not None and can_require_grad(view._array):
        view._edge = NOWHERE  # it requires grad as its base does, though nothing of its making is recorded


def wanted_edges(op: Operator, args: tuple[Any, ...]) -> list[Any]:
    """One edge for each differentiable input (each element, for a sequence)."""
    edges: list[Any] = []
    for position in op.differentiable_positions:
        value = args[position]
        if isinstance(value, Tensor):
            edges.append(edge_of(value))
        elif op.kinds[op.names[position]] == ARRAYS:
            edges += [edge_of(item) if isinstance(item, Tensor) else None for item in value]
        else:
            edges.append(None)
    return edges


def record(
    op: Operator, args: Any, tensors: Any, arrays: Any, edges: Any, outputs: list[Tensor], several: bool
) -> None:
    """Make the node of this operation and point the outputs at it."""
    given, edges = edges, [None if edge is NOWHERE else edge for edge in edges]
    node: Node = object.__new__(op.node_class)
    start(node, tuple(edges), 2)
    # A node of one input runs also where the gradient leads nowhere.
    save_inputs(op, node, args, tensors, given if len(given) == 1 else edges)
    finish(op, node, edges, outputs, several)
    if modes.STATE.saved_tensor_hooks:
        pack_saved(node, outputs)


def save_inputs(op: Operator, node: Node, args: Any, tensors: Any, edges: Any, changed: Tensor | None = None) -> None:
    """Save what the formulas of the needed gradients name; `changed` is the tensor an in-place operation changes."""
    for item in op.saved_inputs:
        tensor = tensors[item] if needed(op, item, edges) else None
        if op.kinds[item] == ARRAYS:
            setattr(node, f"saved_{item}", tensor and list(tensor))
            setattr(node, f"version_{item}", 0)
            continue
        if changed is not None and tensor is not None and (tensor is changed):
            if item == op.tensors[0]:
                tensor = detached_copy(tensor)
            else:  # not copied: backward finds that it has been changed; the tensor itself will refer to the node
                edge, itself = tensor._edge, weakref.ref(tensor)
                tensor = detached(tensor, shared_counter(tensor))
                tensor._edge = edge
                tensor._own_extra().stands_for = itself
        save_input(node, item, tensor)
    for item in op.saved_values:
        setattr(node, f"saved_{item}", saved_value(op, item, args, tensors))


def detached_copy(tensor: Tensor) -> Tensor:
    """The value of a tensor before it is changed in place, with its history and its tangents."""
    of_batch = getattr(tensor, "without_history", None)
    copy: Any = wrap(clone(resolved(tensor._array))) if of_batch is None else of_batch(copy=True)
    copy._edge = tensor._edge
    if tensor._extra is not None and tensor._extra.tangents is not None:
        for level, tangent in tensor._extra.tangents.items():
            if tangent is not None:
                level.attach(copy, tangent.clone())
    return copy


def saved_value(op: Operator, item: str, args: Any, tensors: Any) -> Any:
    """A parameter, or the shape, dtype or geometry of an input."""
    name = item.removesuffix("_geometry")
    if name != item and name in op.kinds:
        return views.Geometry(tensors[name]._array)
    for suffix in ("shape", "dtype", "strides"):
        name = item.removesuffix(f"_{suffix}")
        if name != item and name in op.kinds:
            value = tensors[name]
            if isinstance(value, list):
                return [getattr(v._array, suffix) for v in value]
            return None if value is None else getattr(value._array, suffix)
    value = args[op.names.index(item)]
    if hasattr(value, "check_savable"):
        value.check_savable()
    return value


def needed(op: Operator, item: str, edges: list[Any]) -> bool:
    """Whether a gradient that some input needs names `item`."""
    if op.sequence is not None or op.joint is not None:
        return True
    return any(edges[op.differentiable.index(user)] is not None for user in op.saved[item])


def finish(op: Operator, node: Node, edges: Any, outputs: list[Tensor], several: bool) -> None:
    """Save results, describe the outputs, and make the node their history."""
    if several:
        node.shape = [output._array.shape for output in outputs]
        node.dtype = [output._array.dtype for output in outputs]
    else:
        node.shape = outputs[0]._array.shape
        node.dtype = outputs[0]._array.dtype
    for item in op.saved_results:
        output = outputs[op.outputs.index(item)] if op.outputs else outputs[0]
        if needed(op, item, edges):
            save_result(node, item, output)
        else:
            setattr(node, f"saved_{item}", None)
    for number, output in enumerate(outputs):
        differentiable = can_require_grad(output._array)
        if op.outputs and op.outputs[number] in op.nondifferentiable_outputs:
            differentiable = False
        if differentiable:
            output._edge = (node, number)


# --- in place -------------------------------------------------------------------------------------------------


def call_inplace(op: Operator, args: tuple[Any, ...]) -> Tensor:
    """Apply `op` and write the result over its first argument."""
    recorder = modes.STATE.recorder
    if recorder is not None and recorder.asks():
        return recorder.operation(f"{op.called}_", call_inplace, args, op, args)
    target: Tensor = args[0]
    try:
        args = bind(op, args)
        state = modes.STATE
        if state.transforms:
            check_owned(target, lambda: overload(op, args), lambda: views.check_inplace(target))
        if state.levels and (level := innermost(args)) is not None:
            with checked_change():
                return level.call_inplace(op, args)
        views.check_inplace(target)
        tensors, arrays = operands(op, args)
    except Exception:
        again = overridden(getframe(1))
        if again is None:
            raise
        return again()
    edges = wanted_edges(op, args)
    grad_enabled = modes.is_recording()
    if grad_enabled and target._base is not None:
        views.check_view_creation(target, any(edge is not None for edge in edges) or target._base.requires_grad)
    views.check_inference(target)
    if has_meta(args):
        check_change(op, args, arrays)
        record_change(op, args, tensors, edges, lambda: None)
        return target
    array = target._array
    changing = op.changing if arrays[0] is array else None  # not where promotion has made a copy of the target
    if changing is None:
        result = inplace_result(op, arrays, tensors)
    elif op.operands:
        check_fits(array.shape, broadcast_shapes(*(item.shape for item in arrays if isinstance(item, numpy.ndarray))))
    array = target._array
    if not op.repeats:
        check_overlap(target)
        if op.name == "copy" or not bits_of(array):  # nothing resolves what is copied before it is written
            check_partial_overlap(target, [args[1]._array] if op.name == "copy" else arrays[1:], op.apart)
        if not array.flags.writeable:  # a part of an expanded tensor in which no elements share memory any more
            array = arrays[0] = distinct(array)

    def change() -> None:
        if changing is not None:
            compute(op, arrays, changing)
        else:
            numpy.copyto(array, result, casting="unsafe")

    record_change(op, args, tensors, edges, change)
    return target


def record_change(op: Operator, args: tuple[Any, ...], tensors: Any, edges: list[Any], change: Any) -> None:
    """Run `change`, which changes the first of `args` in place, and make its node the tensor's history."""
    target: Tensor = args[0]
    recording = (
        modes.is_recording() and any(edge is not None for edge in edges) and can_require_grad(target._array)
    )  # what is written to a tensor of integers has no gradient
    node: Any = None
    if recording:
        edges = [None if edge is NOWHERE else edge for edge in edges]
        node = object.__new__(op.inplace_node_class)
        start(node, tuple(edges), 2)
        save_inputs(op, node, args, tensors, edges, changed=target)
        if modes.STATE.saved_tensor_hooks:
            pack_saved(node, ())
    about_to_change(target)
    given = before_change(tensors, target, recording) if modes.ANOMALY.enabled else None
    change()
    bump(target, f"{op.called}_", depth=3)
    if recording:
        node.shape, node.dtype = target._array.shape, target._array.dtype
        for item in op.saved_results:
            if needed(op, item, edges):
                save_result(node, item, target)
            else:
                setattr(node, f"saved_{item}", None)
        if modes.STATE.saved_tensor_hooks:
            pack_saved(node, [target])
        views.rebase_history(target, node, 3)
        if target._base is not None and op.saved_results and is_recorded(target._edge):
            # What is saved of the result has the view's history, of which `node` is a part.
            own_hooks(node).of_view = weakref.ref(target._edge[0])
    if given is not None:
        note_operation(f"{op.called}_", *given, recording)


def before_change(tensors: dict[str, Any], target: Tensor, recording: bool) -> tuple[list[Any], list[Tensor]]:
    """The operands of an in-place operation, and the base of a view, before it; what changes. Unrecorded, that is no source."""
    changed = [target] if target._base is None else [target, target._base]
    copies = {id(tensor): detached_copy(tensor) for tensor in changed}
    for copy in () if recording else copies.values():
        copy._edge = None
    return [copies.get(id(value), value) for value in (*tensors.values(), *changed[1:])], changed


def check_fits(shape: tuple[int, ...], broadcast: tuple[int, ...]) -> None:
    """Raise unless what is written in place has the shape of the tensor."""
    if broadcast != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(broadcast)}")


def inplace_result(op: Operator, arrays: list[Any], tensors: dict[str, Any]) -> Any:
    """What is to be written over the first of `tensors`, if it fits."""
    target = tensors[op.tensors[0]]
    try:
        result = as_array(compute(op, arrays))
    except NotImplementedError:
        if op.promote and (kind := result_dtype(op, tensors)):
            check_castable(kind, target.dtype)
        raise
    check_castable(dtypes.from_numpy(result.dtype), target.dtype)
    shape = target._array.shape
    if result.shape != shape:
        if not op.resizes:
            check_fits(shape, result.shape)
        target._array = toggled(resized(target._array, result.shape), bits_of(target._array))
    return result


def call_inplace_view(op: Operator, args: tuple[Any, ...]) -> Tensor:
    """Make the first argument another view of its memory, as `t_` does."""
    target: Tensor = args[0]
    args = bind(op, args)
    if modes.STATE.transforms:
        check_owned(target, lambda: overload(op, args), lambda: views.check_inplace(target))
    if modes.STATE.levels and (level := innermost(args)) is not None:
        with checked_change():
            return level.call_inplace_view(op, args)
    views.check_inplace(target)
    views.check_inference(target)
    tensors, arrays = operands(op, args)
    edges = wanted_edges(op, args)
    result = toggled(compute(op, arrays), bits_of(target._array))
    recording = any(edge is not None for edge in edges) and modes.is_recording()
    if recording:
        node: Any = object.__new__(op.inplace_node_class)
        start(node, tuple(edges), 1)
        save_inputs(op, node, args, tensors, edges)
        if modes.STATE.saved_tensor_hooks:
            pack_saved(node, ())
        node.shape, node.dtype = result.shape, result.dtype
        views.point_at(target, (node, 0))
    target._array = result
    bump(target, f"{op.called}_", depth=2)
    if recording and target._base is not None:
        target._view_version = target._counter[0]
    return target
