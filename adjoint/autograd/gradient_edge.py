"""Gradient edges: the public names of edges of the graph."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tape.edges import edge_of
from ..tape.node import NOWHERE, AccumulateGrad, Node, accumulator_of
from ..tensor import Tensor


class GradientEdge(NamedTuple):
    """An edge: output `output_nr` of `node`. `ownership_token` keeps `node` alive if no other reference does."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the gradient edge of `tensor`: its `grad_fn` (or `AccumulateGrad`) and output number.

    The edge can replace the tensor in `backward` and `grad`, and does not keep the tensor's memory alive.

    Raises:
        RuntimeError: if the tensor does not require grad.

    >>> import adjoint as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> edge = torch.autograd.graph.get_gradient_edge(x * x)
    >>> torch.autograd.grad(edge, x, torch.tensor(1.0))
    (tensor(6.),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = edge_of(tensor)
    if edge is NOWHERE:
        raise AssertionError("Expected gradient function to be set")
    return public_edge(edge)


def public_edge(edge: Any) -> GradientEdge:
    """Convert an edge to a public gradient edge."""
    return GradientEdge(accumulator_of(edge), 0) if isinstance(edge, Tensor) else GradientEdge(*edge)


def recorded_edge(edge: GradientEdge) -> Any:
    """Convert a public gradient edge to the internal form."""
    return edge.node.variable if isinstance(edge.node, AccumulateGrad) else (edge.node, edge.output_nr)
