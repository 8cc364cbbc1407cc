"""`torch.fx.passes.split_module`: a graph divided into submodules, one for each partition of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import adjoint as torch

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module"]


class Partition:
    """The nodes of one submodule, with the names of the values that it takes and returns."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: torch.nn.Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Return a module that calls one submodule for each partition of the nodes of a graph.

    Placeholders, attributes and the output stay in the outer graph.

    Args:
        m: the module to divide.
        root_m: the module from which `m` was traced. It has no effect.
        split_callback: a function that returns the partition of a node.
        qualname_map: a dictionary that receives the name in `m` of each module in a submodule.
        keep_original_order: whether submodules are called in the order of their first nodes. Otherwise the order of
            independent submodules is arbitrary.
        keep_original_node_name: whether the nodes in submodules keep their names.
        keep_original_input_name: whether the parameters of submodules have the names of the values, not `arg_0`.
        partition_affix: a part of the names of submodules, as in `submod_affix_0`.
        tuple_return: whether a submodule with one result returns a tuple.

    Raises:
        RuntimeError: if two partitions depend on each other.

    >>> import adjoint as torch
    >>> from adjoint.fx.passes.split_module import split_module
    >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
    >>> halves = split_module(traced, None, lambda node: 0 if node.name == "add" else 1)
    >>> print(halves.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    prefix = "" if partition_affix is None else f"{partition_affix}_"
    partition_of: dict[Node, Partition] = {}
    partitions: dict[str, Partition] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = f"{prefix}{split_callback(node)}"
            partition_of[node] = partitions.setdefault(name, Partition(name))
            partition_of[node].node_names.append(node.name)
    nodes = {node.name: node for node in m.graph.nodes}
    for node in m.graph.nodes:
        for used in _inputs(node):
            _connect(partition_of.get(used), partition_of.get(node), used.name)
    ordered = _in_order(partitions, first=bool(keep_original_order))
    for partition in partitions.values():
        for number, each in enumerate(partition.inputs):
            given = nodes[each]
            shown = each if keep_original_input_name else f"arg_{number}"
            partition.environment[given] = partition.graph.placeholder(shown, type_expr=given.type)
            partition.environment[given].meta = given.meta.copy()
    for node, partition in partition_of.items():
        _copy(m, node, partition, node.name if keep_original_node_name else None, qualname_map)
    return _joined(m, nodes, ordered, keep_attributes_late=bool(keep_original_order), tuple_return=tuple_return)


def _inputs(node: Node) -> Iterable[Node]:
    """Return the nodes whose values a node uses, in the order of its arguments."""
    used: list[Node] = []

    def note(each: Node) -> Node:
        used.append(each)
        return each

    map_arg((node.args, node.kwargs), note)
    return used


def _connect(source: Partition | None, user: Partition | None, name: str) -> None:
    """Record that a value of the partition `source`, or of the outer graph, is used in `user`, or in the outer graph."""
    if source is user:
        return
    if source is not None:
        source.outputs.setdefault(name)
    if user is not None:
        user.inputs.setdefault(name)
    if source is not None and user is not None:
        source.dependents.setdefault(user.name)
        user.dependencies.setdefault(source.name)


def _in_order(partitions: dict[str, Partition], first: bool) -> list[Partition]:
    """Return the partitions in an order of computation. With `first`, an earlier partition that is ready comes first."""
    waiting = {name: set(each.dependencies) for name, each in partitions.items()}
    ready = [name for name, before in waiting.items() if not before]
    place = {name: number for number, name in enumerate(partitions)}
    ordered = []
    while ready:
        if first:
            ready.sort(key=place.__getitem__, reverse=True)
        partition = partitions[ready.pop()]
        ordered.append(partition)
        for name in partition.dependents:
            waiting[name].remove(partition.name)
            if not waiting[name]:
                ready.append(name)
    if len(ordered) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return ordered


def _copy(
    m: GraphModule, node: Node, partition: Partition, name: str | None, qualname_map: dict[str, str] | None
) -> None:
    """Add a node to the graph of its partition."""
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        partition.targets[target] = m.get_submodule(node.target)
        if qualname_map is not None:
            qualname_map[f"{partition.submod_name}.{target}"] = node.target
    args, kwargs = map_arg((node.args, node.kwargs), partition.environment.__getitem__)
    copied = partition.graph.create_node(node.op, target, args, kwargs, name, node.type)
    copied.meta = node.meta.copy()
    partition.environment[node] = copied


def _joined(
    m: GraphModule, nodes: dict[str, Node], ordered: list[Partition], keep_attributes_late: bool, tuple_return: bool
) -> GraphModule:
    """Return the module whose graph calls the partitions."""
    graph, contents = Graph(), {}
    values: dict[str, Node] = {}

    def keep(node: Node) -> None:
        if node.op == "placeholder":
            values[node.name] = graph.placeholder(node.target, node.type, *node.args)
        else:
            values[node.name] = graph.get_attr(node.target)
            path, _, last = node.target.rpartition(".")
            contents[node.target] = getattr(m.get_submodule(path), last)
        values[node.name].meta = node.meta.copy()

    outer = [node for node in nodes.values() if node.op in ("placeholder", "get_attr")]
    for node in outer:
        if node.op == "placeholder" or not keep_attributes_late:
            keep(node)
    for partition in ordered:
        for name in partition.inputs:
            if name not in values:
                keep(nodes[name])
        results = [partition.environment[nodes[name]] for name in partition.outputs]
        partition.graph.output(results[0] if len(results) == 1 and not tuple_return else tuple(results))
        contents[partition.submod_name] = GraphModule(partition.targets, partition.graph)
        call = graph.call_module(partition.submod_name, tuple(values[name] for name in partition.inputs))
        whole: Any = Proxy(call)
        parts = [call] if len(results) == 1 and not tuple_return else [whole[i].node for i in range(len(results))]
        values.update(zip(partition.outputs, parts, strict=True))
    for node in outer:
        if node.name not in values:
            keep(node)
    for node in nodes.values():
        if node.op == "output":
            graph.output(map_arg(node.args[0], lambda each: values[each.name]))
    return GraphModule(contents, graph)
