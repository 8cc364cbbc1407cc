"""The straight-line code that records a call: edges, the node, and its saved values, which only this code defines."""

from __future__ import annotations

from ..declaration import ARRAY, ARRAYS, OPTIONAL_ARRAY, VALUE, Operator
from ..plan import FUNCTION
from ..source import block, public_name
from .promote import promotes

RECORDING = "(not FLAGS.no_grad or STATE.grad_enabled)"
"""The condition that gradients are enabled in this thread."""


def recorded_lines(op: Operator, caller: int) -> list[str]:
    """Return the lines that create the node, and the edges of the results to it."""
    shape, dtype = "array.shape", "array.dtype"
    if op.many:
        shape, dtype = "[item.shape for item in array]", "[item.dtype for item in array]"
    elif op.outputs:
        shape, dtype = (f"[{', '.join(f'{name}_array.{what}' for name in op.outputs)}]" for what in ("shape", "dtype"))
    lines = [*real_lines(op), *frame_lines(caller), *node_lines(op, shape, dtype), *input_lines(op)]
    if op.many:  # no list is saved
        each = block("for number, result in enumerate(results):", ["result._edge = (node, number)"])
        return [*lines, *pack_lines(op, "()"), *each]
    lines += result_lines(op)
    outputs = op.outputs or ("result",)
    for number, name in enumerate(outputs):
        condition = can_require_grad_if(op, f"{name}_array") if op.outputs else ""
        edge = f"(node, {number})" + (f" if {condition} else None" if condition else "")
        lines.append(f"{name}._edge = {'None' if name in op.nondifferentiable_outputs else edge}")
    return lines + pack_lines(op, f"({', '.join(outputs)},)")


def can_require_grad_if(op: Operator, array: str) -> str:
    """Return the condition that a result on `array` can require grad, or nothing if that follows from an operand."""
    follows = op.promote or op.view or len(op.tensors) < 2 or op.sequence is not None
    return "" if follows else f"{array}.dtype.kind not in 'biu'"


def unrecorded_lines(op: Operator) -> list[str]:
    """Return the lines that leave the results without a history. A view under `no_grad` keeps the history of its base."""
    if op.many:
        return []
    lines = [f"{name}._edge = None" for name in op.outputs or ("result",)]
    if op.view:
        lines += [f"if not {RECORDING}:", "    result._creation = creation_unrecorded(creation)"]
        lines += ["    if result._base._edge is not None:", "        result._edge = NOWHERE"]
    return lines


def frame_lines(caller: int | str) -> list[str]:
    """Return the lines that find the user's frame, usually `caller` frames above, and its code, usually in the latest file."""
    return [
        f"frame = getframe({caller})",
        "code = frame.f_code",
        *block("if code.co_filename is not FLAGS.file:", ["frame = nearest_user_frame(frame)", "code = frame.f_code"]),
    ]


def edge_lines(op: Operator) -> list[str]:
    """Return the lines that find the edges of the tensors: `edge_0`, `edge_1`, ..."""
    lines = []
    for index, name in enumerate(op.differentiable if op.sequence is None else ()):
        public = public_name(name)
        none = f"None if {public} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
        if not (op.view and index == 0):
            lines.append(f"edge_{index} = {none}{public}._edge if {public}._base is None else current_edge({public})")
    return lines


def is_recorded_if(op: Operator) -> str:
    """Return the condition under which the operation is recorded."""
    if op.sequence is not None:
        return f"edges is not None and {RECORDING}"
    needed = " or ".join(f"edge_{index} is not None" for index in range(len(op.differentiable)))
    return f"({needed}) and {RECORDING}" if len(op.differentiable) > 1 else f"{needed} and {RECORDING}"


