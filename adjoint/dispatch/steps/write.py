"""The steps that write: to the first argument, to `out`, or to the base of the first argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy

from ..._runtime.extra import note_former
from ...tape import modes, views
from ...tape.packing import pack_saved
from ...tape.versions import about_to_change, bump
from ...tensor import LEAF, Tensor
from ..declaration import OPTIONAL_ARRAY, Operator
from ..out import in_dtype_of
from ..plan import Call, Step
from ..source import block, guard, public_name
from .change import check_change, record_change
from .compute import (
    by_size,
    choice,
    kernel_lines,
    of_floats,
    or_leave,
    passed_arguments,
    quietly,
    rounding_lines,
    with_defaults,
)
from .promote import promotes, written
from .record_lines import RECORDING, edge_lines, frame_lines, input_lines, node_lines


class Target(Step):
    """Refuse to change a tensor that must not be changed. Straight-line code accepts no such tensors."""

    def run(self, call: Call) -> None:
        """Find the edges of the arguments, because some refusals depend on them."""
        check_change(self.op, call)

    def __str__(self) -> str:
        return "check      that self may be changed"


class Decide(Step):
    """Compute in the dtype of `out`. The lines of `WriteOut` accept only an equal dtype."""

    def run(self, call: Call) -> None:
        """Set the argument `dtype` to this dtype."""
        if isinstance(call.out, Tensor):
            call.given = in_dtype_of(self.op, call.given, call.out)
            call.args = list(call.given)

    def __str__(self) -> str:
        return "decide     by out on the dtype"


class WriteOut(Step):
    """Write the results to `out`, which may get another shape."""

    def run(self, call: Call) -> None:
        """Check the given tensors, and write to them."""
        call.returned = self.plan.arrays.write_out(self.op, call)

    def lines(self, leave: str) -> list[str]:
        """Return the lines for an `out` with the shape of the result, no memory shared with an operand, and no history."""
        op = self.op
        if op.many or op.view or op.draws:
            return [leave]
        return out_lines(op, leave, self.plan.caller)

    def __str__(self) -> str:
        return "write      to out"


class Overwrite(Step):
    """Overwrite the first argument with the result, or compute the result in its memory. Record the change."""

    def run(self, call: Call) -> None:
        """Determine how the first argument is written, and change it."""
        arrays = self.plan.arrays
        change = arrays.change(self.plan, call)
        record_change(call, change, arrays.on_tensors)
        call.returned = call.args[0]

    def lines(self, leave: str) -> list[str]:
        """Return the lines for changes without recording, or of tensors that are not views and have no hooks."""
        return overwriting_body(self.op, leave, self.plan.caller, self.plan.inference)

    def __str__(self) -> str:
        return "overwrite  self, and record the change"


class Repoint(Step):
    """Turn the first argument into another view of its memory."""

    def run(self, call: Call) -> None:
        """Give the first argument the array of the result, and append a node to its history."""
        op, target = self.op, call.args[0]
        call.returned = target
        finished, results = self.plan.arrays.finished, call.results
        (result,) = results if finished is None else finished(op, results)
        if call.recording:
            node = op.code.saving.started(call, op.inplace_node_name, self.plan.arrays.on_tensors)
            if modes.STATE.saved_tensor_hooks:
                pack_saved(node, ())
            node._grad_shape, node._grad_dtype = result.shape, result.dtype
            views.point_at(target, (node, 0))
        if target._edge is LEAF:
            note_former(target, result)
        about_to_change(target)
        target._array = result
        bump(target, f"{op.function_name}_", depth=4)
        if call.recording and target._base is not None:
            target._view_version = target._counter[0]

    def lines(self, leave: str) -> list[str]:
        """Return the lines for a first argument that is neither a view nor a leaf, and has no hooks."""
        op = self.op
        recorded = [*node_lines(op, "array.shape", "array.dtype"), *input_lines(op), "input._edge = (node, 0)"]
        return [
            *guard(["FLAGS.hooked", "input._base is not None", "input._extra is not None"], leave),
            "edge_0 = input._edge",
            *guard(["edge_0 is not None and (edge_0 is LEAF or edge_0[0]._hooks is not None)"], leave),
            *frame_lines(self.plan.caller),
            *block(f"if edge_0 is not None and {RECORDING}:", recorded),
            "input._array = array",
            *bump_lines("input", f"{op.function_name}_"),
            "return input",
        ]

    def __str__(self) -> str:
        return "repoint    self to the result, and record that"


# --- straight-line code -------------------------------------------------------------------------------------------------


def overwriting_body(op: Operator, leave: str, caller: int, inference: bool) -> list[str]:
    """Return lines that overwrite the first argument without recording, or if it is no view and its history has no hooks."""
    target = public_name(op.tensors[0])
    count = bump_lines(target, f"{op.function_name}_")
    if inference:  # the changes of inference tensors are not counted
        count[-2:] = block("if type(counter) is list:", count[-2:])
        return [
            *guard([repeated(op), *shared_operands(op)], leave),
            *frame_lines(caller),
            *block("try:", overwriting_lines(op, leave)),
            *or_leave(leave, struck=count),
            *count,
            f"return {target}",
        ]
    unrecorded = ["node = None", *guard([repeated(op), *shared_operands(op)], leave)]
    with_history = [*block(f"if {RECORDING}:", recorded_change(op, target, leave)), *block("else:", unrecorded)]
    lines = [
        *guard([f"({target}._extra is not None and {target}._extra.inference)"], leave),
        *frame_lines(caller),
        *block(f"if {has_history(op)}:", with_history),
    ]
    if op.no_overlap:
        same = " or ".join(f"{public_name(name)} is {target}" for name in op.tensors[1:])
        lines += block(f"elif {same}:", [leave])
    lines += [
        *block("else:", [*guard([repeated(op)], leave), "node = None"]),
        *block("try:", overwriting_lines(op, leave)),
        *or_leave(leave, struck=count),  # an interrupt may have arrived in the middle
        *count,
    ]
    if is_recorded_inplace(op):
        results = [
            *block(f"if {target}._base is None:", [f"{target}._edge = (node, 0)"]),
            *block("else:", [f"rebase_history({target}, node, {caller})"]),
        ]
        for item in op.saved_results:
            results += [f"node.saved_{item} = {written(op)}", f"node.counter_{item} = counter"]
            results += [f"node.version_{item} = counter[0]"]
        lines += block("if node is not None:", results)
    return [*lines, f"return {target}"]


def out_lines(op: Operator, leave: str, caller: int) -> list[str]:
    """Return the lines that write results to `out`, or to each in the tuple `out`.

    It has the shape of its result, shares no memory with an operand, and has no history. The kernel takes the arrays.
    """
    targets = [f"out_{name}" for name in op.outputs] or ["out"]
    unusual: list[str] = []
    shared: list[str] = []
    for target in targets:
        unusual += [f"type({target}) is not Tensor", f"{target}._extra is not None", in_history(target)]
        shared += [f"type({target}_array) is not ndarray", f"0 in {target}_array.strides"]
    if op.sequence is not None:
        unusual.append("edges is not None")
        shared.append(f"any([may_share_memory(each, out_array) for each in {op.sequence}_array])")
    if op.out_decides:
        shared += ["dtype is not None", f"{op.tensors[0]}_array.dtype is not out_array.dtype"]
    for name in op.tensors if op.sequence is None else ():
        public = public_name(name)
        given = f"{public} is not None and " if op.kinds[name] == OPTIONAL_ARRAY else ""
        unusual.append(f"({given}({in_history(public)}))")
        for target in targets:
            apart = op.out_no_overlap or (op.no_overlap and name != op.tensors[0])
            same = f"{public} is {target} or" if apart else f"{public} is not {target} and"
            array = f"{public}._array" if promotes(op) else f"{name}_array"  # before promotion
            # Arrays that own their memory share none.
            partial = f"({array}.base is not None or {target}_array.base is not None)"
            shared.append(f"({given}({same} {partial} and may_share_memory({array}, {target}_array)))")
    count = [line for target in targets for line in bump_lines(target, op.name)]
    tuples = guard([f"type(out) is not tuple or len(out) != {len(targets)}"], leave)
    returned = f"({', '.join(targets)},)"
    if op.returns is not tuple:
        returned = f"new_tuple(RETURNS.out, {returned})"
    return [
        *([*tuples, f"{', '.join(targets)} = out"] if op.outputs else []),
        *guard(unusual, leave),
        *(f"{target}_array = {target}._array" for target in targets),
        *guard(shared, leave),
        *frame_lines(caller),
        *block("try:", into_each(op, leave) if op.outputs else into_lines(op, leave)),
        *or_leave(leave, struck=count),
        *count,
        f"return {returned if op.outputs else 'out'}",
    ]


def into_each(op: Operator, leave: str) -> list[str]:
    """Return lines that compute several results, and copy each to its `out`, unless a shape or a dtype differs."""
    pairs = [(f"{name}_array", f"out_{name}_array") for name in op.outputs]
    unfit = [f"{array}.shape != {out}.shape or {array}.dtype is not {out}.dtype" for array, out in pairs]
    copies = [line for array, out in pairs for line in copy_lines(array, out)]
    finish = [f"{', '.join(array for array, _ in pairs)} = array", *guard(unfit, leave), *copies]
    return given_lines(op, f"({', '.join(out for _, out in pairs)})", finish)


def _takes_out(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel has the parameter `out`. Some of NumPy's functions have no signature."""
    try:
        return "out" in inspect.signature(kernel).parameters
    except ValueError:
        return False


