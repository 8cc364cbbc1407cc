"""A graph of calls: a list of nodes in the order in which they run, and the code that runs them."""

from __future__ import annotations

import builtins
import copy
import keyword
import operator
import re
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import adjoint as torch

from .._runtime.tracebacks import warn
from .node import Argument, Node, map_aggregate, map_arg, qualified_name, shown_type

SYMBOLS = {
    operator.add: "{} + {}", operator.sub: "{} - {}", operator.mul: "{} * {}", operator.floordiv: "{} // {}",
    operator.truediv: "{} / {}", operator.mod: "{} % {}", operator.pow: "{} ** {}", operator.lshift: "{} << {}",
    operator.rshift: "{} >> {}", operator.and_: "{} & {}", operator.or_: "{} | {}", operator.xor: "{} ^ {}",
    operator.getitem: "{}[{}]", operator.matmul: "{} @ {}", operator.eq: "{} == {}", operator.ne: "{} != {}",
    operator.lt: "{} < {}", operator.gt: "{} > {}", operator.le: "{} <= {}", operator.ge: "{} >= {}",
    operator.pos: "+{}", operator.neg: "-{}", operator.invert: "~{}",
}  # fmt: skip
IN_PLACE = {
    operator.iadd: "+=", operator.iand: "&=", operator.ifloordiv: "//=", operator.ilshift: "<<=", operator.imod: "%=",
    operator.imul: "*=", operator.imatmul: "@=", operator.ior: "|=", operator.ipow: "**=", operator.irshift: ">>=",
    operator.isub: "-=", operator.itruediv: "/=", operator.ixor: "^=",
}  # fmt: skip


class PythonCode(NamedTuple):
    """The code of a graph, and the objects that its names refer to."""

    src: str
    globals: dict[str, Any]


_RESERVED = ("torch", "inf", "nan", "device", "NoneType")
"""The names of the code of every graph."""


class Names:
    """A table of free names. It returns each identifier once."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}

    def create(self, candidate: str) -> str:
        """Return a free name that resembles `candidate`."""
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        name = f"_{name}" if name[0].isdigit() else name
        found = re.fullmatch(r"(.*)_(\d+)", name)
        base, number = (found[1], int(found[2])) if found is not None else (name, self.counts.get(name, 0))
        while name in self.used or keyword.iskeyword(name) or hasattr(builtins, name) or name in _RESERVED:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self.counts[base] = max(number, self.counts.get(base, 0))
        return name


class NodeList:
    """The nodes of a graph in order. `reversed` iterates backwards."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            following = getattr(node, self.direction)
            if not node._erased:
                yield node
            node = following if node._erased else getattr(node, self.direction)

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    """Sets the position of new nodes immediately.

    As a context manager, it restores the previous position at the end of the block.
    """

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None:
        self.graph._insert = self.before


class CodeGen:
    """Writes the code of a graph. Subclasses change the signature or the return statement."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the first line."""
        names = free_vars if free_vars and free_vars[0] == "self" else ["self", *free_vars]
        return f"def forward({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument, **options: Any) -> str:
        """Return the return statement."""
        return f"return {output_args!r}"

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the names that the code needs, and their values."""
        return []

    def process_inputs(self, *args: Any) -> Any:
        """Convert the arguments to the form of the placeholders."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Convert the result to the form that the caller expects."""
        return outputs