def node_lines(op: Operator, shape: str = "", dtype: str = "", *, from_tensors: bool = True) -> list[str]:
    """Return the lines that create the node of an operation in the user's `frame`, which runs `code`, without saved values.

    If edges are not read `from_tensors`, an edge that ends at a leaf is already the leaf. Without `shape` and `dtype`,
    later lines set the shapes and dtypes of the results.
    """
    lines = []
    edges = "edges" if from_tensors else "tuple([None if edge is NOWHERE else edge for edge in edges])"
    if op.sequence is None:
        for index, name in enumerate(op.differentiable):
            if from_tensors:
                lines += [f"if edge_{index} is LEAF:", f"    edge_{index} = {public_name(name)}"]
            # The gradient of a view that was created without recording is not used.
            lines += [f"{'elif' if from_tensors else 'if'} edge_{index} is NOWHERE:", f"    edge_{index} = None"]
        edges = f"({', '.join(f'edge_{index}' for index in range(len(op.differentiable)))},)"
    return [
        *lines,
        "node = NodeClass()",
        f"node._edges = {edges}",
        "node._hooks = None",
        "node._sequence = next(sequence_numbers)",
        *([f"node._grad_shape = {shape}", f"node._grad_dtype = {dtype}"] if shape else []),
        "node._code = code",
        "node._lasti = frame.f_lasti",
    ]


def real_lines(op: Operator, *conditions: str) -> list[str]:
    """Return the lines that refuse complex numbers if the operator has a `real_derivative`, its name in the error."""
    name = getattr(op.declaration, "real_derivative", None)
    if name is None:
        return []
    conditions = (*conditions, f"{public_name(op.differentiable[0])}._array.dtype.kind in 'cW'")
    words = f"{name} does not support automatic differentiation for outputs with complex dtype."
    return block(f"if {' and '.join(conditions)}:", [f"raise RuntimeError({words!r})"])


def pack_lines(op: Operator, results: str) -> list[str]:
    """Return the lines that pass saved values to the saved-tensor hooks, if there are any."""
    if not (op.saved_inputs or op.saved_results or op.lists):
        return []
    return ["if FLAGS.hooked:", f"    pack_saved(node, {results})"]


def input_lines(op: Operator, changed: str | None = None) -> list[str]:
    """Return the lines that save inputs and parameters. If an input is about to be `changed` in place, save a copy."""
    lines = []
    for item in op.saved_inputs:
        public = public_name(item)
        if item == changed:
            save = [f"node.saved_{item} = detached_copy({public})", f"node.version_{item} = 0"]
        else:
            save = save_lines(op, item)
        lines += if_needed(op, item, save)
    return lines + value_lines(op)


def save_lines(op: Operator, item: str) -> list[str]:
    """Return the lines that save an input and its version."""
    public = public_name(item)
    none = f"{public} is None or " if op.kinds[item] == OPTIONAL_ARRAY else ""
    version = f"0 if {none}{public}._counter is None else {public}._counter[0]"
    return [f"node.saved_{item} = {public}", f"node.version_{item} = {version}"]


def value_lines(op: Operator) -> list[str]:
    """Return the lines that save parameters, shapes and dtypes."""
    lines = []
    for item in op.saved_values:
        name, _, what = item.rpartition("_")
        if op.kinds.get(name) == ARRAYS:  # a loop is faster than a comprehension, which is a function in Python 3.11
            lines.append(f"node.saved_{item} = values = []")
            lines += block(f"for each in {name}_array:", [f"values.append(each.{what})"])
        else:
            lines.append(f"node.saved_{item} = {value_expression(op, item)}")
    return lines


def result_lines(op: Operator) -> list[str]:
    """Return the lines that save all results, as PyTorch does for every gradient, and create their version counters."""
    lines = []
    for item in op.saved_results:
        array = f"{item}_array" if op.outputs else "array"
        lines += [f"node.saved_{item} = {array}", f"node.version_{item} = 0"]
        lines.append(f"node.counter_{item} = {item}._counter = [0, None]")
    return lines


def if_needed(op: Operator, item: str, save: list[str]) -> list[str]:
    """Return the lines that save `item`. They run only if an input needs a gradient and its formula uses `item`."""
    users = op.saved[item]
    if op.sequence is not None or len(users) == len(op.differentiable):
        return save
    needed = [f"edge_{op.differentiable.index(user)} is not None" for user in users]
    return [*block(f"if {' or '.join(needed)}:", save), "else:", f"    node.saved_{item} = None"]


