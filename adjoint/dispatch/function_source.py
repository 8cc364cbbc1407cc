"""The source of each operator's function: straight-line code for the common case.

A function first tests, one condition after another, whether its arguments are the common case (exact `Tensor`s or plain
subclasses on plain arrays, no `out`, no unusual mode), and takes the slow path if one is not. The rest of the
function computes, creates the result and records, without further tests.
"""

from __future__ import annotations

from typing import Any

import numpy

from .declaration import ARRAY, OPTIONAL_ARRAY, Operator
from .inplace_source import inplace_view_source, or_leave, out_lines, overwriting_body
from .kernel_source import kernel_lines, promotes, promotion_lines, unfit_arrays
from .parameter_source import deprecated_order_lines, numpy_names, signature, variant_signature
from .recording_source import (
    RECORDING,
    edge_lines,
    frame_lines,
    input_lines,
    is_recorded,
    node_lines,
    pack_lines,
    result_lines,
)
from .source import block, function, guard, public_function, public_name


def slow_path(op: Operator, variant: str = "function", *, moded: bool = False) -> str:
    """The statement that takes the slow path; `moded`: for a call while some thread is in a mode.

    The function of a Python operator (`*`) returns NotImplemented for operands of unknown types.
    """
    args = ", ".join(public_name(name) for name in op.names)
    if variant in ("fast", "out"):
        return f"return run_slow_path(OP, ({args},), {'out' if variant == 'out' else None})"
    way = "call" if moded else "call_slowly"
    if variant == "operator":
        return f"return call_operator(OP, ({args},), {way})"
    if variant != "function":
        return f"return call_{variant}(OP, ({args},))"
    extra = "".join(f", {name}={name}" for name in numpy_names(op))
    return f"return {way}(OP, ({args},), {'out' if op.out else 'None'}{extra})"


def function_source(op: Operator, variant: str = "function") -> tuple[str, dict[str, Any]]:
    """The source of the function (or of a variant) and the defaults it refers to.

    Variants are `"operator"` (of a Python operator), `"inplace"`, `"inplace_view"`, and, for calls that the slow path has found
    to be unaffected by modes, without the test of these: `"fast"`, and `"out"`, which has a tensor to write to.
    """
    defaults: dict[str, Any] = {}
    parameters = signature(op, defaults) if variant == "function" else variant_signature(op, defaults, variant)
    if variant == "inplace_view":
        return inplace_view_source(op, parameters, slow_path(op, variant)), defaults
    leave = slow_path(op, variant)
    lines = [
        *deprecated_order_lines(op, variant),
        *guard(unusual_call(op, variant), *number_lines(op), slow_path(op, variant, moded=True)),
        *input_tests(op, leave),
        *array_lines(op),
        *guard(unfit_arrays(op), leave),
        *promotion_lines(op, leave, overwritten=variant == "inplace"),
    ]
    if op.sparse_result:
        lines = [slow_path(op, variant, moded=True)]
    elif variant == "out":
        written_alone = op.outputs or op.many or op.view or op.draws or callable(op.out_decides)
        lines = [leave] if written_alone else [*lines, *out_lines(op, leave)]
    elif variant == "inplace":
        lines += overwriting_body(op, leave)
    else:
        lines += body(op, leave, op.caller + 2 * (variant == "fast"))
    return (function if variant in ("fast", "out") else public_function)(op.name, parameters, lines), defaults


def number_lines(op: Operator) -> list[str]:
    """A Python number as second operand becomes a constant of the first one's dtype, where that is the rule."""
    if op.sequence is not None or not op.numbers or len(op.tensors) != 2 or op.tensors[1] != "other":
        return []
    types = "SCALARS" if op.check is None else "NUMBERS"  # a check may refuse truth values
    return [f"if type(other) in {types}:", "    other = constant(other, input)"]


def input_tests(op: Operator, leave: str) -> list[str]:
    """Replace a number by its constant, and execute `leave` unless the tensors are plain; two `Tensor`s pass in one test."""
    numbers = number_lines(op)
    if not numbers:
        return guard(unusual_types(op) + unusual_inputs(op), leave)
    others = [f"type({public_name(name)}) is not Tensor" for name in op.tensors]
    return [*guard(others, *numbers, *guard(unusual_types(op), leave)), *guard(unusual_inputs(op), leave)]


