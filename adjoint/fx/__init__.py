"""`torch.fx`: programs as graphs of calls that other programs can read, change and run. This file contains names only.

>>> import adjoint as torch
>>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
>>> print(traced.code.strip())
def forward(self, x):
    relu = torch.relu(x);  x = None
    add = relu + 1;  relu = None
    return add
>>> traced(torch.tensor([-1.0, 2.0]))
tensor([1., 3.])
"""

from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy, TraceError
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
