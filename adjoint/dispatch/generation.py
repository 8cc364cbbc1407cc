"""Writes the source of each operator's function and of its node class, straight-line code for the common case.

The function runs the common case inline: exact `Tensor`s (or plain subclasses) of one dtype, no `out`, no special mode.
Everything else leaves through one door, `dispatch.call`. The source is registered with `linecache`, so that
tracebacks show it and a debugger can step through it: `print(adjoint.operators.SOURCES["mul"])`.
"""

from __future__ import annotations

import linecache
import sys
from typing import Any

import numpy

from ..tape.node import Node
from ..tape.saved import saved_attributes
from .declaration import ARRAY, ARRAYS, OPTIONAL_ARRAY, VALUE, Operator, parameters_of

NUMPY_NAMES = {"input": ("x", "a", "x1"), "other": ("x2",), "dim": ("axis",), "keepdim": ("keepdims",)}
"""Names that NumPy's users may give to parameters; the door translates them."""

SOURCES: dict[str, str] = {}


def public_name(name: str) -> str:
    """`self` in a declaration is `input` to those who call the function."""
    return "input" if name == "self" else name


def compile_source(source: str, filename: str, namespace: dict[str, Any]) -> None:
    """Execute generated source so that tracebacks and debuggers can show it."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), namespace)


# --- the function ---------------------------------------------------------------------------------------------


def signature(op: Operator, defaults: dict[str, Any]) -> str:
    """The parameters as written in the function's `def`; defaults are stored in its namespace."""
    parts, star = [], False
    for name in op.names:
        if name in op.keyword_only and not star:
            parts.append("*more" if op.formerly else "*")
            star = True
        default = "MISSING"
        if name in op.defaults:
            default = f"default_{name}"
            defaults[default] = op.defaults[name]
        parts.append(f"{public_name(name)}={default}")
    if not star:
        parts.append("*")
    if op.out:
        parts.append("out=None")
    parts.extend(f"{name}=MISSING" for name in numpy_names(op))
    if parts[-1] == "*":
        parts.pop()
    return ", ".join(parts)


def numpy_names(op: Operator) -> list[str]:
    """The alternative names that this operator's parameters accept."""
    names = {public_name(name) for name in op.names}
    return [other for name in op.names for other in NUMPY_NAMES.get(public_name(name), ()) if other not in names]


def door(op: Operator, variant: str = "function") -> str:
    """The call of the general path; a binary operator's (`*`) returns NotImplemented for what it does not know."""
    args = ", ".join(public_name(name) for name in op.names)
    if variant == "behind":
        return f"call_generally(OP, ({args},), None)"
    if variant != "function":
        return f"call_{variant}(OP, ({args},))"
    extra = "".join(f", {name}={name}" for name in numpy_names(op))
    return f"call(OP, ({args},), {'out' if op.out else 'None'}{extra})"


def function_source(op: Operator, variant: str = "function") -> tuple[str, dict[str, Any]]:
    """The source of the function (or of the variant `"operator"`, `"inplace"` or `"behind"`) and the defaults it refers to.

    `"behind"` the gate are the calls of those turned away there on account of another thread.
    """
    defaults: dict[str, Any] = {}
    parameters = signature(op, defaults) if variant == "function" else operator_signature(op, defaults, variant)
    if variant == "inplace_view":
        return inplace_view_source(op, parameters), defaults
    lines = [f"def {op.name}({parameters}):", *former_lines(op, variant), *scalar_lines(op)]
    conditions = ["not GATE.special"] if variant != "behind" else []
    if variant == "function":
        conditions += ["out is None"] if op.out else []
        conditions += [f"{name} is MISSING" for name in numpy_names(op) if name in ("axis", "keepdims")]
    for name in op.tensors:
        public = public_name(name)
        plain = f"type({public}) is Tensor or type({public}) in PLAIN"
        conditions.append(f"({public} is None or {plain})" if op.kinds[name] == OPTIONAL_ARRAY else f"({plain})")
    for name in map(public_name, op.constants):
        conditions.append(f"({name} is None or {name}._edge is None and {name}._base is None)")
    if op.view and op.tensors[0] == "self":
        conditions.append("(input._extra is None or not input._extra.inference)")
    lines.append(f"    if {' and '.join(conditions) or True}:")
    for name in op.tensors:
        none = f"None if {public_name(name)} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
        lines.append(f"        {name}_array = {none}{public_name(name)}._array")
    guard = array_guard(op)
    if op.sequence is not None:
        lines.append(f"        {op.sequence}_array, edges = plain_sequence({op.sequence})")
    indent = "        "
    if guard:
        lines.append(f"        if {guard}:")
        indent = "            "
    if variant == "inplace":
        inner = inplace_body(op)
    else:
        inner = body(op, door(op, variant), op.caller + 2 * (variant == "behind"))
    lines += [indent + line for line in inner]
    lines.append(f"    return {door(op, variant)}")
    return "\n".join(lines) + "\n", defaults


