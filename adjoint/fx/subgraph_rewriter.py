"""Finding parts of a graph by a pattern, and replacing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import adjoint as torch

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node, map_arg

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Pattern = Callable[..., Any] | Graph | GraphModule


class Match(NamedTuple):
    """A match of a pattern."""

    anchor: Node
    """The node of the pattern at which the comparison began."""
    nodes_map: dict[Node, Node]
    """The node of the graph for each node of the pattern. For a placeholder, it may also be a number or another argument."""


@dataclass
class ReplacedPatterns:
    """A match of a pattern, and its replacement."""

    anchor: Node
    """The node of the pattern at which the comparison began."""
    nodes_map: dict[Node, Node]
    """The node of the graph for each node of the pattern."""
    replacements: list[Node]
    """The nodes of the replacement."""


@dataclass
class InternalMatch:
    """A match of a pattern before any replacement, as an argument of a filter."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


Filter = Callable[[InternalMatch, Graph, Graph], bool]
Callback = Callable[[InternalMatch, Graph, Graph], Graph]


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Replace every part of a graph that performs the operations of `pattern` by `replacement`.

    Pattern and replacement take the same arguments and return the same number of results. They are traced unless they
    are graphs. If parts overlap, the first part is replaced. A part is not replaced if a value inside it is used
    outside.

    Args:
        gm: the module whose graph changes. It gets the submodules and parameters of `replacement` that it lacks.
        pattern: the pattern to find.
        replacement: the code to insert.

    Raises:
        AssertionError: if the numbers of arguments or results of replacement and pattern differ.

    >>> import adjoint as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(x).relu() + 1)
    >>> matches = torch.fx.replace_pattern(traced, lambda x: torch.neg(x).relu(), lambda x: x.clamp(max=0).abs())
    >>> print(traced.code.strip())
    def forward(self, x):
        clamp = x.clamp(max = 0);  x = None
        abs_1 = clamp.abs();  clamp = None
        add = abs_1 + 1;  abs_1 = None
        return add
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callback | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace the matches for which all filters are true, like `replace_pattern`.

    Args:
        gm: the module whose graph changes.
        pattern: the pattern to find.
        replacement: the code to insert.
        match_filters: functions of a match, the graph and the graph of the pattern.
        ignore_literals: whether a number in the pattern matches any other number.
        replacement_callback: a function that creates the replacement of a match, from the same arguments as a filter.
        node_name_match: only "" is supported, because matches depend only on the computation.

    Raises:
        NotImplementedError: if `node_name_match` is not "".

    >>> import adjoint as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: x + 1)
    >>> rewriter = torch.fx.subgraph_rewriter
    >>> found = rewriter.replace_pattern_with_filters(traced, lambda x: x + 5, lambda x: x - 5, ignore_literals=True)
    >>> found[0].replacements
    [sub]
    """
    if node_name_match:
        raise NotImplementedError("replace_pattern: nodes are not found by their names")
    sought = _graph_of(pattern)
    found = [
        match
        for match in _Search(gm.graph, sought, ignore_literals).matches()
        if all(accepts(match, gm.graph, sought) for accepts in match_filters or ())
    ]
    fixed = _graph_of(replacement) if replacement is not None else None
    changed: dict[Node, Any] = {}
    done = []
    for match in found:
        by = fixed if replacement_callback is None else replacement_callback(match, gm.graph, sought)
        if by is None:
            raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
        done.append(_replaced(gm.graph, match, by, changed))
    gm.recompile()
    if isinstance(replacement, torch.nn.Module):
        _copy_attributes(gm, replacement)
    return done


def _graph_of(program: Pattern) -> Graph:
    if isinstance(program, Graph):
        return program
    return (program if isinstance(program, GraphModule) else symbolic_trace(program)).graph


def _returned(graph: Graph) -> list[Any]:
    value = graph.output_node().args[0]
    return list(value) if isinstance(value, (tuple, list)) else [value]


class _Search:
    """The search for a pattern in a graph."""

    def __init__(self, graph: Graph, pattern: Graph, ignore_literals: bool) -> None:
        self.graph, self.pattern, self.ignore_literals = graph, pattern, ignore_literals
        self.anchors = [node for node in _returned(pattern) if isinstance(node, Node)]
        self.placeholders = [node for node in pattern.nodes if node.op == "placeholder"]

    def matches(self) -> list[InternalMatch]:
        """Return all matches, except those that overlap an earlier match."""
        found: list[InternalMatch] = []
        taken: set[Node] = set()
        for pairs in self._completions({}, self.anchors):
            inner = {node for sought, node in pairs.items() if sought.op not in ("placeholder", "output")}
            if taken.isdisjoint(inner) and self._closed(pairs, inner):
                taken |= inner
                values = [pairs[node] for node in self.placeholders]
                results = [pairs[node] for node in self.anchors]
                found.append(InternalMatch(self.anchors, pairs, values, results))
        return found

    def _completions(self, pairs: dict[Node, Any], anchors: list[Node]) -> list[dict[Node, Any]]:
        """Return the ways to match the remaining results of the pattern, which may be independent of one another."""
        if not anchors:
            return [pairs]
        first, *rest = anchors
        found = []
        for node in [pairs[first]] if first in pairs else list(self.graph.nodes):
            more = dict(pairs)
            if self._same(first, node, more):
                found += self._completions(more, rest)
        return found

    def _closed(self, pairs: dict[Node, Any], inner: set[Node]) -> bool:
        """Return whether no outer node uses a value that the pattern does not return."""
        returned = {pairs[node] for node in self.anchors}
        return all(node in returned or inner.issuperset(node.users) for node in inner)

    def _same(self, sought: Any, value: Any, pairs: dict[Node, Any]) -> bool:
        """Return whether a value of the graph matches the pattern. `pairs` also receives the nodes below it."""
        if not isinstance(sought, Node):
            return self._same_argument(sought, value, pairs)
        if sought in pairs:
            return pairs[sought] is value
        if any(value is each for each in pairs.values() if isinstance(each, Node)):
            return False
        if sought.op == "placeholder":
            pairs[sought] = value
            return True
        if not isinstance(value, Node) or (sought.op, sought.target) != (value.op, value.target):
            return False
        pairs[sought] = value
        return self._same_argument(sought.args, value.args, pairs) and self._same_argument(
            sought.kwargs, value.kwargs, pairs
        )

    def _same_argument(self, sought: Any, value: Any, pairs: dict[Node, Any]) -> bool:
        if isinstance(sought, Node):
            return self._same(sought, value, pairs)
        if isinstance(sought, (tuple, list)):
            return (
                isinstance(value, (tuple, list))
                and len(sought) == len(value)
                and all(self._same_argument(a, b, pairs) for a, b in zip(sought, value, strict=True))
            )
        if isinstance(sought, dict):
            return (
                isinstance(value, dict)
                and sought.keys() == value.keys()
                and all(self._same_argument(sought[name], value[name], pairs) for name in sought)
            )
        if isinstance(sought, slice):
            return isinstance(value, slice) and self._same_argument(_ends(sought), _ends(value), pairs)
        if isinstance(value, Node):
            return False
        return self.ignore_literals or (type(sought) is type(value) and bool(sought == value))


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def _replaced(graph: Graph, match: InternalMatch, by: Graph, changed: dict[Node, Any]) -> ReplacedPatterns:
    """Insert a replacement for a match. `changed` maps nodes that were replaced earlier."""
    for sought, node in match.nodes_map.items():
        if isinstance(node, Node):
            match.nodes_map[sought] = changed.get(node, node)
    placeholders = [node for node in by.nodes if node.op == "placeholder"]
    values = [changed.get(node, node) if isinstance(node, Node) else node for node in match.placeholder_nodes]
    results, returned = _returned(by), match.returning_nodes
    if len(values) != len(placeholders):
        raise AssertionError(f"Placeholder count mismatch: {len(values)} vs {len(placeholders)}")
    if len(results) != len(returned):
        raise AssertionError(f"Returning nodes count mismatch: {len(returned)} vs {len(results)}")
    inner = [node for sought, node in match.nodes_map.items() if sought.op != "placeholder"]
    if not inner:  # the pattern does nothing
        raise AssertionError("The insert point can't be None")
    order = {node: number for number, node in enumerate(graph.nodes)}
    users = [user for node in returned for user in node.users if user not in inner]
    before = min(users, key=order.__getitem__) if users else max(inner, key=order.__getitem__).next
    made: dict[Node, Any] = dict(zip(placeholders, values, strict=True))
    nodes = []
    with graph.inserting_before(before):
        for node in by.nodes:
            if node.op not in ("placeholder", "output"):
                made[node] = graph.node_copy(node, made.__getitem__)
                nodes.append(made[node])
    for old, new in zip(returned, map_arg(results, made.__getitem__), strict=True):
        if isinstance(new, Node):
            old.replace_all_uses_with(new)
        changed[old] = new
    for node in sorted(inner, key=order.__getitem__, reverse=True):
        graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, nodes)


def _copy_attributes(gm: GraphModule, replacement: torch.nn.Module) -> None:
    """Copy the attributes that the graph needs from the replacement, and remove modules that are no longer used."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and not gm.graph._has(node.target):
            _copy_attr(replacement, gm, node.target)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
