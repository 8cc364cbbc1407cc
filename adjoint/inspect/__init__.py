"""Pictures, traces and tables of the graph.

`graph` draws the operations that computed a tensor. `trace_backward` shows its backward as an animation. `step` runs a
backward step by step in a terminal. `compare` marks the differences between two graphs. `recording` stores intermediate
values for pictures. `saved_memory`, `gradients` and `live_graphs` are tables. `watch` records a training run.
`communication` shows the data that processes exchange. `plans` lists the steps of operators. `compiled` shows the
programs of `torch.compile`. These functions cost nothing until they are called. Calls of modules are recorded from the
import of this package on. They are recorded from the start in programs whose code mentions `inspect`, and in
interactive sessions.
"""

from .._runtime.sequence import note_calls
from .alive import live_graphs
from .communicating import Communication, communication
from .comparing import Comparison, compare
from .drawing import Graph, graph
from .gradients import gradients
from .memory import saved_memory
from .planning import plans
from .programs import compiled
from .recording import recording
from .stepper import step
from .tracing import Trace, trace_backward
from .watching import Watch, watch

__all__ = [
    "Communication", "Comparison", "Graph", "Trace", "Watch", "communication", "compare", "compiled", "gradients", "graph",
    "live_graphs", "plans", "recording", "saved_memory", "step", "trace_backward", "watch",
]  # fmt: skip

note_calls()