def former_lines(op: Operator, variant: str) -> list[str]:
    """Puts the arguments of a form of old, numbers before tensors, into their places."""
    if not op.formerly or variant not in ("function", "inplace"):
        return []
    positional = ", ".join(public_name(name) for name in op.names if name not in op.keyword_only)
    keywords = ", ".join(name for name in op.names if name in op.keyword_only)
    changing = variant == "inplace"
    places = f"OP, ({positional}, *more), ({keywords},), {changing}"
    return ["    if more:", f"        {positional}, {keywords}, = in_new_order({places})"]


def sizes_source(op: Operator, contiguous: bool) -> str:
    """The source of a method that takes the last parameter's integers one by one; `otherwise` takes all other calls.

    `contiguous`: also those of tensors that are not.
    """
    sizes = op.names[-1]
    way_out = f"otherwise(input, *{sizes}, **names)"
    condition = f"{sizes} and type({sizes}[0]) is int and not names and not GATE.special"
    condition += " and (input._extra is None or not input._extra.inference)"
    condition += " and (type(input) is Tensor or type(input) in PLAIN) and type(input._array) is ndarray"
    if contiguous:
        condition += " and input._array.flags.c_contiguous"
    lines = [
        f"def {op.name}(input, /, *{sizes}, **names):",
        f"    if {condition}:",
        "        self_array = input._array",
        *("        " + line for line in body(op, way_out, caller=1)),
        f"    return {way_out}",
    ]
    return "\n".join(lines) + "\n"


def inplace_view_source(op: Operator, parameters: str) -> str:
    """The source of what makes its argument another view: straight-line where that is no view yet, nor a leaf, nor has hooks."""
    way_out = f"return {door(op, 'inplace_view')}"
    record = node_lines(op, 1, "(edge_0,)", "array.shape", "array.dtype")
    lines = [
        f"def {op.name}({parameters}):",
        "    if not (GATE.special or GATE.hooked) and type(input) is Tensor and input._base is None and input._extra is None:",
        "        edge_0 = input._edge",
        "        self_array = input._array",
        "        if type(self_array) is ndarray and (edge_0 is None or (edge_0 is not LEAF and edge_0[0].hooks is None)):",
        "            try:",
        f"                array = kernel({', '.join(passed_arguments(op))})",
        "            except Exception:",
        f"                {way_out}",
        "            frame = getframe(1)",
        "            if frame.f_globals is not GATE.user:",
        "                frame = nearest_user_frame(frame)",
        "            if edge_0 is not None and (GATE.grad or STATE.grad_enabled):",
        *("                " + line for line in record),
        "                input._edge = (node, 0)",
        "            input._array = array",
        "            counter = input._counter",
        "            if counter is None:",
        "                counter = input._counter = [0]",
        f"            counter[1:] = (frame.f_code, frame.f_lasti, '{op.called}_')",
        "            counter[0] += 1",
        "            return input",
        f"    {way_out}",
    ]
    return "\n".join(lines) + "\n"


def operator_signature(op: Operator, defaults: dict[str, Any], variant: str) -> str:
    """The parameters of a variant: those of the declaration alone; behind the gate all are given, in order."""
    parts = []
    for name in op.names:
        if variant == "behind":
            parts.append(public_name(name))
            if name in op.defaults:
                defaults[f"default_{name}"] = op.defaults[name]
            continue
        if name in op.keyword_only and not {"*", "*more"} & {*parts}:
            parts.append("*more" if op.formerly and variant == "inplace" else "*")
        if name in op.defaults:
            defaults[f"default_{name}"] = op.defaults[name]
            parts.append(f"{public_name(name)}=default_{name}")
        else:
            parts.append(f"{public_name(name)}{'=MISSING' if any('=' in part for part in parts) else ''}")
    return ", ".join(parts)