def given_lines(op: Operator, target: str, finish: list[str]) -> list[str]:
    """Return lines that give the `target` to the kernel, if it takes `out`, and `finish` if the kernel has not used it."""
    kernel = op.kernel
    if isinstance(kernel.general, numpy.ufunc) or (kernel.expression is None and not _takes_out(kernel.general)):
        return [*kernel_lines(op), *rounding_lines(op), *finish]
    targets = [f"out_{name}" for name in op.outputs] or ["out"]
    same = " or ".join(f"{public_name(name)} is {each}" for name in op.tensors for each in targets)
    given = target if kernel.expression is not None or not same else f"None if {same} else {target}"
    call = f"array = general({', '.join([*passed_arguments(op), 'out=given'])})"
    otherwise = block("if given is None or array is not given:", [*rounding_lines(op), *finish])
    return [f"given = {given}", *quietly(op, kernel.general, call), *otherwise]


def into_lines(op: Operator, leave: str) -> list[str]:
    """Return lines that compute into `out_array`, or copy the result to it."""
    castable = "" if op.same_out or op.out_decides else " and not castable(array.dtype, out_array.dtype)"
    unfit = ["array.shape != out_array.shape", f"(array.dtype is not out_array.dtype{castable})"]
    copied = given_lines(op, "out_array", [*guard(unfit, leave), *copy_lines("array", "out_array")])
    form = op.kernel.general if isinstance(op.kernel.general, numpy.ufunc) else op.kernel.small
    if not isinstance(form, numpy.ufunc):
        return copied
    arrays = [f"{name}_array" for name in op.tensors]
    passed = ", ".join(arrays)
    alike = [f"{array}.dtype is out_array.dtype" for array in arrays]
    alike += [f"{arrays[0]}.shape == out_array.shape"]  # NumPy refuses other operands that do not fit
    name = "general" if form is op.kernel.general else "small"
    alike += of_floats(op) if name == "small" else []
    direct = by_size(op, form, [f"{name}({passed}, out_array)"], passed, "out_array")
    return choice([*alike, *with_defaults(op)], direct, copied)


