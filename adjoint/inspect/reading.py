"""Data of live nodes: their saved values, their hooks, and their formulas."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from .._runtime.weak_keys import WeakKeys
from ..autograd.function import Function, FunctionNode
from ..operators.memory.changed_views import CopySlices
from ..tape.node import Node, live_accumulator
from ..tape.saved import RELEASED
from ..tensor import Tensor
from .model import Hook


class Slot(NamedTuple):
    """The slot in which the nodes of a class store a saved tensor.

    `input`: the edge, if the tensor is an input. `output_nr`: the output number, if the tensor is a result.
    """

    name: str
    value: str
    version: str
    counter: str
    input: int | None
    output_nr: int | None


class Kind:
    """The common properties of all nodes of one class, read once from the operator's declaration."""

    def __init__(self, cls: type[Node]) -> None:
        operator = getattr(cls, "operator", None)
        self.operator = operator
        self.name = cls.__name__
        self.operation = operation_of(cls.__name__) if operator is None else operator.aten_name
        self.is_view = bool(operator is not None and operator.view)
        self.inputs: list[str] = []
        self.operands: list[tuple[str, int | None, bool]] = []
        """The operation's input tensors: their names, the numbers of their edges, and whether they are always present."""
        self.slots: list[Slot] = []
        self.values: list[tuple[str, str]] = []
        self.undifferentiable: frozenset[int] = frozenset()
        self.formula: dict[str, str] = {}
        if operator is not None:
            self._read(operator)

    def _read(self, operator: Any) -> None:
        self.sequence = operator.sequence
        if operator.sequence is None:
            self.inputs = list(operator.differentiable)
        places = {name: place for place, name in enumerate(self.inputs)}
        self.operands = [(name, places.get(name), operator.kinds[name] == "Array") for name in operator.tensors]
        for name in (*operator.saved_inputs, *operator.saved_results):
            number = None
            if name in operator.saved_results:
                number = operator.outputs.index(name) if operator.outputs else 0
            slots = (f"saved_{name}", f"version_{name}", f"counter_{name}")
            self.slots.append(Slot(name, *slots, places.get(name), number))
        self.values = [(name, f"saved_{name}") for name in operator.saved_values]
        self.undifferentiable = frozenset(map(operator.outputs.index, operator.nondifferentiable_outputs))
        if operator.joint is not None:
            self.formula = {", ".join(operator.differentiable): source_of(operator.joint)}
        else:
            self.formula = {name: declared_source(name, formula) for name, formula in operator.formulas.items()}


_KINDS: WeakKeys[type[Node], Kind] = WeakKeys()


def kind_of(cls: type[Node]) -> Kind:
    """Return the common properties of nodes of `cls`."""
    found = _KINDS.get(cls)
    if found is None:
        found = _KINDS[cls] = Kind(cls)
    return found


