"""The source of each operator's node class: reading saved values, releasing them, and applying the formulas."""

from __future__ import annotations

import sys
from typing import Any

from ..codegen.large_formulas import is_arithmetic, large_from
from ..tape.node import Node
from ..tape.saved_attributes import saved_attributes
from .aten_gradients import aten_lines
from .declaration import Operator, parameters_of
from .source import SOURCES, compile_source


class Late:
    """A method of a node class, which is compiled on first use: most programs need only one of the two methods."""

    def __init__(self, source: str, file: str, namespace: dict[str, Any]) -> None:
        self.given = source, file, namespace

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, node: Any, owner: type) -> Any:
        method = compile_source(*self.given)[self.name]
        setattr(self.owner, self.name, method)
        return method.__get__(node, owner)


def backward_source(op: Operator, recorded: bool) -> str:
    """Return the source of one of the two methods: load saved values, release them, apply the formulas."""
    lines = [f"def backward{'_recorded' if recorded else ''}(node, grad, retain_graph, edges):"]
    several = len(op.differentiable) > 1 and op.joint is None
    for item in op.saved_inputs + op.saved_results:
        lines += ["    " + line for line in load_lines(op, item, recorded)]
    lines += [f"    {item} = node.saved_{item}" for item in op.saved_values]
    for item in op.lists:
        lines += [f"    if type({item}) is not tuple and ({item} is RELEASED or {item}.packed is not None):"]
        lines += [f"        {item} = unpack_list(node, '{item}')"]
    # A value that no gradient needed was not saved; the same condition skips it here.
    partly = [item for item in op.saved_inputs if op.joint is None and len(op.saved[item]) < len(op.differentiable)]
    released = [f"node.saved_{item}" for item in (*op.saved_inputs, *op.saved_results, *op.lists) if item not in partly]
    release = [f"{' = '.join(released)} = RELEASED"] if released else []
    for item in partly:
        release += [f"if {item} is not None:", f"    node.saved_{item} = RELEASED"]
    if release:
        lines += ["    if not retain_graph:", *("        " + line for line in release)]
    if recorded and op.aten_gradients is not None:
        lines += aten_lines(op, op.aten_gradients)
    xp = "tensor_namespace" if recorded else "array_namespace"
    if op.joint is not None:
        special = {"needs": "tuple(edge is not None for edge in edges)", "xp": xp}
        lines.append(f"    return joint({formula_arguments(op.joint, special)})")
    else:
        terms = []
        for index, (name, formula) in enumerate(op.formulas.items()):
            term = f"vjp_{name}({formula_arguments(formula, {'xp': xp})})"
            large = op.large_formulas.get(name)
            if not recorded and large is not None:
                other = f"large_{name}({formula_arguments(large, {'xp': xp})})"
                term = f"({term} if grad.size < {large_from()} else {other})"
            elif not recorded and not op.several and is_arithmetic(formula):
                given = ", ".join(item for item in parameters_of(formula) if item != "xp")
                term = f"({term} if grad.size < {large_from()} else large_{name}({given}))"
            terms.append(f"{term} if edges[{index}] is not None else None" if several else term)
        lines.append(f"    return {terms[0]}" if op.sequence is not None else f"    return ({', '.join(terms)},)")
    return "\n".join(lines)


def formula_arguments(formula: Any, special: dict[str, str]) -> str:
    """Return the arguments of a formula, by the names of its parameters."""
    special = {**special, "grads": "grad"}
    return ", ".join(special.get(name, name) for name in parameters_of(formula))


def load_lines(op: Operator, item: str, recorded: bool) -> list[str]:
    """Read a saved tensor, and check that it has not been changed since it was saved."""
    saved = f"{item} = node.saved_{item}"
    if item in op.saved_results:
        usable = f"type({item}) is ndarray and node.counter_{item}[0] == node.version_{item}"
        if not recorded:
            return [saved, f"if not ({usable}):", f"    {item} = unpack_array(node, '{item}', {item})"]
        number = (op.outputs or ("result",)).index(item)
        edge = "None" if item in op.nondifferentiable_outputs else f"(node, {number})"
        return [
            saved,
            f"if {usable} and node._hooks is None:",
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
    """Create the node class of `op` with the name `name` in `namespace`."""
    plain, recorded = [backward_source(op, recorded=each) for each in (False, True)]
    SOURCES[op.name + " node"] = f"{plain}\n\n{recorded}"
    slots = [f"saved_{item}" for item in (*op.saved_inputs, *op.saved_results, *op.saved_values)]
    slots += [f"version_{item}" for item in (*op.saved_inputs, *op.saved_results)]
    slots += [f"counter_{item}" for item in op.saved_results]
    results = [
        (sys.intern(f"saved_{item}"), (op.outputs or ("result",)).index(item), item not in op.nondifferentiable_outputs)
        for item in op.saved_results
    ]
    members = {
        "__slots__": tuple(slots),
        "__module__": "builtins",  # as PyTorch shows its node classes
        "__doc__": op.doc,
        "operator": op,
        "saved_names": (*op.saved_inputs, *op.saved_results, *op.saved_values),
        "saved_tensor_names": (*op.saved_inputs, *op.saved_results),
        "saved_list_names": op.lists,
        "input_slots": tuple([sys.intern(f"saved_{item}") for item in op.saved_inputs]),
        "result_slots": (*results,),
        "saved_display": op.saved_display,
        "grad_count": op.grad_count,
        "backward": Late(plain, f"<adjoint {op.name} node>", namespace),  # on arrays
        "backward_recorded": Late(recorded, f"<adjoint {op.name} recorded node>", namespace),  # on tensors
    }
    made = type(name, (Node,), members)
    for attribute, reading in saved_attributes(made).items():
        setattr(made, attribute, reading)
    return made