def unusual_call(op: Operator, variant: str) -> list[str]:
    """The conditions on modes and on the form of the call that require the slow path."""
    unusual = ["FLAGS.special"] if variant not in ("fast", "out") else []
    if variant == "function":
        unusual += ["out is not None"] if op.out else []
        unusual += [f"{name} is not MISSING" for name in numpy_names(op) if name in ("axis", "keepdims")]
    return unusual


def unusual_types(op: Operator) -> list[str]:
    """The conditions on the types of the tensors that require the slow path."""
    unusual = []
    for name in op.tensors:
        public = public_name(name)
        given = f"{public} is not None and " if op.kinds[name] == OPTIONAL_ARRAY else ""
        unusual.append(f"({given}type({public}) is not Tensor and type({public}) not in PLAIN)")
    return unusual


def unusual_inputs(op: Operator) -> list[str]:
    """The other conditions on the tensors."""
    unusual = [
        f"({name} is not None and ({name}._edge is not None or {name}._base is not None))"
        for name in map(public_name, op.constants)
    ]
    if op.view and op.tensors[0] == "self":
        unusual.append("(input._extra is not None and input._extra.inference)")
    return unusual


def array_lines(op: Operator) -> list[str]:
    """Read the arrays of the tensors, and of a sequence the edges."""
    if op.sequence is not None:
        return [f"{op.sequence}_array, edges = plain_sequence({op.sequence})"]
    lines = []
    for name in op.tensors:
        none = f"None if {public_name(name)} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
        lines.append(f"{name}_array = {none}{public_name(name)}._array")
    return lines


def sizes_source(op: Operator, contiguous: bool) -> str:
    """The source of a method with separate integers for the last parameter; `otherwise` handles all other calls.

    `contiguous`: also calls on tensors that are not contiguous.
    """
    sizes = op.names[-1]
    leave = f"return otherwise(input, *{sizes}, **names)"
    lines = [
        *guard([f"not {sizes}", f"type({sizes}[0]) is not int", "names", "FLAGS.special"], leave),
        *guard(unusual_types(op) + unusual_inputs(op), leave),
        "self_array = input._array",
        *guard([*unfit_arrays(op), *(["not self_array.flags.c_contiguous"] if contiguous else [])], leave),
        *promotion_lines(op, leave),
        *body(op, leave, caller=1),
    ]
    return public_function(op.name, f"input, /, *{sizes}, **names", lines)


def body(op: Operator, leave: str, caller: int) -> list[str]:
    """Compute, make the results, record; the user's frame is most often `caller` frames above."""
    lines = [*block("try:", kernel_lines(op)), *or_leave(leave)]
    if op.view:
        lines += [
            "base = input._base",
            "if base is None:",
            "    base, creation, edge_0 = input, None, input._edge",
            "else:",
            "    creation, edge_0 = input._creation, current_edge(input)",
            "counter = input._counter",
            "if counter is None:",
            "    counter = shared_counter(input)",
        ]
    if op.many:
        return lines + many_body(op, caller)
    outputs = op.outputs or ("result",)
    arrays = [f"{name}_array" for name in outputs] if op.outputs else ["array"]
    if op.outputs:
        lines.append(f"{', '.join(arrays)} = array")
    elif not op.view:
        lines += ["if type(array) is not ndarray:", "    array = asarray(array)"]
    if op.operands or op.operand:
        lines += layout_lines(op, arrays[0])
    for name, array in zip(outputs, arrays, strict=True):
        lines += wrap_lines(op, name, array)
    if op.differentiable:
        recorded, unrecorded = recorded_lines(op, outputs, arrays, caller), unrecorded_lines(op, outputs)
        conditions = [is_recorded(op), "" if op.outputs else is_differentiable(op, "array")]
        condition = " and ".join(filter(None, conditions))
        lines += [*edge_lines(op), *block(f"if {condition}:", recorded), *block("else:", unrecorded)]
    else:
        lines += [f"{name}._edge = None" for name in outputs]
    results = f"({', '.join(outputs)},)"
    last = "result" if not op.outputs else results if op.returns is tuple else f"new_tuple(RETURNS, {results})"
    return [*lines, f"return {last}"]


