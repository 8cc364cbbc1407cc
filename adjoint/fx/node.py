"""A node of a graph of calls: the target, the arguments, and the users of the result."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import adjoint as torch

from ..torch_names import overrides
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

Argument = Any
Target = Any

KINDS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

_side_effects: set[Any] = {print}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep calls of a function in graphs even if no node uses their results. Return the function."""
    _side_effects.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Argument:
    """Return `a` with `fn` applied to each item in nested tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        items = tuple([map_aggregate(each, fn) for each in a])
        return type(a)(*items) if hasattr(a, "_fields") else items
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(each, fn) for key, each in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Argument:
    """Return `a` with `fn` applied to its nodes."""
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


_OF_C_LIBRARY = frozenset(
    "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus "
    "softshrink".split()
)
"""The functions of `torch.nn.functional` that PyTorch does not write in Python, and that `torch` does not have."""


def qualified_name(function: Any) -> str:
    """Return the name of a function in code, such as "torch.nn.functional.relu".

    PyTorch writes operators of its C library with the module that holds them, such as "torch._C._nn.linear".
    """
    name = getattr(function, "__name__", "")
    if getattr(torch, name, None) is function:
        return f"torch.functional.{name}" if name in torch.functional._NAMES and name != "istft" else f"torch.{name}"
    known = overrides.resolve_name(function) if isinstance(function, types.FunctionType) else None
    if known is not None and not known.startswith("torch.Tensor."):
        module, short = known.rsplit(".", 1)
        if name != short and name.endswith(f"_{short}"):
            return f"{module.replace('torch.', 'torch._C._')}.{name}"
        return f"torch._C._nn.{name}" if module == "torch.nn.functional" and name in _OF_C_LIBRARY else known
    name = getattr(function, "__name__", type(function).__name__)
    module = getattr(function, "__module__", None) or "builtins"
    return f"{module.replace('_operator', 'operator').replace('torch._ops.', 'torch.ops.')}.{name}"


_get_qualified_name = qualified_name


class Node:
    """One step of a graph.

    Attributes:
        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target: the function, or the name of the method, module, attribute or argument.
        args, kwargs: the arguments. Nodes among the arguments represent their results.
        users: the nodes that use the result, as keys.
        meta: data that passes store about the node.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in KINDS:
            raise AssertionError(f"op {op!r} is not one of {KINDS}")
        wanted = "Callable" if op == "call_function" else "str"
        if not (callable(target) if wanted == "Callable" else isinstance(target, str)) and op != "output":
            kind = shown_type(type(target))
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {kind} but a {wanted} is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self.meta: dict[str, Any] = {}
        self._change(args, kwargs)

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments. Settable."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._change(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments. Settable."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._change(self._args, kwargs)

    def _change(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args, self._kwargs = map_arg(tuple(args), note), map_arg(dict(kwargs), note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments. Each node occurs once."""
        return list(self._input_nodes)

    @property
    def stack_trace(self) -> str | None:
        """The place where the call was recorded, if it is known."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace a positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace `old_input` by another node wherever it occurs in the arguments."""
        swap: Callable[[Node], Node] = lambda node: new_input if node is old_input else node
        self._change(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replace this node by another node in its users. `delete_user_cb` selects the users. Return the users."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        users = list(self.users)
        for user in users:
            if delete_user_cb(user):
                user.replace_input_with(self, replace_with)
        return users

    def prepend(self, x: Node) -> None:
        """Move `x` before this node."""
        if x is self:
            return
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Move `x` after this node."""
        if x is not self._next:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node stays in the graph even if no node uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or getattr(self.target, "__name__", "").startswith(
                ("_assert", "_record_function_")
            )
        if self.op == "call_method":
            return str(self.target).endswith("_") and not str(self.target).endswith("__")
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        return False

    def _pretty_print_target(self, target: Any) -> str:
        return target if isinstance(target, str) else qualified_name(target)

    def format_node(self, placeholder_names: Any = None, maybe_return_typename: Any = None, **options: Any) -> str:
        """Return the node as a line of text."""
        kind = "" if self.type is None else f"{shown_type(self.type)} "
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "output":
            return f"return {self.args[0]}"
        target = self._pretty_print_target(self.target)
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target}]"
        return head if self.op == "get_attr" else f"{head}(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        """Return whether this node comes before `other` in the graph."""
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    def __le__(self, other: Node) -> bool:
        return self is other or self < other


def shown_type(kind: Any) -> str:
    """Return a type as text."""
    is_class = isinstance(kind, type) and not isinstance(kind, types.GenericAlias)
    return qualified_name(kind).removeprefix("builtins.") if is_class else repr(kind)


def _shown(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}"
    if type(value) is tuple:
        return f"({', '.join(map(_shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(each)}" for key, each in value.items()) + "}"
    return str(value)