def passed_arguments(op: Operator) -> list[str]:
    """The arguments of the kernel call."""
    passed = []
    for name in op.names:
        value = public_name(name) if op.kinds[name] == VALUE else f"{name}_array"
        passed.append(f"{name}={value}" if name in op.keyword_only else value)
    return passed


def kernel_lines(op: Operator) -> list[str]:
    """The call of the array function; `simple` is the one for when all keyword parameters have their defaults.

    The generated functions' own module has no name, which keeps NumPy silent about the ufuncs that they call themselves
    (`build._BASE`). Other functions may give rise to warnings somewhere else, and run with them off.
    """
    general = quietly(op, op.kernel, f"array = kernel({', '.join(passed_arguments(op))})")
    if op.simple is None:
        return general
    keywords = [name for name in op.names if name in op.keyword_only]
    few = ", ".join(f"{name}_array" for name in op.tensors)
    simple = quietly(op, op.simple, f"array = simple({few})")
    if not keywords:
        return simple
    lines = [
        f"if {' and '.join(f'{name} is default_{name}' for name in keywords)}:",
        *("    " + line for line in simple),
    ]
    return [*lines, "else:", *("    " + line for line in general)]


def quietly(op: Operator, function: Any, line: str) -> list[str]:
    """`line`, which calls `function`, with NumPy's floating-point warnings off if there can be any."""
    if op.view or isinstance(function, numpy.ufunc) or getattr(function, "silent", False):
        return [line]
    return ["token = quiet()", "try:", f"    {line}", "finally:", "    restore(token)"]


def inplace_body(op: Operator) -> list[str]:
    """Write over the first argument where autograd has nothing to do, or a plain history to go on; the rest: the door."""
    target = public_name(op.tensors[0])
    nothing = [
        f"{public_name(name)}._edge is None and {public_name(name)}._base is None"
        for name in op.tensors
        if op.kinds[name] == ARRAY
    ]
    nothing += [
        f"({n} is None or {n}._edge is None and {n}._base is None)" for n in op.tensors if op.kinds[n] == OPTIONAL_ARRAY
    ]
    array = f"{op.tensors[0]}_array"
    if op.apart:
        nothing += [f"{public_name(name)} is not {target}" for name in op.tensors[1:]]
    apart = [f" and ({target}._base is None or 0 not in {array}.strides)"]  # a part of memory is written once
    itself = "" if op.apart else f" or {{}} is {target}"
    apart += [  # where the version counter is shared, memory may be
        f" and ({n} is None or {n}._counter is None or {n}._counter is not {target}._counter{itself.format(n)})"
        for n in op.tensors[1:]
    ]
    lines = [
        f"if ({target}._extra is None or not {target}._extra.inference) and ",
        f"(not (GATE.grad or STATE.grad_enabled){''.join(apart)} or {' and '.join(nothing)}):",
    ]
    lines = ["".join(lines)]
    way_out = f"return {door(op, 'inplace')}"
    compute = [
        "try:",
        *("    " + line for line in overwriting_lines(op, way_out)),
        "except Exception:",
        f"    {way_out}",
    ]
    compute += [f"counter = {target}._counter", "if counter is None:", f"    counter = {target}._counter = [0]"]
    frame = ["frame = getframe(1)", "if frame.f_globals is not GATE.user:", "    frame = nearest_user_frame(frame)"]
    bump = [f"counter[1:] = (frame.f_code, frame.f_lasti, '{op.called}_')", "counter[0] += 1"]
    lines += ["    " + line for line in [*compute, *frame, *bump, f"return {target}"]]
    return lines + recorded_inplace_lines(op, target, [*compute, *bump])


