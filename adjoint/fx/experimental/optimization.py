"""`torch.fx.experimental.optimization`: models that are faster in inference."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import adjoint as torch
from adjoint.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

_FUSED = (
    (torch.nn.Conv1d, torch.nn.BatchNorm1d, fuse_conv_bn_eval),
    (torch.nn.Conv2d, torch.nn.BatchNorm2d, fuse_conv_bn_eval),
    (torch.nn.Conv3d, torch.nn.BatchNorm3d, fuse_conv_bn_eval),
    (torch.nn.Linear, torch.nn.BatchNorm1d, fuse_linear_bn_eval),
)
"""The pairs of layers that become one layer, with the functions that compute it."""


def _parent_name(target: str) -> tuple[str, str]:
    """Return the name of the module that contains `target`, and the name of `target` in it."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Return whether a node, and the node of its first argument, call modules of exactly these two types."""
    if not node.args:
        return False
    calls = (node.args[0], node)
    return all(
        isinstance(each, Node) and each.op == "call_module" and type(modules.get(each.target)) is kind
        for kind, each in zip(pattern, calls, strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: torch.nn.Module) -> None:
    """Let a node call another module under the same name."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: torch.nn.Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Return a model whose convolutions and linear layers compute the batch norm that follows, too.

    Args:
        model: a model in evaluation mode.
        inplace: whether to change `model` if it is a graph module, instead of a copy.
        no_trace: whether `model` is a graph module.

    Raises:
        AssertionError: if a layer is in training mode.

    >>> import adjoint as torch
    >>> from adjoint.fx.experimental.optimization import fuse
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU()).eval()
    >>> [type(layer).__name__ for layer in fuse(model).children()]
    ['Conv2d', 'ReLU']
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules: dict[str, Any] = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for first, second, fused in _FUSED:
        for node in list(graph.nodes):
            if not matches_module_pattern((first, second), node, modules) or len(node.args[0].users) > 1:
                continue
            layer, norm = modules[node.args[0].target], modules[node.target]
            if norm.track_running_stats:
                replace_node_module(node.args[0], modules, fused(layer, norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: torch.nn.Module) -> torch.nn.Module:
    """Return a traced model without its dropout layers."""
    traced = symbolic_trace(model)
    for node in list(traced.graph.nodes):
        if node.op == "call_module" and isinstance(traced.get_submodule(node.target), torch.nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.recompile()
    return traced
