"""`torch._dynamo.testing`: backends that count or keep the graphs that they receive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint.compiler import lookup_backend

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "normalize_gm", "same"]

Graph = Callable[..., Any]


class CompileCounter:
    """A backend that runs graphs unchanged. `frame_count`: the number of graphs; `op_count`: the number of their calls.

    >>> import adjoint as torch
    >>> from adjoint._dynamo.testing import CompileCounter
    >>> counter = CompileCounter()
    >>> torch.compile(lambda x: x.sin() + 1, backend=counter)(torch.zeros(1))
    tensor([1.])
    >>> counter.frame_count, counter.op_count
    (1, 2)
    """

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Graph:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        forward: Graph = gm.forward
        return forward

    def clear(self) -> None:
        """Set the counts to zero."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """A backend that counts graphs, keeps them in `graphs`, and gives them to another backend."""

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Graph:
        forward = super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        if self.backend in ("inductor", "cudagraphs"):
            return forward
        compiled: Graph = lookup_backend(self.backend)(gm, example_inputs)
        return compiled


class EagerAndRecordGraphs:
    """A backend that runs graphs unchanged, and keeps them in `graphs`."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Graph:
        self.graphs.append(gm)
        forward: Graph = gm.forward
        return forward


def normalize_gm(gm_str: str) -> str:
    """Return the code of a graph without empty lines, comments, and text that depends on the run."""
    lines = [line.rstrip() for line in gm_str.splitlines()]
    return "\n".join([line for line in lines if line and not line.lstrip().startswith("#")])


def same(a: Any, b: Any, tol: float = 1e-4, **options: Any) -> bool:
    """Return whether two results have the same structure, with nearly equal tensors. Other options have no effect."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.allclose(a, b, rtol=tol, atol=tol, equal_nan=True)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(one, other, tol) for one, other in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key], tol) for key in a)
    return bool(a == b)