def overwriting_lines(op: Operator, leave: str) -> list[str]:
    """Return the lines that compute into the first array, or copy the result to it."""
    kernel, array, passed = op.kernel, written(op), ", ".join(passed_arguments(op))
    copied = copying_lines(op, array, [] if promotes(op) else [f"array.dtype is not {array}.dtype"], leave)
    if isinstance(kernel.general, numpy.ufunc):
        into = by_size(op, kernel.general, [f"general({passed}, {array})"], passed, array)
    else:
        into = copied if kernel.inplace is None else quietly(op, kernel.inplace, f"inplace_kernel({passed})")
        if isinstance(kernel.small, numpy.ufunc):
            few = ", ".join(f"{name}_array" for name in op.tensors)
            small = by_size(op, kernel.small, [f"small({few}, {array})"], few, array)
            into = choice(with_defaults(op), small, into)
    return choice([f"{op.tensors[0]}_array is {array}"], into, copied) if promotes(op) else into


def copying_lines(op: Operator, target: str, unfit: list[str], leave: str) -> list[str]:
    """Return the lines that compute, and copy the result to `target`, unless its shape differs or it is `unfit`."""
    return [
        *kernel_lines(op),
        *rounding_lines(op),
        *guard([f"array.shape != {target}.shape", *unfit], leave),
        *copy_lines("array", target),
    ]


