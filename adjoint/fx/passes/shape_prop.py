"""`torch.fx.passes.shape_prop`: the shapes and dtypes of the values in a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import adjoint as torch

from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """Properties of a tensor."""

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: torch.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


class ShapeProp(Interpreter):
    """Runs a graph, and stores the properties of each result in `node.meta["tensor_meta"]`.

    >>> from adjoint.fx.passes.shape_prop import ShapeProp
    >>> traced = torch.fx.symbolic_trace(torch.nn.Linear(3, 2))
    >>> ShapeProp(traced).propagate(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes][-1]
    (4, 2)
    """

    def run_node(self, n: Node) -> Any:
        """Run one node, and store the properties of its result."""
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found: list[TensorMetadata] = []

        def of(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
            fits = {4: formats[:2], 5: formats[::2]}.get(value.ndim, formats[:1])
            layout = next((each for each in fits if value.is_contiguous(memory_format=each)), None)
            found.append(
                TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(), layout, False, {})
            )
            return found[-1]

        properties = map_aggregate(result, of)
        if found:
            n.meta["tensor_meta"] = properties
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these arguments, and return its result."""
        return self.run(*args)
