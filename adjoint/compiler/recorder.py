"""The calls of a function as nodes, from which the graphs for a backend are made."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import adjoint as torch

from ..tape import modes, origin
from ..tensor import Tensor
from .backward import tensors_of
from .known import settings
from .program import Reference, numbers_in
from .symbols import Symbol, plain
from .tracer import Stop


class Node(NamedTuple):
    """A call. `results`: the numbers of the tensors in its result, by position, or the number of its only result."""

    op: str
    target: Any
    args: Any
    kwargs: dict[str, Any]
    result: Any
    number: int
    place: str


class Condition(NamedTuple):
    """The end of a graph: the later graphs run if the truth of a tensor is the same."""

    number: int
    truth: bool


class Effect(NamedTuple):
    """The end of a graph: a call of a function that is not part of a graph, such as `print`."""

    function: Any
    args: Any
    kwargs: dict[str, Any]


class CallRecorder:
    """Records calls as nodes. `values`: the number of each tensor, by identity. `tensors`: these tensors, by number.

    `inputs`: the values that exist before, by number, each with the source that reads it and the object. `depth`: the number
    of running calls, whose own calls are not recorded. `grad_enabled`: the mode after the last node. `constants`: arrays that
    the package has made from numbers, by identity. `sizes`: the tensors and dimensions of symbols for sizes.
    """

    def __init__(self, stop: Callable[[str], None]) -> None:
        self.stop = stop
        self.nodes: list[Node | Condition | Effect] = []
        self.values: dict[int, int] = {}
        self.tensors: dict[int, Any] = {}
        self.inputs: dict[int, tuple[Any, Any]] = {}
        self.constants: dict[int, Any] = {}
        self.sizes: dict[int, tuple[Any, int]] = {}
        self.depth = 0
        self.grad_enabled = self.first_grad_enabled = torch.is_grad_enabled()
        self.settings = settings(modes.STATE.__dict__)[1:]
        self.input_of: Callable[[Tensor], Any] = lambda tensor: None

    def name(self, value: Any) -> int:
        """Give a value a new number."""
        number = len(self.tensors)
        self.tensors[number] = value
        self.values[id(value)] = number
        return number

    def known(self, value: Any) -> Reference:
        """Return the reference to a tensor or a symbol. A tensor from outside becomes an input."""
        if id(value) not in self.values and isinstance(value, Tensor) and id(value._array) in self.constants:
            target = torch.tensor
            array = self.constants[id(value._array)]
            given = (array.tolist(),), {"dtype": value.dtype}
            self.nodes.append(Node("call_function", target, *given, value, self.name(value), ""))
        if id(value) not in self.values and isinstance(value, Symbol) and value.value in self.sizes:
            tensor, dim = self.sizes[value.value]
            self.nodes.append(Node("call_method", "size", (self.known(tensor), dim), {}, value, self.name(value), ""))
        elif id(value) not in self.values and isinstance(value, Symbol) and value.origin is not None:
            function, operands = value.origin
            given = tuple(map(self.mapped, operands))
            self.nodes.append(Node("call_function", function, given, {}, value, self.name(value), ""))
        if id(value) not in self.values:
            source = f"v{value.value}" if isinstance(value, Symbol) else self.input_of(value)
            if source is None:
                raise Stop("no call of the function has made a tensor")
            self.inputs[self.name(value)] = source, plain(value)
        return Reference(self.values[id(value)])

    def mapped(self, value: Any) -> Any:
        """Return an argument with references in place of tensors and of numbers that change."""
        if isinstance(value, Symbol):
            return value.plain if value.is_fixed else self.known(value)
        if isinstance(value, Tensor):
            number = value._extra.number if value._extra is not None else None
            return self.known(value) if number is None else self.mapped(number.args[0])
        if type(value) in (list, tuple, torch.Size):
            return (list if type(value) is list else tuple)(map(self.mapped, value))
        if type(value) is dict:
            return {key: self.mapped(each) for key, each in value.items()}
        return slice(*map(self.mapped, (value.start, value.stop, value.step))) if type(value) is slice else value

    def record(self, op: str, target: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Append a node, unless the call neither takes nor returns tensors."""
        if not (tensors_of(result) or (result is None and tensors_of([args, kwargs]))):
            return
        if settings(modes.STATE.__dict__)[1:] != self.settings:
            self.stop("autocast or another mode is entered")
        try:
            given, named = self.mapped(args), self.mapped(kwargs)
        except Stop as error:
            self.stop(str(error))
            return
        self.set_grad_enabled(torch.is_grad_enabled())
        frame = origin.user_frame(1)
        place = f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}\n'
        number = self.name(result)
        self.nodes.append(Node(op, target, given, named, result, number, place))
        if isinstance(result, (tuple, list)):
            self.items(result, number, place)

    def items(self, values: Any, number: int, place: str) -> None:
        """Append the nodes that read the tensors in a result."""
        for index, each in enumerate(values):
            if tensors_of(each):
                item = self.name(each)
                self.nodes.append(
                    Node("call_function", operator.getitem, (Reference(number), index), {}, each, item, place)
                )
                if not isinstance(each, Tensor):
                    self.items(each, item, place)

    def end(self, after: Condition | Effect) -> None:
        """End a graph."""
        self.set_grad_enabled(self.first_grad_enabled)
        self.nodes.append(after)

    def set_grad_enabled(self, enabled: bool) -> None:
        """Append a node that sets whether gradients are recorded, if the mode has changed."""
        if enabled != self.grad_enabled:
            self.grad_enabled = enabled
            target = torch._C._set_grad_enabled
            self.nodes.append(Node("call_function", target, (enabled,), {}, None, self.name(object()), ""))

    @contextmanager
    def within(self) -> Iterator[None]:
        """A context in which calls are parts of a node."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def graphs(self, wanted: Iterable[int]) -> list[Piece]:
        """Return the graphs. `wanted`: the values that are returned."""
        self.set_grad_enabled(self.first_grad_enabled)
        parts: list[tuple[list[Node], Condition | Effect | None]] = []
        nodes: list[Node] = []
        for each in [*self.nodes, None]:
            if isinstance(each, Node):
                nodes.append(each)
            else:
                parts.append((nodes, each))
                nodes = []
        needed, pieces = {*wanted}, []
        for nodes, end in reversed(parts):
            if isinstance(end, Condition):
                needed.add(end.number)
            elif end is not None:
                needed.update(numbers_in([end.args, end.kwargs]))
            pieces.append(Piece(self, nodes, needed, end))
            needed = (needed - {each.number for each in nodes}) | {*pieces[-1].inputs}
        return pieces[::-1]


class Piece:
    """One graph. `inputs`, `outputs`: the numbers of its values. `end`: what follows, or None for the last graph."""

    def __init__(
        self, recorder: CallRecorder, nodes: list[Node], needed: set[int], end: Condition | Effect | None
    ) -> None:
        self.recorder, self.nodes, self.end = recorder, nodes, end
        made = {each.number for each in nodes}
        self.outputs = [each.number for each in nodes if each.number in needed]
        self.inputs = list(
            dict.fromkeys(
                number for each in nodes for number in numbers_in([each.args, each.kwargs]) if number not in made
            )
        )

    @property
    def is_empty(self) -> bool:
        """Return whether the graph computes nothing."""
        return not any(each.target is not torch._C._set_grad_enabled for each in self.nodes)

    def examples(self) -> list[Any]:
        """Return the inputs of the capture."""
        return [plain(self.recorder.tensors[number]) for number in self.inputs]

    def module(self, names: dict[int, str], inputs: list[int] | None = None, outputs: list[int] | None = None) -> Any:
        """Return the graph as a module, with other inputs and outputs if they are given."""
        graph, made = torch.fx.Graph(), {}
        for number in self.inputs if inputs is None else inputs:
            name = names.get(number, f"value_{number}")
            made[number] = graph.create_node("placeholder", name, name=name.lower())
            self.describe(made[number], self.recorder.tensors[number], "")
        for each in self.nodes:
            args, kwargs = replaced(each.args, made), replaced(each.kwargs, made)
            made[each.number] = graph.create_node(each.op, each.target, args, kwargs)
            self.describe(made[each.number], each.result, each.place)
        graph.output(tuple(made[number] for number in (self.outputs if outputs is None else outputs)))
        return torch.fx.GraphModule(torch.nn.Module(), graph)

    def describe(self, node: Any, value: Any, place: str) -> None:
        """Describe the value of a node in its `meta`, without the elements."""
        if isinstance(value, Tensor):
            form = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            node.meta["example_value"] = form.requires_grad_(value.requires_grad and value.dtype.is_floating_point)
        elif isinstance(value, Symbol):
            node.meta["example_value"] = value.plain
        if place:
            node.meta["stack_trace"] = place


def replaced(value: Any, nodes: dict[int, Any]) -> Any:
    """Return an argument with nodes in place of references."""
    if isinstance(value, Reference):
        return nodes[value.number]
    if isinstance(value, slice):
        return slice(*[replaced(each, nodes) for each in (value.start, value.stop, value.step)])
    if type(value) is dict:
        return {key: replaced(each, nodes) for key, each in value.items()}
    return type(value)([replaced(each, nodes) for each in value]) if type(value) in (list, tuple) else value