def recorded_lines(op: Operator, outputs: tuple[str, ...], arrays: list[str], caller: int) -> list[str]:
    """Make the node, which is the history of the results."""
    shape, dtype = "array.shape", "array.dtype"
    if op.outputs:
        shape, dtype = (f"[{', '.join(f'{array}.{what}' for array in arrays)}]" for what in ("shape", "dtype"))
    lines = [*frame_lines(caller), *node_lines(op, shape, dtype), *input_lines(op), *result_lines(op)]
    for number, name in enumerate(outputs):
        can_require_grad = is_differentiable(op, arrays[number]) if op.outputs else ""
        edge = f"(node, {number})" + (f" if {can_require_grad} else None" if can_require_grad else "")
        lines.append(f"{name}._edge = {'None' if name in op.nondifferentiable_outputs else edge}")
    return lines + pack_lines(op, f"({', '.join(outputs)},)")


def is_differentiable(op: Operator, array: str) -> str:
    """The condition that a result on `array` can require grad; none where that follows from an operand that does."""
    follows = op.promote or op.view or len(op.tensors) < 2 or op.sequence is not None
    return "" if follows else f"{array}.dtype.kind not in 'biu'"


def unrecorded_lines(op: Operator, outputs: tuple[str, ...]) -> list[str]:
    """Leave the results without a history; a view under `no_grad` still has that of its base."""
    lines = [f"{name}._edge = None" for name in outputs]
    if op.view:
        lines += [f"if not {RECORDING}:", "    result._creation = creation_unrecorded(creation)"]
        lines += ["    if result._base._edge is not None:", "        result._edge = NOWHERE"]
    return lines


def many_body(op: Operator, caller: int) -> list[str]:
    """Create and record as many results as the kernel returns; none of them is saved."""
    shape, dtype = "[item.shape for item in array]", "[item.dtype for item in array]"
    record = [*frame_lines(caller), *node_lines(op, shape, dtype), *input_lines(op), *pack_lines(op, "()")]
    lines = [*edge_lines(op), "node = None", *block(f"if {is_recorded(op)}:", record)]
    if op.view:
        lines.append(f"creation = MULTI_OUTPUT if {RECORDING} else creation_unrecorded(creation)")
    unrecorded = "(None if result._base._edge is None else NOWHERE)" if op.view else "None"
    each = [
        *wrap_lines(op, "result", "item"),
        f"result._edge = {unrecorded} if node is None else (node, number)",
        "results.append(result)",
    ]
    return [*lines, "results = []", *block("for number, item in enumerate(array):", each), "return tuple(results)"]


def layout_lines(op: Operator, result: str) -> list[str]:
    """Preserve the memory order of an operand that is not row-major; of a second operand only if it is a view.

    NumPy's order equals PyTorch's if the first operand is row-major and the second is not a view; that of a ufunc of one operand
    does unless the operand, a view, has elements repeatedly.
    """
    names = (op.operand,) if op.operand else op.operands
    given = [f"{public_name(name)}._array" if promotes(op) else f"{name}_array" for name in names]
    if op.operand:
        of_ufunc = isinstance(op.kernel.general, numpy.ufunc) and not op.outputs
        otherwise = f"{public_name(op.operand)}._base is not None" if of_ufunc else f"not {given[0]}.flags.c_contiguous"
        condition = f"{otherwise} and {result}.strides != {given[0]}.strides"
        return [f"if {condition}:", f"    {result} = laid_out({result}, ({given[0]},))"]
    arrays = [f"{name}_array" for name in op.operands]
    optional = any(op.kinds[name] == OPTIONAL_ARRAY for name in op.operands)
    if len(arrays) > 2 or optional:
        others = [
            f"{array}.flags.c_contiguous"
            if op.kinds[name] == ARRAY
            else f"({array} is None or {array}.flags.c_contiguous)"
            for name, array in zip(op.operands, arrays, strict=True)
        ]
        condition = f"not ({' and '.join(others)})"
    else:
        first, second = arrays[0], public_name(op.operands[1])
        condition = f"not {first}.flags.c_contiguous or {second}._base is not None"
    return [f"if {condition}:", f"    {result} = laid_out({result}, ({', '.join(given)}))"]


def wrap_lines(op: Operator, name: str, array: str) -> list[str]:
    """Make the tensor `name` on `array`."""
    lines = [f"{name} = new_tensor()", f"{name}._array = {array}", f"{name}._grad = {name}._extra = None"]
    if not op.view:
        return [*lines, f"{name}._base = {name}._counter = None"]
    return [
        *lines,
        f"{name}._base = base",
        f"{name}._counter = counter",
        f"{name}._view_version = counter[0]",
        f"{name}._creation = creation",
    ]