def recorded_inplace_lines(op: Operator, target: str, compute: list[str]) -> list[str]:
    """Record the change of a result that is no view, has no hooks, and shares no memory with the other operands."""
    if op.tensors[0] not in op.differentiable or op.sequence is not None or op.outputs:
        return []
    others = [public_name(name) for name in op.tensors[1:]]
    plain = [f"type({target}._edge) is tuple", f"{target}._base is None", f"{target}._extra is None"]
    plain += [f"{target}._edge[0].hooks is None", "not GATE.hooked", "(GATE.grad or STATE.grad_enabled)"]
    plain += [f"({name} is None or {name}._base is None and {name} is not {target})" for name in others]
    array = f"{op.tensors[0]}_array"
    edge_lines, _, edges = edge_parts(op)
    lines = [
        *edge_lines,
        *node_lines(op, 1, edges, f"{array}.shape", f"{array}.dtype", changed=op.tensors[0]),
        *compute,
    ]
    for item in op.saved_results:
        lines += [f"node.saved_{item} = {array}", f"node.counter_{item} = counter", f"node.version_{item} = counter[0]"]
    lines += [f"{target}._edge = (node, 0)", f"return {target}"]
    return [f"if {' and '.join(plain)}:", *("    " + line for line in lines)]


def overwriting_lines(op: Operator, way_out: str) -> list[str]:
    """Compute into the first array: by a ufunc's `out`, by `changing`, or by copying the result over it."""
    array, passed = f"{op.tensors[0]}_array", ", ".join(passed_arguments(op))
    if isinstance(op.kernel, numpy.ufunc):
        return [f"kernel({passed}, out={array})"]
    if op.changing is not None:
        general = quietly(op, op.changing, f"changing({passed})")
    else:
        general = quietly(op, op.kernel, f"changed = kernel({passed})")
        general += [
            f"if changed.shape != {array}.shape or changed.dtype is not {array}.dtype:",
            f"    {way_out}",
            f"{array}[...] = changed",
        ]
    if not isinstance(op.simple, numpy.ufunc):
        return general
    few = ", ".join(f"{name}_array" for name in op.tensors)
    simple = f"simple({few}, out={array})"
    keywords = [name for name in op.names if name in op.keyword_only]
    if not keywords:
        return [simple]
    condition = " and ".join(f"{name} is default_{name}" for name in keywords)
    return [f"if {condition}:", f"    {simple}", "else:", *("    " + line for line in general)]


def scalar_lines(op: Operator) -> list[str]:
    """A Python number as second operand becomes a constant of the first one's dtype, where that is the rule."""
    if op.sequence is not None or not op.numbers or len(op.tensors) != 2 or op.tensors[1] != "other":
        return []
    return ["    if type(other) is not Tensor and type(other) in NUMBERS:", "        other = constant(other, input)"]


def array_guard(op: Operator) -> str:
    """When the kernel may run on the arrays as they are: with elements of their own, and of dtypes that fit.

    Arrays on `meta`, and those yet to be conjugated or negated, are instances of subclasses.
    """
    if op.sequence is not None:
        return f"{op.sequence}_array is not None"
    arrays = [f"{name}_array" for name in op.tensors if op.kinds[name] == ARRAY]
    guards = [f"type({array}) is ndarray" for array in arrays]
    guards += [
        f"({name}_array is None or type({name}_array) is ndarray)"
        for name in op.tensors
        if op.kinds[name] == OPTIONAL_ARRAY
    ]
    guards += [f"{arrays[0]}.dtype is {other}.dtype" for other in arrays[1:]] if op.promote else []
    if op.promote == "float" or op.fast == "float" or op.quick is not None:
        guards.append(f"({arrays[0]}.dtype is FLOAT32 or {arrays[0]}.dtype is FLOAT64)")
    if op.quick is not None and op.limit is not None:
        guards.append(f"{arrays[0]}.size <= {op.limit}")
    return " and ".join(guards)


