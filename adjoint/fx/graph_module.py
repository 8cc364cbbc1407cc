"""A module whose `forward` is the code of a graph."""

from __future__ import annotations

import copy
import functools
import itertools
import linecache
from typing import Any

import adjoint as torch

from .graph import Graph

_numbers = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _compiled(src: str, names: dict[str, Any]) -> Any:
    """Return the function `forward` in the code, which tracebacks and debuggers show."""
    file = f"<torch.fx graph {next(_numbers)}>"
    linecache.cache[file] = (len(src), None, src.splitlines(keepends=True), file)
    names = dict(names)
    exec(compile(src, file, "exec", dont_inherit=True), names)
    return names["forward"]


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Copy the attribute at a path from one module to another module."""
    _assign_attr(functools.reduce(getattr, target.split("."), from_module), to_module, target)


def _assign_attr(value: Any, to_module: Any, target: str) -> None:
    *prefix, last = target.split(".")
    for part in prefix:
        if not hasattr(to_module, part):
            setattr(to_module, part, torch.nn.Module())
        to_module = getattr(to_module, part)
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        to_module.register_buffer(last, value)
    else:
        setattr(to_module, last, value)


class GraphModule(torch.nn.Module):
    """A module whose `forward` is the code of a graph.

    Args:
        root: the module that contains the parameters and modules of the graph, or a dict of them by name.
        graph: the graph.
        class_name: the name of the class of this module.

    After a change of the graph, call `recompile`.
    """

    _graph: Graph
    _code: str

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Create a separate class for each module, because each has its own `forward`."""
        base = next(kind for kind in cls.__mro__ if "_own_class" not in vars(kind))
        own = type(base.__name__, (base,), {"_own_class": True, "__module__": base.__module__})
        return object.__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = type(self).__qualname__ = class_name
        self.meta: dict[str, Any] = {}
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, torch.nn.Module):
            self.training = root.training
            self.meta.update(getattr(root, "meta", {}))
            for target in targets:
                _copy_attr(root, self, target)
        else:
            missing = [target for target in targets if target not in root]
            if missing:
                raise RuntimeError(f"Node references target {missing[0]} but that target was not provided in ``root``!")
            for target in sorted(targets, key=lambda name: name.count(".")):
                _assign_attr(root[target], self, target)
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph. Setting the graph compiles its code."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        self._graph = copy.deepcopy(g) if g.owning_module not in (None, self) else g
        self._graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code of `forward`."""
        return self._code

    def recompile(self) -> Any:
        """Write and compile the code of the graph after a change, and return the code."""
        code = self._graph.python_code("self")
        self._code = code.src
        type(self).forward = _compiled(code.src, code.globals)
        return code

    def add_submodule(self, target: str, m: torch.nn.Module) -> bool:
        """Add a module at a path. Return whether this was possible."""
        *prefix, last = target.split(".")
        owner: Any = self
        for part in prefix:
            if not hasattr(owner, part):
                setattr(owner, part, torch.nn.Module())
            owner = getattr(owner, part)
            if not isinstance(owner, torch.nn.Module):
                return False
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path. Return whether the module existed."""
        *prefix, last = target.split(".")
        owner: Any = self
        for part in prefix:
            owner = getattr(owner, part, None)
        if not isinstance(getattr(owner, last, None), torch.nn.Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not call or read from."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: count + 1]) for count in range(len(parts)))
                if node.op == "call_module":
                    used.update(f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Print the code as a class, and return it."""
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + self._code.strip("\n").replace("\n", "\n    ")
        text = text.replace("\ndef ", "\n    def ", 1)
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        holder = torch.nn.Module()
        holder.__dict__ = copy.deepcopy(
            {name: value for name, value in vars(self).items() if name not in ("_graph", "_code")}, memo
        )
        made = GraphModule(holder, copy.deepcopy(self._graph, memo), type(self).__name__)
        made.__dict__.update({k: v for k, v in vars(holder).items() if k not in ("_graph", "_code")})
        memo[id(self)] = made
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)

    def _replicate_for_data_parallel(self) -> GraphModule:
        return self.__copy__()

    def __reduce__(self) -> Any:
        state = {name: value for name, value in vars(self).items() if name not in ("_graph", "_code")}
        return _rebuilt, (state, self._graph, type(self).__name__)

    def __str__(self) -> str:
        return "\n".join(
            [super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )


def _rebuilt(state: dict[str, Any], graph: Graph, class_name: str) -> GraphModule:
    holder = torch.nn.Module()
    holder.__dict__ = state
    made = GraphModule(holder, graph, class_name)
    made.__dict__.update(state)
    return made


_CodeOnlyModule = torch.nn.Module
