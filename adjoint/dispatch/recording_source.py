"""The source that records an operation: edges, the node, and what the node saves.

Generated functions contain these lines inline. The slow path and indexing call functions of the same lines
(`saving_source`). What is saved, and when, is therefore defined only here.
"""

from __future__ import annotations

from .declaration import ARRAY, ARRAYS, OPTIONAL_ARRAY, Operator
from .kernel_source import promotes
from .source import block, public_name

RECORDING = "(not FLAGS.no_grad or STATE.grad_enabled)"


def frame_lines(caller: int) -> list[str]:
    """Find the user's frame, usually `caller` frames above, and the code that it runs, usually of the latest file."""
    return [
        f"frame = getframe({caller})",
        "code = frame.f_code",
        *block("if code.co_filename is not FLAGS.file:", ["frame = nearest_user_frame(frame)", "code = frame.f_code"]),
    ]


# --- edges ----------------------------------------------------------------------------------------------------


def edge_lines(op: Operator) -> list[str]:
    """Find the edges of the tensors: `edge_0`, `edge_1`, ... The edge of a view has been found along with its base."""
    lines = []
    for index, name in enumerate(op.differentiable if op.sequence is None else ()):
        public = public_name(name)
        none = f"None if {public} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
        if not (op.view and index == 0):
            lines.append(f"edge_{index} = {none}{public}._edge if {public}._base is None else current_edge({public})")
    return lines


def is_recorded(op: Operator) -> str:
    """The condition under which the operation is recorded."""
    if op.sequence is not None:
        return f"edges is not None and {RECORDING}"
    needed = " or ".join(f"edge_{index} is not None" for index in range(len(op.differentiable)))
    return f"({needed}) and {RECORDING}" if len(op.differentiable) > 1 else f"{needed} and {RECORDING}"


# --- the node -------------------------------------------------------------------------------------------------


def node_lines(op: Operator, shape: str, dtype: str, *, from_tensors: bool = True) -> list[str]:
    """Create the node of an operation in the user's `frame`, which runs `code`, without saved values.

    If edges are not read `from_tensors`, an edge that ends at a leaf is the leaf already.
    """
    lines = []
    edges = "edges"
    if op.sequence is None:
        for index, name in enumerate(op.differentiable):
            if from_tensors:
                lines += [f"if edge_{index} is LEAF:", f"    edge_{index} = {public_name(name)}"]
            # The gradient of a view that was made without recording is not used.
            lines += [f"{'elif' if from_tensors else 'if'} edge_{index} is NOWHERE:", f"    edge_{index} = None"]
        edges = f"({', '.join(f'edge_{index}' for index in range(len(op.differentiable)))},)"
    return [
        *lines,
        "node = NodeClass()",
        f"node._edges = {edges}",
        "node._hooks = None",
        "node._sequence = next(sequence_numbers)",
        f"node._grad_shape = {shape}",
        f"node._grad_dtype = {dtype}",
        "node._code = code",
        "node._lasti = frame.f_lasti",
    ]


def pack_lines(op: Operator, results: str) -> list[str]:
    """Pass saved values to the saved-tensor hooks, if there are any."""
    if not (op.saved_inputs or op.saved_results or op.lists):
        return []
    return ["if FLAGS.hooked:", f"    pack_saved(node, {results})"]


# --- what the node saves --------------------------------------------------------------------------------------


def input_lines(op: Operator, changed: str | None = None) -> list[str]:
    """Save inputs and parameters; of the input that is about to be `changed` in place, save a copy."""
    lines = []
    for item in op.saved_inputs:
        public = public_name(item)
        if item == changed:
            save = [f"node.saved_{item} = detached_copy({public})", f"node.version_{item} = 0"]
        else:
            none = f"{public} is None or " if op.kinds[item] == OPTIONAL_ARRAY else ""
            version = f"0 if {none}{public}._counter is None else {public}._counter[0]"
            save = [f"node.saved_{item} = {public}", f"node.version_{item} = {version}"]
        lines += if_needed(op, item, save)
    return lines + value_lines(op)


def value_lines(op: Operator) -> list[str]:
    """Save parameters, shapes and dtypes."""
    lines = []
    for item in op.saved_values:
        name, _, what = item.rpartition("_")
        if op.kinds.get(name) == ARRAYS:  # a loop takes less time than Python 3.11's comprehension, which is a function
            lines.append(f"node.saved_{item} = values = []")
            lines += block(f"for each in {name}_array:", [f"values.append(each.{what})"])
        else:
            lines.append(f"node.saved_{item} = {value_expression(op, item)}")
    return lines


def result_lines(op: Operator) -> list[str]:
    """Save results, and create their version counters: all of them, whichever gradient needs them, as PyTorch does."""
    lines = []
    for item in op.saved_results:
        array = f"{item}_array" if op.outputs else "array"
        lines += [f"node.saved_{item} = {array}", f"node.version_{item} = 0"]
        lines.append(f"node.counter_{item} = {item}._counter = [0, None]")
    return lines


def if_needed(op: Operator, item: str, save: list[str]) -> list[str]:
    """The lines that save `item`; they run only if an input whose formula names it needs a gradient."""
    users = op.saved[item]
    if op.sequence is not None or len(users) == len(op.differentiable):
        return save
    needed = [f"edge_{op.differentiable.index(user)} is not None" for user in users]
    return [*block(f"if {' or '.join(needed)}:", save), "else:", f"    node.saved_{item} = None"]


def value_expression(op: Operator, item: str) -> str:
    """The expression for a saved value: a parameter, or the shape, dtype, strides or geometry of an input."""
    name = item.removesuffix("_geometry")
    if name != item and name in op.kinds:
        return f"Geometry({name}_array)"
    for suffix in ("shape", "dtype", "strides"):
        name = item.removesuffix(f"_{suffix}")
        if name != item and name in op.kinds:
            array = f"{public_name(name)}._array" if promotes(op) else f"{name}_array"  # as given, not as promoted
            if op.kinds[name] == ARRAYS:
                return f"[each.{suffix} for each in {array}]"
            none = "" if op.kinds[name] == ARRAY else f"None if {array} is None else "
            return f"{none}{array}.{suffix}"
    return public_name(item)