def body(op: Operator, way_out: str, caller: int) -> list[str]:
    """Compute, wrap, record; the user's frame is most often `caller` frames above."""
    lines = ["try:", *("    " + line for line in kernel_lines(op)), "except Exception:", f"    return {way_out}"]
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
    if op.operands:
        lines += layout_lines(op)
    for name, array in zip(outputs, arrays, strict=True):
        lines += wrap_lines(op, name, array)
    last = "return result"
    if op.outputs:
        results = f"({', '.join(outputs)},)"
        last = f"return {results}" if op.returns is tuple else f"return new_tuple(RETURNS, {results})"
    if not op.differentiable:
        return [*lines, *(f"{name}._edge = None" for name in outputs), last]
    edge_lines, needed, edges = edge_parts(op)
    shape = [
        f"[{', '.join(f'{array}.shape' for array in arrays)}]",
        f"[{', '.join(f'{array}.dtype' for array in arrays)}]",
    ]
    record = node_lines(op, caller, edges, *(shape if op.outputs else ("array.shape", "array.dtype")))
    for number, name in enumerate(outputs):
        record.append(f"{name}._edge = " + ("None" if name in op.nondifferentiable_outputs else f"(node, {number})"))
    record += pack_lines(op, f"({', '.join(outputs)},)")
    otherwise = [f"{name}._edge = None" for name in outputs]
    if op.view:
        otherwise += ["if not (GATE.grad or STATE.grad_enabled):", "    result._creation = NO_GRAD"]
        otherwise += ["    if result._base._edge is not None:", "        result._edge = NOWHERE"]
    lines += [
        *edge_lines,
        f"if {needed}:",
        *("    " + line for line in record),
        "else:",
        *("    " + line for line in otherwise),
    ]
    return [*lines, last]


def layout_lines(op: Operator) -> list[str]:
    """Mind the order in memory where an operand has one of its own; the second of two only if it is a view.

    NumPy's order is PyTorch's where the first lies row by row and the second is no view.
    """
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
        condition = f"{first}.ndim > 1 and not {first}.flags.c_contiguous or {second}._base is not None"
    return [f"if {condition}:", f"    array = laid_out(array, ({', '.join(arrays)}))"]


def many_body(op: Operator, caller: int) -> list[str]:
    """Wrap and record as many outputs as the kernel gives."""
    edge_lines, needed, edges = edge_parts(op)
    record = node_lines(op, caller, edges, "[item.shape for item in array]", "[item.dtype for item in array]")
    record += pack_lines(op, "()")  # what gives many results saves none of them
    lines = [*edge_lines, "node = None", f"if {needed}:", *("    " + line for line in record)]
    if op.view:
        lines.append("creation = MULTI_OUTPUT if GATE.grad or STATE.grad_enabled else NO_GRAD")
    unrecorded = "(None if result._base._edge is None else NOWHERE)" if op.view else "None"
    each = [
        *wrap_lines(op, "result", "item"),
        f"result._edge = {unrecorded} if node is None else (node, number)",
        "results.append(result)",
    ]
    return [
        *lines,
        "results = []",
        "for number, item in enumerate(array):",
        *("    " + line for line in each),
        "return tuple(results)",
    ]


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


def edge_parts(op: Operator) -> tuple[list[str], str, str]:
    """Lines that find where the gradients go, the condition under which there are any to record, and the node's edges."""
    if op.sequence is not None:
        return [], "edges is not None and (GATE.grad or STATE.grad_enabled)", "edges"
    lines, edges = [], []
    for index, name in enumerate(op.differentiable):
        public = public_name(name)
        none = f"None if {public} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
        if not (op.view and index == 0):  # a view's has been found along with its base
            lines.append(f"edge_{index} = {none}{public}._edge if {public}._base is None else current_edge({public})")
        edges.append(f"{public} if edge_{index} is LEAF else edge_{index}")
    needed = " or ".join(f"edge_{index} is not None" for index in range(len(edges)))
    needed = f"({needed})" if len(edges) > 1 else needed
    return lines, f"{needed} and (GATE.grad or STATE.grad_enabled)", f"({', '.join(edges)},)"