def operation_of(name: str) -> str:
    """Return the operation of a node without a declaration, from its name: `copy_slices` for `CopySlices`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"Backwards?\d*$", "", name)).lower()


def operation(node: Node) -> str:
    """Return the name of the operation of `node`."""
    cls = class_of(node)
    name = cls._forward_cls.__name__ if issubclass(cls, FunctionNode) else kind_of(cls).operation
    return name.rstrip("_") + "_" if type(node) is CopySlices else name


def class_of(node: Node) -> type[Node]:
    """Return the class of `node`. For an in-place change of a view, return the class of the operation that changed the view."""
    return node.function_class if type(node) is CopySlices else type(node)


class Item(NamedTuple):
    """A saved value of a node: its name, the content of its slot, the saved version, and its relation to the node."""

    name: str
    value: Any
    version: int | None = None
    counter: list[Any] | None = None
    input: int | None = None
    output_nr: int | None = None


def items_of(node: Node) -> Iterator[Item]:
    """Return the tensors that `node` has saved, or their replacements."""
    if type(node) is CopySlices:
        cls = node.function_class
        if node.function is not None:
            yield from items_of(node.function)
        elif issubclass(cls, FunctionNode):
            yield Item("saved_tensors", RELEASED)
        else:
            for slot in kind_of(cls).slots:
                yield Item(slot.name, RELEASED, None, None, slot.input, slot.output_nr)
        return
    if isinstance(node, FunctionNode):
        if node._saved is None:
            yield Item("saved_tensors", RELEASED)
        for index, each in enumerate(node._saved or ()):
            name = f"saved_tensors[{index}]"
            if each is None:
                yield Item(name, None)
            else:
                yield Item(name, each.tensor, each.version, each.counter, None, each.output_nr)
        return
    for slot in kind_of(type(node)).slots:
        value = getattr(node, slot.value, None)
        if isinstance(value, (list, tuple)):
            versions = getattr(node, slot.version, 0)
            versions = versions if isinstance(versions, (list, tuple)) else [versions] * len(value)
            for index, (each, version) in enumerate(zip(value, versions, strict=True)):
                yield Item(f"{slot.name}[{index}]", each, version)
        elif value is None or value is RELEASED:
            yield Item(slot.name, value, None, None, slot.input, slot.output_nr)
        else:
            counter = None if slot.output_nr is None else getattr(node, slot.counter, None)
            yield Item(slot.name, value, getattr(node, slot.version, 0), counter, slot.input, slot.output_nr)


def input_names(node: Node) -> list[str]:
    """Return the names of the inputs of the operation, one for each edge."""
    count = len(node._edges)
    if isinstance(node, FunctionNode):
        code = getattr(node._forward_cls.forward, "__code__", None)
        given = list(code.co_varnames[: code.co_argcount]) if code is not None else []
        given = given[len(given) - len(node._tensor_inputs) :]  # without `ctx`
        names = [name for name, is_tensor in zip(given, node._tensor_inputs, strict=False) if is_tensor]
    else:
        kind = kind_of(class_of(node))
        if kind.operator is not None and kind.sequence is not None:
            return [f"{kind.sequence}[{index}]" for index in range(count)]
        names = kind.inputs
        if len(names) == count:
            return list(names)
    return (names + [f"input {index}" for index in range(len(names), count)])[:count]


def hooks_of_node(node: Node) -> list[Hook]:
    """Return the hooks of `node`, in the order of execution."""
    hooks = node._hooks
    if hooks is None:
        return []
    found = []
    for number, groups in hooks.tensor.items():
        found += [Hook("tensor", number, described(hook)) for each in groups for hook in each.values()]
    found += [
        Hook("retain_grad", number, "retain_grad") for number, kept in hooks.retained.items() if kept() is not None
    ]
    found += [Hook("node pre", None, described(hook)) for hook in (hooks.pre or {}).values()]
    return found + [Hook("node post", None, described(hook)) for each in hooks.post for hook in each.values()]


def hooks_of_leaf(leaf: Tensor) -> list[Hook]:
    """Return the hooks that run when the gradient of `leaf` is complete, in order."""
    extra = leaf._extra
    if extra is None:
        return []
    node = live_accumulator(leaf)
    own = None if node is None else node._hooks
    found = [Hook("tensor", 0, described(hook)) for hook in (extra.hooks or {}).values()]
    if own is not None:
        found += [Hook("node pre", None, described(hook)) for hook in (own.pre or {}).values()]
    found += [Hook("post accumulate", None, described(hook)) for hook in (extra.post_hooks or {}).values()]
    if own is not None:
        found += [Hook("node post", None, described(hook)) for each in own.post for hook in each.values()]
    return found


def described(hook: Any) -> str:
    """Return a hook's name, and the place of its definition."""
    function = hook
    while hasattr(function, "func"):  # partial
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(function, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def formula_of(node: Node) -> dict[str, str]:
    """Return the derivative as source code, from the operator's declaration or from a custom function's `backward`."""
    if isinstance(node, FunctionNode):
        cls = node._forward_cls
        return {"backward": source_of(cls.backward if cls.vjp is Function.vjp else cls.vjp)}
    return kind_of(class_of(node)).formula


def declared_source(name: str, formula: Callable[..., Any]) -> str:
    """Return the source of the formula for an input. A formula that operators share reads as if it were declared for this one."""
    source = source_of(formula)
    if not source.startswith("def ") or source.startswith("def grad_"):
        return source
    tree = ast.parse(source)
    shared: Any = tree.body[0]
    shared.name, shared.returns = f"grad_{name}", None
    for parameter in shared.args.args:
        parameter.annotation = None
    shared.body = shared.body[ast.get_docstring(shared) is not None :]
    return ast.unparse(tree)


@cache
def source_of(function: Callable[..., Any]) -> str:
    """Return the source of `function`, or its name if the source is not available."""
    try:
        return textwrap.dedent(inspect.getsource(function)).strip()
    except (OSError, TypeError):
        return getattr(function, "__qualname__", repr(function))
