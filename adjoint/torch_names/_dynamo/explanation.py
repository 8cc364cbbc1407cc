"""`torch._dynamo.explain`: the graphs of one call of a function, and why there are several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from adjoint.compiler.graphs import Backend, GraphTracer, names_of
from adjoint.compiler.recorder import Condition, Piece
from adjoint.compiler.variant import captured


class GraphCompileReason(NamedTuple):
    """Why a graph ends."""

    reason: str
    user_stack: tuple[Any, ...] = ()
    graph_break: bool = True


@dataclass
class ExplainOutput:
    """The graphs of one call of a function. `break_reasons`: why graphs end before the function ends."""

    graphs: list[Any]
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list[Any]]
    out_guards: list[str] = field(default_factory=list)
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", "Break Reasons:"]
        for number, each in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    Reason: {each.reason}"]
        lines.append("Ops per Graph:")
        for number, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {number}:", *(f"    {op}" for op in ops)]
        return "\n".join([*lines, "Out Guards:", *(f"  {each}" for each in self.out_guards)])


class Explaining(Backend):
    """A backend that keeps graphs, also those before the capture ends."""

    kept: GraphTracer

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        super().__init__(self.keep)

    def tracer(self, program: Any, branches: bool = False) -> GraphTracer:  # type: ignore[override]
        """Return the tracer of the capture."""
        self.kept = GraphTracer(program, branches)
        return self.kept

    def keep(self, module: Any, examples: list[Any]) -> Any:
        """Keep a graph, which runs unchanged."""
        self.graphs.append(module)
        return module.forward


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Return a function that calls `f` once, and describes the graphs that a backend would receive.

    What follows a call that ends the capture is not described.

    >>> import adjoint as torch
    >>> found = torch._dynamo.explain(lambda x: x.sin() + 1)(torch.zeros(1))
    >>> found.graph_count, found.graph_break_count, found.op_count
    (1, 0, 1)
    """

    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        backend = Explaining()
        _, variant, reason = captured(f, args, kwargs, set(), branches=True, backend=backend)
        recorder = backend.kept.recorder
        pieces: list[Piece] = recorder.graphs([*recorder.values.values()])
        if variant is None:
            names = names_of(f, recorder)
            backend.graphs = [each.module(names) for each in pieces if not each.is_empty]
        ends = [each.end for each in pieces if each.end is not None]
        reasons = [
            "a condition depends on a tensor"
            if isinstance(each, Condition)
            else f"{each.function.__name__}() is called"
            for each in ends
        ] + ([reason] if reason is not None else [])
        ops = [[node.target for node in each.graph.nodes if node.op == "call_function"] for each in backend.graphs]
        return ExplainOutput(
            backend.graphs,
            len(backend.graphs),
            len(reasons) if variant is None else len(backend.graphs) - 1,
            [*map(GraphCompileReason, reasons)],
            sum(map(len, ops)),
            ops,
            [] if variant is None else [check.text for check in variant.checks if check.text],
        )

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained
