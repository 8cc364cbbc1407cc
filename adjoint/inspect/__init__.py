"""The graph drawn, stepped through and explained.

`graph` draws the operations that computed a tensor, `trace_backward` plays its backward, `step` steps through it in a terminal;
`saved_memory`, `gradients` and `live_graphs` are tables. None of these costs anything until it is called.
"""

from .alive import live_graphs
from .drawing import Graph, graph
from .gradients import gradients
from .memory import saved_memory
from .stepper import step
from .tracing import Trace, trace_backward

__all__ = ["Graph", "Trace", "gradients", "graph", "live_graphs", "saved_memory", "step", "trace_backward"]