class Graph:
    """A list of nodes in the order in which they run.

    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(torch.relu, (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._names = Names()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self.owning_module = owning_module

    @property
    def nodes(self) -> NodeList:
        """The nodes, in order. Nodes may be erased during the iteration."""
        return NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes of the kind `op` that have this target. Without `target`, return all nodes of the kind."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """Return the node that returns the result."""
        last: Node = self._root._prev
        return last

    # ------------------------------------------------------------------------------------------------------ making nodes

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Create a node at the current position."""
        node = Node(
            self, self._names.create(name or _candidate(op, target)), op, target, args or (), kwargs or {}, type_expr
        )
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Create an argument of the graph."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Create a node that reads an attribute of the module, such as "layer.weight". Warn if the module lacks it."""
        if self.owning_module is not None and not self._has(qualified_name):
            warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer",
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def _has(self, path: str) -> bool:
        """Return whether the module of the graph has an attribute at a path."""
        value, missing = self.owning_module, object()
        for part in path.split("."):
            value = getattr(value, part, missing)
        return value is not missing

    def call_module(
        self, module_name: str, args: tuple[Any, ...] | None = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Create a node that calls a module by its name."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple[Any, ...] | None = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Create a node that calls a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: tuple[Any, ...] | None = None, kwargs: Any = None,
        type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """Create a node that calls a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Create the node that returns `result`."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """Copy a node of another graph, and replace the nodes in its arguments."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Append the nodes of another graph, except those in `val_map`, and return its output, or None."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda each: val_map[each])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda each: val_map[each])
        return None

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes before `n`, or before all nodes if it is None."""
        return self.inserting_after(self._root) if n is None else _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes after `n`, or after all nodes if it is None."""
        if n is None:
            return self.inserting_before(self._root)
        last = n

        def insert(node: Node) -> None:
            nonlocal last
            last.append(node)
            last = node

        return _InsertPoint(self, insert)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node without users.

        Raises:
            RuntimeError: if another node uses it.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase._erased:
            return
        to_erase._change((), {})
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1

    # --------------------------------------------------------------------------------------------------------- whole graphs

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove the nodes that have neither users nor side effects. Return whether any node was removed."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len < before

    def lint(self) -> None:
        """Check that nodes use earlier nodes of this graph, have unique names, and refer to existing names.

        Raises:
            RuntimeError, ValueError: if a check fails.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
                        "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap "
                        f"values\n{self}"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes in "
                        f"the graph are topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("call_module", "get_attr"):
                value = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part}")
                    value = getattr(value, part)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Set the object that writes the code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Convert the arguments to the form of the placeholders."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Convert the result to the form that the caller expects."""
        return self._codegen.process_outputs(out)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = copy.copy(self._codegen)
        values: dict[Node, Any] = {}
        found = made.graph_copy(self, values, return_output_node=True)
        if found is not None:
            result, old = found
            made.output(result, old.type).meta = copy.copy(old.meta)
        return made

    def __reduce__(self) -> Any:
        steps = [(n.name, n.op, n.target, n.args, n.kwargs, n.type, n.meta) for n in self.nodes]
        numbers = {node: number for number, node in enumerate(self.nodes)}
        swap: Callable[[Any], Any] = lambda value: map_arg(value, lambda node: _Number(numbers[node]))
        return _rebuilt, ([(*step[:3], swap(step[3]), swap(step[4]), *step[5:]) for step in steps],)

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[n.op, n.name, str(n.target), str(n.args), str(n.kwargs)] for n in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in (rows[0], ["-" * width for width in widths], *rows[1:]):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    # ----------------------------------------------------------------------------------------------------------------- code

    def python_code(self, root_module: str = "self", **options: Any) -> PythonCode:
        """Return the code of a function that runs the graph. `root_module` is the name of the module in this code."""
        return _Writer(self, root_module).written()

    def on_generate_code(self, make_transformer: Any) -> Any:
        """Raise an error, because `CodeGen` writes the code. Use `set_codegen` to set another object."""
        raise NotImplementedError("Graph.on_generate_code is not in adjoint: use Graph.set_codegen.")


def last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """Return the nodes that each node uses last."""
    uses: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                uses.setdefault(node, []).append(used)
    return uses


class _Number(int):
    """A placeholder for a node in a pickled graph."""


def _rebuilt(steps: list[Any]) -> Graph:
    graph = Graph()
    nodes: list[Node] = []
    back: Callable[[Any], Any] = lambda each: nodes[each] if type(each) is _Number else each
    for name, op, target, args, kwargs, kind, meta in steps:
        node = graph.create_node(op, target, map_aggregate(args, back), map_aggregate(kwargs, back), name, kind)
        node.meta = meta
        nodes.append(node)
    return graph


