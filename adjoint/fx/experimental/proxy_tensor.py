"""Recording a function's operators as a graph: the operators of PyTorch's dispatcher, below autograd and transforms."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import adjoint as torch

from ..._runtime.tracebacks import ending_at_caller
from ...torch_names._subclasses import FakeTensorMode
from ...transforms import tree
from ...utils import _python_dispatch
from .. import _pytree as fx_pytree
from ..graph import CodeGen, Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["ProxyTorchDispatchMode", "get_proxy_mode", "make_fx"]


class ProxyTorchDispatchMode(_python_dispatch.TorchDispatchMode):
    """A context in which the operators of this thread become nodes of a graph.

    A tensor is identified by its array, because the saved forms of the tensor in backward nodes share the array.
    """

    def __init__(self, decomposition_table: Mapping[Any, Callable[..., Any]] | None = None) -> None:
        super().__init__()
        self.graph, self.root = Graph(), torch.nn.Module()
        self.decompositions = decomposition_table or {}
        self.nodes: dict[int, tuple[Any, Node]] = {}
        self.constants: dict[int, tuple[Any, str]] = {}

    def track(self, value: Any, node: Node) -> None:
        """Make `node` represent a tensor, or a tuple of tensors."""
        if isinstance(value, torch.Tensor):
            self.nodes[id(value._array)] = value._array, node
            node.meta["val"] = value
        elif isinstance(value, (tuple, list)):
            for index, each in enumerate(value):
                self.track(each, self.graph.call_function(operator.getitem, (node, index)))

    def node_of(self, value: Any) -> Any:
        """Return the node that represents a tensor, or a constant if there is none. Other values are returned unchanged."""
        if not isinstance(value, torch.Tensor):
            return value
        if id(value._array) in self.nodes:
            return self.nodes[id(value._array)][1]
        if id(value._array) not in self.constants:
            kind = "param" if isinstance(value, torch.nn.Parameter) else "tensor"
            name = f"_{kind}_constant{sum(kind in name for _, name in self.constants.values())}"
            self.constants[id(value._array)] = value._array, name
            if isinstance(value, torch.nn.Parameter):
                self.root.register_parameter(name, value)
            else:
                self.root.register_buffer(name, value)
        return self.graph.get_attr(self.constants[id(value._array)][1])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self.decompositions:
            with self:
                return self.decompositions[func](*args, **kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            if id(args[0]._array) in self.nodes:
                raise RuntimeError(
                    f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! It's likely "
                    "that this is caused by data-dependent control flow or similar."
                )
            return func(*args)
        arguments = _mapped(self.node_of, args), _mapped(self.node_of, kwargs)
        result = func(*args, **kwargs)
        name = func.name().partition("::")[2].partition(".")[0]
        self.track(result, self.graph.create_node("call_function", func, *arguments, name))
        return result


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return the same containers with a function applied to each leaf. Each kind of tuple becomes a tuple."""
    if isinstance(value, (tuple, list)):
        return (list if isinstance(value, list) else tuple)(_mapped(function, each) for each in value)
    if isinstance(value, dict):
        return {key: _mapped(function, each) for key, each in value.items()}
    return function(value)


class _PyTreeCodeGen(CodeGen):
    """Writes the code of a function of containers."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        head = super().gen_fn_def(self.names, maybe_return_annotation)
        given, leaves = ", ".join(self.names), ", ".join(free_vars)
        return f"{head}\n    {leaves}, = fx_pytree.tree_flatten_spec([{given}], self._in_spec)"

    def generate_output(self, output_args: Any, **options: Any) -> str:
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("fx_pytree", fx_pytree), ("pytree", tree)]


def _names_of_arguments(function: Any, count: int) -> list[str]:
    parameters = inspect.signature(function).parameters.values() if inspect.isfunction(function) else None
    if parameters is None or any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return [f"arg{number}" for number in range(count)]
    if len(parameters) != count:
        raise RuntimeError(f"Tracing expected {len(parameters)} arguments but got {count} concrete arguments")
    return [each.name for each in parameters]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    **options: Any,
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` on its arguments and returns the graph of the executed operators as a module.

    Args:
        f: a function of tensors, or of containers of tensors. The graph contains the derivatives that `f` computes.
            Numbers (including sizes) and branches are fixed for these arguments.
        decomposition_table: by operator, a function that is traced instead.
        tracing_mode: "real", "fake" or "symbolic". The last two compute only shapes.

    Raises:
        RuntimeError: if `f` takes another number of arguments, or needs the value of an element.

    >>> import adjoint as torch
    >>> from adjoint.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: x.sin().sum())(torch.ones(2)).code.strip())
    def forward(self, x_1):
        sin = torch.ops.aten.sin.default(x_1);  x_1 = None
        sum_1 = torch.ops.aten.sum.default(sin);  sin = None
        return sum_1
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    @ending_at_caller
    def traced(*args: Any) -> GraphModule:
        names = _names_of_arguments(f, len(args))
        structure = tree.tree_structure(list(args))
        mode = ProxyTorchDispatchMode(decomposition_table)
        graph = mode.graph
        around: Any = nullcontext()
        if tracing_mode != "real":
            around = FakeTensorMode(allow_non_fake_inputs=True)
            args = _mapped(lambda leaf: around.from_tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf, args)
        for name, value in zip(names, args, strict=True):
            for index, leaf in enumerate(tree.tree_leaves(value), 1):
                mode.track(leaf, graph.placeholder(f"{name}_{index}"))
        with _python_dispatch._disable_current_modes(), around, mode:
            result = f(*args)
        of_result = None
        if any(isinstance(value, (tuple, list, dict)) for value in args):
            graph.set_codegen(_PyTreeCodeGen(names))
            result, of_result = tree.tree_flatten(result)
        graph.output(_mapped(mode.node_of, result))
        for node in reversed(graph.nodes):
            if node.target is torch.ops.aten.detach.default and not node.users:  # values that backward nodes have saved
                graph.erase_node(node)
        module = GraphModule(mode.root, graph, f.__name__ if inspect.isfunction(f) else "<lambda>")
        module._in_spec, module._out_spec = structure, of_result
        return module

    return traced


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """Return the innermost mode of this thread that records operators as a graph, if there is one."""
    modes = _python_dispatch._get_current_dispatch_mode_stack()
    return next((mode for mode in reversed(modes) if isinstance(mode, ProxyTorchDispatchMode)), None)
