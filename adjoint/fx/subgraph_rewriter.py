"""`torch.fx.subgraph_rewriter`: a part of a graph that computes as a pattern does is replaced by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

__all__ = ["Match", "replace_pattern"]

Program = Callable[..., Any] | GraphModule


class Match(NamedTuple):
    """A part of a graph that is as a pattern is.

    `anchor`: the node of the pattern that computes its result. `nodes_map`: the nodes of the graph by those of the pattern.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


def replace_pattern(gm: GraphModule, pattern: Program, replacement: Program) -> list[Match]:
    """Replace each part of the graph of `gm` that is as `pattern` is by `replacement`, and return the parts.

    A part is not replaced if what it computes on the way is used elsewhere, or if it shares nodes with a part that is
    replaced.

    Args:
        gm: the module, whose graph and code change.
        pattern: a function or a traced module of one result; its parameters stand for any nodes.
        replacement: a function or a traced module with the same number of parameters.

    >>> import adjoint as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> matches = torch.fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.sigmoid(x))
    >>> traced(torch.zeros(1))
    tensor([1.5000])
    """
    wanted, substitute = _graph_of(pattern), _graph_of(replacement)
    matches = _matches(gm.graph, wanted)
    if isinstance(replacement, GraphModule):
        for name, module in replacement.named_children():
            if not hasattr(gm, name):
                gm.add_submodule(name, module)
    replaced: dict[Node, Node] = {}
    for match in matches:
        _replace(gm.graph, match, wanted, substitute, replaced)
    gm.recompile()
    return matches


def _graph_of(program: Program) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    graph: Graph = symbolic_trace(program).graph
    return graph


def _result(graph: Graph) -> Node:
    """The node that computes what a graph returns."""
    returned = next(node for node in graph.nodes if node.op == "output").args[0]
    if isinstance(returned, (list, tuple)):
        returned = returned[0]
    if not isinstance(returned, Node):
        raise RuntimeError(f"a pattern returns what it computes, but this one returns {returned!r}")
    return returned


def _matches(graph: Graph, wanted: Graph) -> list[Match]:
    anchor = _result(wanted)
    found: list[Match] = []
    taken: set[Node] = set()
    for node in graph.nodes:
        mapping: dict[Node, Node] = {}
        if not _agree(anchor, node, mapping):
            continue
        inner = {there for here, there in mapping.items() if here.op != "placeholder"}
        escapes = any(user not in inner for each in inner - {node} for user in each.users)
        if not escapes and not inner & taken:
            found.append(Match(anchor, mapping))
            taken |= inner
    return found


def _agree(here: Any, there: Any, mapping: dict[Node, Node]) -> bool:
    """Whether an argument of the pattern is as one of the graph is; `mapping` collects the nodes."""
    if isinstance(here, Node):
        if not isinstance(there, Node):
            return False
        if here in mapping:
            return mapping[here] is there
        mapping[here] = there
        if here.op == "placeholder":
            return True
        same = (here.op, here.target) == (there.op, there.target)
        return same and _agree((here.args, here.kwargs), (there.args, there.kwargs), mapping)
    if isinstance(here, (list, tuple)):
        return (
            isinstance(there, (list, tuple))
            and len(here) == len(there)
            and all(_agree(one, other, mapping) for one, other in zip(here, there, strict=True))
        )
    if isinstance(here, dict):
        return (
            isinstance(there, dict)
            and here.keys() == there.keys()
            and all(_agree(here[key], there[key], mapping) for key in here)
        )
    return type(here) is type(there) and bool(here == there)


def _replace(graph: Graph, match: Match, wanted: Graph, substitute: Graph, replaced: dict[Node, Node]) -> None:
    """Compute the anchor of a match by `substitute`; `replaced` says what computes the anchors of matches before."""
    anchor = match.nodes_map[match.anchor]
    given = [match.nodes_map[node] for node in wanted.nodes if node.op == "placeholder"]
    values = [replaced.get(node, node) for node in given]
    parameters = [node for node in substitute.nodes if node.op == "placeholder"]
    if len(parameters) != len(values):
        raise AssertionError(f"the pattern has {len(values)} parameters, and the replacement has {len(parameters)}")
    first_use = next((node for node in graph.nodes if node in anchor.users), anchor)
    with graph.inserting_before(first_use):
        result = graph.graph_copy(substitute, dict(zip(parameters, values, strict=True)))
    if isinstance(result, (list, tuple)):
        result = result[0]
    anchor.replace_all_uses_with(result)
    replaced[anchor] = result
    inner = {there for here, there in match.nodes_map.items() if here.op != "placeholder"}
    for node in [node for node in graph.nodes if node in inner][::-1]:
        graph.erase_node(node)