def node_lines(op: Operator, caller: int, edges: str, shape: str, dtype: str, changed: str | None = None) -> list[str]:
    """Make the node; `changed` is the input that the operation is about to change in place."""
    lines = []
    if op.sequence is None:  # a view whose base requires grad, but not the view's making, makes no use of a gradient
        for index in range(len(op.differentiable)):
            lines += [f"if edge_{index} is NOWHERE:", f"    edge_{index} = None"]
    lines += ["node = NodeClass()", f"node.edges = {edges}", "node.hooks = None", "node.sequence = next_sequence()"]
    lines += [f"node.shape = {shape}", f"node.dtype = {dtype}"]
    lines += [
        f"frame = getframe({caller})",
        "if frame.f_globals is not GATE.user:",
        "    frame = nearest_user_frame(frame)",
    ]
    return [*lines, "node.code = frame.f_code", "node.lasti = frame.f_lasti", *save_lines(op, changed)]


def save_lines(op: Operator, changed: str | None = None) -> list[str]:
    """What the node keeps: each item only if an input whose formula names it needs a gradient; a copy of what changes."""
    lines = []
    indices = {name: index for index, name in enumerate(op.differentiable)}
    for item in op.saved_inputs:
        public = public_name(item)
        users = op.saved[item]
        save = [f"node.saved_{item} = {public}"]
        version = f"node.version_{item} = 0 if {public}._counter is None else {public}._counter[0]"
        if op.kinds[item] == OPTIONAL_ARRAY:
            version = (
                f"node.version_{item} = 0 if {public} is None or {public}._counter is None else {public}._counter[0]"
            )
        save.append(version)
        if item == changed:
            save = [f"node.saved_{item} = detached_copy({public})", f"node.version_{item} = 0"]
        if len(users) == len(op.differentiable):
            lines += save
        else:
            condition = " or ".join(f"edge_{indices[user]} is not None" for user in users)
            lines += [f"if {condition}:", *("    " + line for line in save), "else:", f"    node.saved_{item} = None"]
    for item in op.saved_results if changed is None else ():
        array = f"{item}_array" if op.outputs else "array"
        lines += [
            f"node.saved_{item} = {array}",
            f"node.version_{item} = 0",
            f"node.counter_{item} = {item}._counter = [0]",
        ]
        if op.view:
            raise ValueError(f"{op.name}: a view's derivative cannot need the view")
    lines += [f"node.saved_{item} = {value_expression(op, item)}" for item in op.saved_values]
    return lines


def pack_lines(op: Operator, results: str) -> list[str]:
    """Send what the node keeps through the saved-tensor hooks, if there are any."""
    if not (op.saved_inputs or op.saved_results or op.lists):
        return []
    return ["if GATE.hooked:", f"    pack_saved(node, {results})"]


def value_expression(op: Operator, item: str) -> str:
    """How a saved value is read: a parameter, or the shape or dtype of an input."""
    name = item.removesuffix("_geometry")
    if name != item and name in op.kinds:
        return f"Geometry({name}_array)"
    for suffix in ("shape", "dtype", "strides"):
        name = item.removesuffix(f"_{suffix}")
        if name != item and name in op.kinds:
            if op.kinds[name] == ARRAYS:
                return f"[item.{suffix} for item in {name}_array]"
            return (
                f"{name}_array.{suffix}"
                if op.kinds[name] == ARRAY
                else f"None if {name}_array is None else {name}_array.{suffix}"
            )
    return public_name(item)


# --- the node -------------------------------------------------------------------------------------------------


def node_source(op: Operator) -> str:
    """The source of `backward` (on arrays) and `backward_recorded` (on tensors)."""
    return backward_source(op, recorded=False) + "\n\n" + backward_source(op, recorded=True)


