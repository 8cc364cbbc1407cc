"""Runs a graph node by node, or creates a new graph by running one."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .graph import Graph, last_uses
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import GraphAppendingTracer, Proxy


class Interpreter:
    """Runs the graph of a module node by node.

    Subclasses change the effect of a kind of node.

    Args:
        module: the module whose graph is run, unless `graph` is given.
        garbage_collect_values: whether to drop results after their last use.
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = last_uses(self.graph) if garbage_collect_values else {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph with these arguments. `initial_env` contains known results."""
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self._run_told(node)
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                return self.graph.process_outputs(self.env[node]) if enable_io_processing else self.env[node]
        return None

    def _run_told(self, node: Node) -> Any:
        """Run one node. The message of an error names the node."""
        try:
            return self.run_node(node)
        except Exception as error:
            if self.extra_traceback:
                told = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
                error.args = (f"{error.args[0]}\n\n{told}" if error.args else told, *error.args[1:])
                if isinstance(error, KeyError):  # its message would be shown with escapes
                    raise RuntimeError(*error.args) from error
            raise

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with the arguments of a list, which is emptied."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Run one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a node, with results in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return `args` with results in place of nodes."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module at a path."""
        value = self.module
        for number, part in enumerate(target.split(".")):
            if not hasattr(value, part):
                parts = target.split(".")[:number]
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts)}")
            value = getattr(value, part)
        return value

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            message = f"Expected positional argument for parameter {target}, but one was not passed in!"
            raise RuntimeError(message) from None

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Create a node that calls a function."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method."""
        first, *others = args
        return getattr(first, target)(*others, **kwargs)

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the graph."""
        return args[0]


class _Appending(GraphAppendingTracer):
    def is_leaf_module(self, _: torch.nn.Module, __: str) -> bool:
        return True


class Transformer(Interpreter):
    """Creates a new module by running a graph with stand-ins. Subclasses change the result of a kind of node."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        tracer: Any = _Appending(self.new_graph)
        tracer.root = module
        self.tracer = tracer

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Create a new argument."""
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Create a node that reads an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Create a node that calls a module."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Create a node that calls a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the new module."""
        result = self.run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_aggregate(result, lambda each: each.node if isinstance(each, Proxy) else each))
        return GraphModule(self.module, self.new_graph)