def _candidate(op: str, target: Any) -> str:
    """Return a name for a node, derived from its target."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    name = name[2:-2] if name.startswith("__") and name.endswith("__") else name
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name.replace(".", "_")).lower()


class _Raw(str):
    """Text that is displayed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Writer:
    """Writes the code of one graph."""

    def __init__(self, graph: Graph, root_module: str) -> None:
        self.graph, self.root = graph, root_module
        self.globals: dict[str, Any] = {
            "torch": torch,
            "inf": float("inf"),
            "nan": float("nan"),
            "device": torch.device,
            "NoneType": types.NoneType,
            **dict(graph._codegen.additional_globals()),
        }
        self.free: list[str] = []
        self.lines: list[str] = []
        self.names = {node.name for node in graph.nodes}
        self.last_uses = last_uses(graph)

    def written(self) -> PythonCode:
        """The code."""
        kind, wrapped = "", dict[str, None]()
        for node in self.graph.nodes:
            self.write(node)
            if node.op == "output" and node.type is not None:
                kind = f" -> {self.type_name(node.type)}"
            if node.meta.get("is_wrapped"):
                wrapped[self.add_global(qualified_name(node.target), node.target)] = None
        codegen = self.graph._codegen
        head = codegen.gen_fn_def(self.free, kind)
        body = "\n".join(f"    {line}" for line in self.lines) or "    pass"
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in wrapped)
        return PythonCode(f"\n{wraps}\n\n{head}\n{body}\n    ", self.globals)

    def add_global(self, name: str, value: Any) -> str:
        """Return a name for an object: its full name if it is in `torch`, otherwise a new name."""
        if name.startswith("builtins.") and getattr(builtins, name.removeprefix("builtins."), None) is value:
            return name.removeprefix("builtins.")
        if name.startswith("torch.") and _at(name) is value:
            return name
        base = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
        free, number = base, 0
        while free in self.names or (free in self.globals and self.globals[free] is not value):
            number += 1
            free = f"{base}_{number}"
        self.globals[free] = value
        return free

    def type_name(self, kind: Any) -> str:
        """Return an annotation as code."""
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.type_name, kind.__args__))
        base, inner = getattr(kind, "__origin__", kind), getattr(kind, "__args__", None) or ()
        if hasattr(kind, "__args__") and not isinstance(kind, types.GenericAlias) and isinstance(base, type):
            base = getattr(typing, base.__name__.capitalize(), base) if base.__module__ == "builtins" else base
        name = f"{base.__module__}.{base.__qualname__}" if isinstance(base, type) else shown_type(base)
        name = qualified_name(base) if getattr(torch, getattr(base, "__name__", ""), None) is base else name
        inner = () if base is Callable else inner
        text = "NoneType" if base is types.NoneType else self.add_global(name, base)
        return f"{text}[{','.join(map(self.type_name, inner))}]" if inner else text

    def shown(self, value: Any) -> str:
        """Return an argument as code."""
        if isinstance(value, Node):
            return value.name
        if type(value) is tuple:
            return f"({', '.join(map(self.shown, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.shown, value))}]"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.add_global(qualified_name(type(value)), type(value))}({', '.join(map(self.shown, value))})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self.shown(each)}" for key, each in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.shown(value.start)}, {self.shown(value.stop)}, {self.shown(value.step)})"
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return str(value)
        if isinstance(value, torch.device):
            return repr(value)
        if (
            isinstance(value, (int, float, complex, str, bytes, range, type(None), type(...)))
            and type(value).__module__ == "builtins"
        ):
            return repr(value)
        if callable(value) and hasattr(value, "__name__"):
            return self.add_global(qualified_name(value), value)
        return self.add_global(f"_{type(value).__name__.lower()}_constant", value)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the arguments of a call as code."""
        return ", ".join([*map(self.shown, args), *(f"{key} = {self.shown(each)}" for key, each in kwargs.items())])

    def path(self, target: str) -> str:
        """Return an attribute of the module as code."""
        text = self.root
        for part in target.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text

    def write(self, node: Node) -> None:
        """Write the lines of a node."""
        if node.op == "placeholder":
            default = f" = {self.shown(node.args[0])}" if node.args else ""
            kind = "" if node.type is None else f" : {self.type_name(node.type)}"
            self.free.append(f"{node.target}{kind}{default}")
            name = node.target.replace("*", "")
            if name != node.name:
                self.lines.append(f"{node.name} = {name}")
            return
        if node.op == "output":
            self.lines.append(self.graph._codegen.generate_output(_Raw(self.shown(node.args[0]))))
            return
        gone = " = ".join([*(each.name for each in self.last_uses.get(node, ())), "None"])
        ending = "" if gone == "None" else f";  {gone}"
        if not node.users:
            ending = f";  {' = '.join([*(each.name for each in self.last_uses.get(node, ())), node.name, 'None'])}"
        self.lines.append(f"{self.call(node)}{ending}")

    def call(self, node: Node) -> str:
        """Return the code of a node's call, without the code that releases values afterwards."""
        name = node.name if node.type is None else f"{node.name} : {self.type_name(node.type)}"
        if node.op == "get_attr":
            return f"{name} = {self.path(node.target)}"
        if node.op == "call_module":
            return f"{name} = {self.path(node.target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            first = self.shown(node.args[0])
            first = first if isinstance(node.args[0], Node) else f"({first})"
            return f"{name} = {first}.{node.target}({self.arguments(node.args[1:], node.kwargs)})"
        target, args = node.target, node.args
        symbol = SYMBOLS.get(target)
        if symbol is not None and not node.kwargs and symbol.count("{}") == len(args):
            return f"{name} = {symbol.format(*map(self.shown, args))}"
        if target in IN_PLACE and len(args) == 2 and not node.kwargs and isinstance(args[0], Node):
            return f"{args[0].name} {IN_PLACE[target]} {self.shown(args[1])};  {node.name} = {args[0].name}"
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{name} = {self.shown(args[0])}.{args[1]}"
        return f"{name} = {self.add_global(qualified_name(target), target)}({self.arguments(args, node.kwargs)})"


def _at(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value