def backward_source(op: Operator, recorded: bool) -> str:
    """One of the two: load what was saved, let go of it, apply the formulas."""
    lines = [f"def backward{'_recorded' if recorded else ''}(node, grad, keep, edges):"]
    several = len(op.differentiable) > 1 and op.joint is None
    for item in op.saved_inputs + op.saved_results:
        lines += ["    " + line for line in load_lines(op, item, recorded)]
    lines += [f"    {item} = node.saved_{item}" for item in op.saved_values]
    for item in op.lists:
        lines += [f"    if type({item}) is not tuple and ({item} is RELEASED or {item}.packed is not None):"]
        lines += [f"        {item} = unpack_list(node, '{item}')"]
    # What no gradient needed was not saved, and may be left out again.
    partly = [item for item in op.saved_inputs if op.joint is None and len(op.saved[item]) < len(op.differentiable)]
    released = [f"node.saved_{item}" for item in (*op.saved_inputs, *op.saved_results, *op.lists) if item not in partly]
    release = [f"{' = '.join(released)} = RELEASED"] if released else []
    for item in partly:
        release += [f"if {item} is not None:", f"    node.saved_{item} = RELEASED"]
    if release:
        lines += ["    if not keep:", *("        " + line for line in release)]
    xp = "tensor_namespace" if recorded else "array_namespace"
    if op.joint is not None:
        needs = "tuple(edge is not None for edge in edges)"
        args = formula_arguments(op.joint, {"needs": needs, "xp": xp})
        lines.append(f"    return joint({args})")
    else:
        terms = []
        for index, (name, formula) in enumerate(op.formulas.items()):
            term = f"vjp_{name}({formula_arguments(formula, {'xp': xp})})"
            terms.append(f"{term} if edges[{index}] is not None else None" if several else term)
        if op.sequence is not None:
            lines.append(f"    return {terms[0]}")
        else:
            lines.append(f"    return ({', '.join(terms)},)")
    return "\n".join(lines)


def formula_arguments(formula: Any, special: dict[str, str]) -> str:
    """The arguments of a formula, by the names of its parameters."""
    special = {**special, "grads": "grad"}
    return ", ".join(special.get(name, name) for name in parameters_of(formula))


def load_lines(op: Operator, item: str, recorded: bool) -> list[str]:
    """Read a saved tensor back, checking that nobody has changed it since."""
    saved = f"{item} = node.saved_{item}"
    if item in op.saved_results:
        usable = f"type({item}) is ndarray and node.counter_{item}[0] == node.version_{item}"
        if not recorded:
            return [saved, f"if not ({usable}):", f"    {item} = unpack_array(node, '{item}', {item})"]
        number = (op.outputs or ("result",)).index(item)
        edge = "None" if item in op.nondifferentiable_outputs else f"(node, {number})"
        return [
            saved,
            f"if {usable} and node.hooks is None:",
            f"    {item} = alias({item}, node.counter_{item}, {edge})",
            "else:",
            f"    {item} = unpack(node, '{item}')",
        ]
    changed = f"{item}._counter is not None and {item}._counter[0] != node.version_{item}"
    if recorded:
        return [
            saved,
            f"if {item} is not None and (type({item}) is Packed or {changed}):",
            f"    {item} = unpack(node, '{item}')",
        ]
    return [
        saved,
        f"if {item} is not None:",
        f"    if {changed}:",
        f"        {item} = unpack_array(node, '{item}', {item})",
        "    else:",
        f"        {item} = {item}._array",
    ]


def node_class(op: Operator, namespace: dict[str, Any], name: str) -> type[Node]:
    """Make the node class of `op`, named `name`, in `namespace`."""
    source = node_source(op)
    filename = f"<adjoint {op.name} node>"
    compile_source(source, filename, namespace)
    SOURCES[op.name + " node"] = source
    slots = [f"saved_{item}" for item in (*op.saved_inputs, *op.saved_results, *op.saved_values)]
    slots += [f"version_{item}" for item in (*op.saved_inputs, *op.saved_results)]
    slots += [f"counter_{item}" for item in op.saved_results]
    outputs = op.outputs or ("result",)
    members = {
        "__slots__": tuple(slots),
        "__module__": "builtins",  # as PyTorch shows its node classes
        "__doc__": op.doc,
        "operator": op,
        "saved_names": (*op.saved_inputs, *op.saved_results, *op.saved_values),
        "saved_tensor_names": (*op.saved_inputs, *op.saved_results),
        "saved_list_names": op.lists,
        "input_slots": tuple([sys.intern(f"saved_{item}") for item in op.saved_inputs]),
        "result_slots": tuple(
            [
                (sys.intern(f"saved_{item}"), outputs.index(item), item not in op.nondifferentiable_outputs)
                for item in op.saved_results
            ]
        ),
        "shown": op.shown,
        "takes": op.takes,
        "backward": namespace["backward"],
        "backward_recorded": namespace["backward_recorded"],
    }
    made = type(name, (Node,), members)
    for attribute, reading in saved_attributes(made).items():
        setattr(made, attribute, reading)
    return made