def value_expression(op: Operator, item: str) -> str:
    """Return the expression for a saved value: a parameter, or the shape, dtype, strides or geometry of an input."""
    name = item.removesuffix("_geometry")
    if name != item and name in op.kinds:
        return f"Geometry({name}_array)"
    for suffix in ("shape", "dtype", "strides"):
        name = item.removesuffix(f"_{suffix}")
        if name != item and name in op.kinds:
            array = f"{public_name(name)}._array" if promotes(op) else f"{name}_array"  # before promotion
            if op.kinds[name] == ARRAYS:
                return f"[each.{suffix} for each in {array}]"
            none = "" if op.kinds[name] == ARRAY else f"None if {array} is None else "
            return f"{none}{array}.{suffix}"
    return public_name(item)


def saving_source(op: Operator) -> str:
    """Return the source of `started(call, name, on_tensors)`, `save_results(node, outputs)` and `saved_values(args)`.

    `started` returns a node called `name` that has saved its inputs. `on_tensors`: whether its formulas always run on
    tensors. `changed`: the tensor that the operation is about to change. The user's call is at least `depth` frames above.
    In `args`, numbers have been replaced by tensors.
    """
    edges = ", ".join([f"edge_{index}" for index in range(len(op.differentiable))]) if op.sequence is None else ""
    kind = ["NodeClass = NODE_CLASSES[name]", "if on_tensors:", "    NodeClass = node_class_on_tensors(NodeClass)"]
    read = [f"{', '.join(map(public_name, op.names))}, = args"]
    for name in op.names:
        if op.kinds[name] == ARRAYS:
            read.append(f"{name}_array = [item._array for item in {name}]")
        elif op.kinds[name] != VALUE:
            none = f"None if {public_name(name)} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
            read.append(f"{name}_array = {none}{public_name(name)}._array")
    lines = [*frame_lines("depth"), *node_lines(op, from_tensors=False), "if ANOMALY.enabled:", "    note_node(node)"]
    for item in op.saved_inputs:
        first = item == op.tensors[0] if op.tensors else False
        public = public_name(item)
        save = [f"save_operand(node, '{item}', {public}, changed, {first})"]
        if op.kinds[item] == ARRAY:
            plain = f"if {public} is not changed and not isinstance({item}_array, LazyConjNeg):"
            save = [*block(plain, save_lines(op, item)), *block("else:", save)]
        lines += if_needed(op, item, save)
    for item in op.lists:
        lines += [f"if hasattr({item}, 'check_savable'):", f"    {item}.check_savable()"]
    lines = [
        *kind,
        "args = call.args",
        f"{edges + ', ' if edges else 'edges'} = call.edges",
        *read,
        *real_lines(op, f"call.way == {FUNCTION!r}"),
        *lines,
        *value_lines(op),
    ]
    start = block("def started(call, name, on_tensors, changed=None, depth=5):", [*lines, "return node"])
    results = [f"{', '.join(op.outputs or ('result',))}, = outputs"] if op.saved_results else ["pass"]
    results += [f"save_result(node, '{item}', {item})" for item in op.saved_results]
    values = ", ".join(f"'{item}': {value_expression(op, item)}" for item in op.saved_values)
    definitions = [
        start,
        block("def save_results(node, outputs):", results),
        block("def saved_values(args):", [*read, f"return {{{values}}}"]),
    ]
    return "\n\n\n".join("\n".join(lines) for lines in definitions) + "\n"


def part_source(op: Operator) -> str:
    """Return the source of `part_node(edge_0, self_array, array, frame, code, ...)`, which creates an indexing step's node."""
    values = [public_name(name) for name in op.names if op.kinds[name] == VALUE]
    # The intermediate results of indexing are not tensors.
    lines = [*node_lines(op, "array.shape", "array.dtype", from_tensors=False), *value_lines(op), "return node"]
    return "\n".join(
        [*block(f"def part_node({', '.join(['edge_0', 'self_array', 'array', 'frame', 'code', *values])}):", lines), ""]
    )