def copy_lines(array: str, target: str) -> list[str]:
    """Return the lines that copy an array to another array of the same shape."""
    few = block(f"if {array}.size < 4096 and {array}.dtype is {target}.dtype:", [f"{target}[...] = {array}"])
    return [*few, *block("else:", [f"copy_({target}, {array})"])]


def in_history(public: str) -> str:
    """Return the condition under which a tensor, or the base of a view, has a history."""
    return f"{public}._edge is not None or {public}._base is not None and {public}._base._edge is not None"


def is_recorded_inplace(op: Operator) -> bool:
    """Return whether the common case of the in-place variant can be recorded."""
    return op.tensors[0] in op.differentiable and op.sequence is None and not op.outputs


def has_history(op: Operator) -> str:
    """Return the condition that a tensor or its base has a history, or that another operand views the same memory."""
    target = public_name(op.tensors[0])
    conditions = []
    for name in op.tensors:
        public = public_name(name)
        history = f"{public}._edge is not None or {public}._base is not None"
        if public != target:  # a detached tensor shares the counter, but has no base
            shared = f"{public}._counter is not None and {public}._counter is {target}._counter"
            history += f" and {public}._base._edge is not None or {shared}"
        conditions.append(f"({public} is not None and ({history}))" if op.kinds[name] == OPTIONAL_ARRAY else history)
    return " or ".join(conditions)


def repeated(op: Operator) -> str:
    """Return the condition under which elements of the first argument may share memory, if the array is a view."""
    return f"({written(op)}.base is not None and 0 in {written(op)}.strides)"


def shared_operands(op: Operator) -> list[str]:
    """Return the conditions under which elements of an operand may be written, as far as version counters show it.

    Unless no operand may share memory, each element is read before it is written.
    """
    target, conditions = public_name(op.tensors[0]), []
    for name in op.tensors[1:]:
        public = public_name(name)
        given = f"{public} is not None and " if op.kinds[name] == OPTIONAL_ARRAY else ""
        counted = f"{public}._counter is not None and {public}._counter is {target}._counter"
        if op.no_overlap:
            conditions.append(f"({given}({public} is {target} or {counted}))")
        else:
            conditions.append(f"({given}{counted} and overlap({name}_array, {written(op)}))")
    return conditions


def recorded_change(op: Operator, target: str, leave: str) -> list[str]:
    """Return the lines that create the node for the change of a tensor without hooks and shared memory."""
    if not is_recorded_inplace(op):
        return [leave]
    array = written(op)
    own = [
        f"type({target}._edge) is not tuple",
        f"{target}._extra is not None",
        f"{target}._edge[0]._hooks is not None",
    ]
    made = [*node_lines(op, f"{array}.shape", f"{array}.dtype"), *input_lines(op, changed=op.tensors[0])]
    unrecorded = " and ".join(f"edge_{index} is None" for index in range(len(op.differentiable)))
    view = [leave] if op.saved_results else guard([f"not may_be_rebased({target})"], leave)
    itself = [f"{public_name(name)} is {target}" for name in op.tensors[1:]]
    return [
        *guard(["FLAGS.hooked", repeated(op), *itself, *shared_operands(op)], leave),
        *block(f"if {target}._base is None:", guard(own, leave)),
        *block("else:", view),
        *edge_lines(op),
        *block(f"if {unrecorded}:", ["node = None"]),
        *block("else:", made),
    ]


def bump_lines(target: str, name: str) -> list[str]:
    """Return the lines that count the change of `target` by the operation `name`, and record the line of the user's code."""
    find = [f"counter = {target}._counter", *block("if counter is None:", [f"counter = {target}._counter = [0, None]"])]
    return [*find, f"counter[1] = (code, frame.f_lasti, '{name}')", "counter[0] += 1"]
