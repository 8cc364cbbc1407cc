"""The source of functions that consist of the lines of straight-line code: for the slow path, and for indexing."""

from __future__ import annotations

from .declaration import ARRAY, ARRAYS, OPTIONAL_ARRAY, VALUE, Operator
from .kernel_source import kernel_lines, no_floats, passed_arguments
from .recording_source import if_needed, node_lines, value_expression, value_lines
from .source import block, function, guard, public_name


def saving_source(op: Operator) -> str:
    """The source of `save_inputs(node, edges, args, changed)`, `save_results(node, outputs)`, `saved_values(args)`.

    In `args`, numbers have been replaced by tensors; `changed` is the tensor that the operation is about to change, or
    None.
    """
    edges = [f"edge_{index}" for index in range(len(op.differentiable))] if op.sequence is None else []
    read_edges = [f"{', '.join(edges)}, = edges"] if edges else []
    read = [f"{', '.join(map(public_name, op.names))}, = args"]
    for name in op.names:
        if op.kinds[name] == ARRAYS:
            read.append(f"{name}_array = [item._array for item in {name}]")
        elif op.kinds[name] != VALUE:
            none = f"None if {public_name(name)} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
            read.append(f"{name}_array = {none}{public_name(name)}._array")
    lines = [*read_edges, *read]
    for item in op.saved_inputs:
        first = item == op.tensors[0] if op.tensors else False
        lines += if_needed(op, item, [f"save_operand(node, '{item}', {public_name(item)}, changed, {first})"])
    for item in op.lists:
        lines += [f"if hasattr({item}, 'check_savable'):", f"    {item}.check_savable()"]
    inputs = block("def save_inputs(node, edges, args, changed):", [*lines, *value_lines(op)])
    results = [f"{', '.join(op.outputs or ('result',))}, = outputs"] if op.saved_results else ["pass"]
    results += [f"save_result(node, '{item}', {item})" for item in op.saved_results]
    values = ", ".join(f"'{item}': {value_expression(op, item)}" for item in op.saved_values)
    definitions = [
        inputs,
        block("def save_results(node, outputs):", results),
        block("def saved_values(args):", [*read, f"return {{{values}}}"]),
    ]
    return "\n\n\n".join("\n".join(lines) for lines in definitions) + "\n"


def computing_source(op: Operator) -> str:
    """The source of the kernel call as a function of the arrays and values, for the slow path: it takes any arrays."""
    parameters = [public_name(name) if op.kinds[name] == VALUE else f"{name}_array" for name in op.names]
    passed = passed_arguments(op, dtypes_of_numpy=True)
    arrays = [f"{name}_array" for name in op.tensors if op.kinds[name] == ARRAY]
    unfit = [] if op.sequence else [f"type({name}_array) is not ndarray" for name in op.tensors]
    unfit += [f"{arrays[0]}.dtype is not {other}.dtype" for other in arrays[1:]]
    unfit += no_floats(op)
    general = f"return any_size({', '.join(passed)})"
    lines = [general]
    if op.kernel.small is not None:  # which refuses what the general form may take
        refused = ["except BaseException as error:", "    if not is_refusal(error):", "        raise", f"    {general}"]
        lines = [*guard(unfit, general), *block("try:", kernel_lines(op, passed)), *refused, "return array"]
    return function("computing", ", ".join(parameters), lines)


def part_source(op: Operator) -> str:
    """The source of `part_node(edge_0, self_array, array, frame, code, ...)`: it creates the node of one step of indexing."""
    values = [public_name(name) for name in op.names if op.kinds[name] == VALUE]
    # The intermediate results of indexing are not tensors.
    lines = [*node_lines(op, "array.shape", "array.dtype", from_tensors=False), *value_lines(op), "return node"]
    return "\n".join(
        [*block(f"def part_node({', '.join(['edge_0', 'self_array', 'array', 'frame', 'code', *values])}):", lines), ""]
    )
