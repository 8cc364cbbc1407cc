"""Reading a live graph into records. `snapshot` walks the graph once, without changing it or keeping it alive."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy

from .._runtime.uninterrupted import uninterrupted
from ..autograd.engine import discover
from ..autograd.gradient_edge import GradientEdge, recorded_edge
from ..dtypes import from_numpy
from ..kernels.memory.storage import owner
from ..kernels.runtime.floating import unwarned
from ..operators.memory.changed_views import CopySlices
from ..tape.edges import edge_of
from ..tape.node import Node
from ..tape.origin import line_of
from ..tape.packing import Packed
from ..tape.saved import RELEASED
from ..tensor import LEAF, Tensor
from .contents import describe
from .formulas import written
from .grouping import Code, group
from .model import Line, NodeBox, OperationBox, Saved, Snapshot, Statistics, TensorBox
from .modules import calls_of, name_models, places, warn_of_calls_before_notes
from .names import Names, add_variables, names_from
from .reading import Item, Kind, formula_of, hooks_of_leaf, hooks_of_node, input_names, items_of, kind_of, operation
from .recomputing import recomputed
from .recording import kernels_of, seconds_of, value_of
from .values import in_short, statistics

MOST_VALUES = 6000
"""The maximum number of tensors that are shown with their values. Other tensors are shown only with their shapes."""

NAMED_FORMULAS = 60
"""In a graph with at most this many nodes, formulas contain the names of tensors.

In a larger graph, formulas contain the names of parameters.
"""


def snapshot(
    tensors: Any, params: Any = None, variables: Mapping[str, Any] | None = None, values: bool = False
) -> Snapshot:
    """Return the graph of `tensors` as records, which keep no part of the graph alive.

    Args:
        tensors: the roots, as tensors or gradient edges.
        params: the names of leaves, as None, a Module, a dict of names and tensors, or an iterable of pairs.
        variables: the caller's variables, for names.
        values: whether to compute small values again if the graph does not hold them.

    >>> import adjoint as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> seen = snapshot([(w * w).sum()], {"w": w})
    >>> [node.name for node in seen.nodes]
    ['AccumulateGrad', 'MulBackward0', 'SumBackward0']
    >>> seen.tensors[0].name, seen.tensors[0].data
    ('w', '[1, 2]')
    """
    return walked(tensors, params, variables, values).picture


def walked(tensors: Any, params: Any = None, variables: Mapping[str, Any] | None = None, values: bool = False) -> Walk:
    """Like `snapshot`, but also return the ids of the live nodes. The result keeps the graph alive."""
    walk = Walk(list(tensors), names_from(params), dict(variables or {}))
    with unwarned(), uncollected():
        walk.run(values)
    return walk


class uncollected:
    """A context manager that disables garbage collection, which would repeatedly search all new records in vain."""

    def __enter__(self) -> None:
        self.enabled = gc.isenabled()
        gc.disable()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            gc.enable()


class Walk:
    """One walk over a graph, with the records found so far.

    `leaves` and `outputs` map live objects to their boxes by identity. This is safe because the graph keeps the objects
    alive.
    """

    def __init__(self, roots: list[Any], names: Names, callers: dict[str, Any]) -> None:
        self.roots = roots
        self.names = names
        self.callers = callers
        self.picture = Snapshot()
        self.order: list[Node] = []
        self.ids: dict[int, str] = {}
        """The ids of the boxes of nodes. For an `AccumulateGrad`, the key is the leaf."""
        self.leaves: dict[int, TensorBox] = {}
        self.outputs: dict[tuple[int, int], TensorBox] = {}
        self.variables: dict[str, Tensor] = {}
        """The known live tensors, by the id of their boxes."""
        self.arrays: dict[str, Any] = {}
        """The arrays of tensors that no part of the graph holds, and of saved results."""
        self.storages: dict[int, str] = {}
        self.held: dict[str, int] = {}
        self.leaf_bytes: dict[str, int] = {}
        self.seen_values: dict[tuple[Any, ...], tuple[str | None, Statistics | None]] = {}
        self.lines: dict[tuple[int, int], Line] = {}
        self.derivatives: dict[tuple[Any, ...], dict[str, str]] = {}

    def run(self, values: bool = False) -> None:
        """Fill `picture`. With `values`, missing values are computed again."""
        edges = [recorded_edge(root) if isinstance(root, GradientEdge) else edge_of(root) for root in self.roots]
        latest_first, _ = discover(edges)
        ends = [edge for each in (edges, *(node._edges for node in latest_first)) for edge in each]
        leaves = [*{id(edge): edge for edge in ends if isinstance(edge, Tensor)}.values()]
        self.order = [node for node in reversed(latest_first) if not node.is_nowhere]
        numbers = [node._sequence for node in self.order]
        following = {
            node._sequence: [edge[0]._sequence for edge in node._edges if type(edge) is tuple] for node in self.order
        }
        calls = calls_of(following)
        warn_of_calls_before_notes(numbers, leaves)
        name_models(self.names, calls, leaves, self.callers)
        add_variables(self.names, self.callers)
        self.callers = {}
        for node in self.order:
            self.add(node)
        for root, edge in zip(self.roots, edges, strict=True):
            box = self.constant(root, None) if edge is None or _is_nowhere(edge) else self.at(edge)
            if isinstance(root, Tensor):
                self.know(box, root)
            self.picture.roots.append(box.id)
        for name, tensor in self.names.variables:
            self.recognise(name, tensor)
        if values:
            self.recompute()
        self.picture.storages = {key: size for key, size in self.held.items() if key not in self.leaf_bytes}
        self.picture.bytes = sum(self.picture.storages.values())
        self.picture.leaf_bytes = sum(self.leaf_bytes.values())
        codes = [Code(getattr(node, "_code", None), getattr(node, "_lasti", -1)) for node in self.order]
        arguments = {box.node for box in self.leaves.values() if self.is_argument(box)}
        group(self.picture, codes, places(numbers, calls), arguments)
        describe(self.picture, arguments)

    def is_argument(self, box: TensorBox) -> bool:
        """Return whether a leaf is not a parameter, so that it may be an argument of a model."""
        return box.node is not None and not getattr(self.variables.get(box.id), "_is_param", False)

    # --- tensors ------------------------------------------------------------------------------------------------

    def box(self, kind: Any, shape: Any, dtype: Any) -> TensorBox:
        """Create a new tensor of the picture."""
        box = TensorBox(f"t{len(self.picture.tensors) + 1}", kind, None, list(shape), _dtype_name(dtype))
        box.is_leaf = kind != "intermediate"
        self.picture.tensors.append(box)
        return box

    def at(self, edge: Any) -> TensorBox:
        """Return the tensor whose gradient goes to `edge`."""
        if type(edge) is tuple:
            return self.outputs[id(edge[0]), edge[1]]
        return self.leaf(edge)

    def leaf(self, tensor: Tensor) -> TensorBox:
        """Return the box of a leaf that requires grad, and the box of its `AccumulateGrad`."""
        box = self.leaves.get(id(tensor))
        if box is None:
            array = tensor._array
            box = self.leaves[id(tensor)] = self.box("leaf", array.shape, array.dtype)
            self.know(box, tensor)
            if box.storage is not None:
                self.leaf_bytes[box.storage] = owner(array).nbytes
            node = NodeBox(f"n{len(self.picture.nodes) + 1}", "AccumulateGrad", -1, True)
            node.hooks = hooks_of_leaf(tensor)
            node.formula = {"grad": "variable.grad += grad"}
            self.picture.nodes.append(node)
            self.ids[id(tensor)] = box.node = node.id
        return box

    def constant(self, tensor: Tensor | None, like: tuple[Any, Any] | None) -> TensorBox:
        """Return the box of a tensor outside the graph. The box of an unknown tensor has only a shape and a dtype."""
        if tensor is None:
            shape, dtype = like or ((), None)
            return self.box("constant", shape, dtype)
        is_number = tensor._extra is not None and tensor._extra.number is not None
        box = None if is_number else self.leaves.get(id(tensor))
        if box is None:
            box = self.box("constant", tensor._array.shape, tensor._array.dtype)
            if is_number:
                box.known, box.data = True, in_short(tensor._array)
                return box
            self.leaves[id(tensor)] = box
            self.know(box, tensor)
        return box

    def know(self, box: TensorBox, tensor: Tensor) -> None:
        """Record the current properties of `tensor`, which `box` represents."""
        if box.id in self.variables:
            return
        self.variables[box.id] = tensor
        names = self.names.tensors.get(id(tensor))
        if names:
            box.name = names[0]
        box.requires_grad = box.kind != "constant"
        box.version = None if tensor.is_inference() else _version(tensor._counter)
        if tensor._grad is not None:
            box.grad = in_short(tensor._grad._array)
        self.fill(box, tensor._array)

    def fill(self, box: TensorBox | Saved, array: Any) -> None:
        """Record the values, bytes and storage of `array`, which `box` represents."""
        if isinstance(box, TensorBox):
            box.known = True
        box.storage = self.storage(array)
        box.bytes = array.nbytes
        box.data, box.statistics = self.values(array)

    def values(self, array: Any) -> tuple[str | None, Statistics | None]:
        """Return the elements and statistics of `array`. They are computed once for all views with the same memory and layout."""
        if len(self.seen_values) >= MOST_VALUES:
            return None, None
        interface = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
        found = self.seen_values.get(interface)
        if found is None:
            found = self.seen_values[interface] = in_short(array), statistics(array)
        return found

    def storage(self, array: Any) -> str:
        """Return the storage of `array`. Arrays that share memory have the same storage."""
        root = owner(array)
        return self.storages.setdefault(id(root), f"s{len(self.storages) + 1}")

    def recognise(self, name: str, tensor: Tensor) -> None:
        """Give the name of a variable to its tensor in the picture, if the picture contains the tensor."""
        edge = tensor._edge
        if type(edge) is not tuple or tensor.is_inference():
            return
        if tensor._base is not None and int(tensor._view_version) != _version(tensor._counter):
            return  # a view of memory that has been changed since
        box = self.outputs.get((id(edge[0]), edge[1]))
        if box is not None and box.name is None:
            self.know(box, tensor)
            box.name = name

    # --- nodes --------------------------------------------------------------------------------------------------

    def add(self, node: Node) -> None:
        """Add the boxes of a node, of its operation and of its outputs. The boxes of its inputs already exist."""
        picture = self.picture
        inputs = [None if edge is None or _is_nowhere(edge) else self.at(edge) for edge in node._edges]
        kind = kind_of(type(node))
        box = NodeBox(f"n{len(picture.nodes) + 1}", kind.name, node._sequence)
        picture.nodes.append(box)
        self.ids[id(node)] = box.id
        performed = OperationBox(f"o{len(picture.operations) + 1}", operation(node), node=box.id)
        picture.operations.append(performed)
        box.next = [(None, 0) if tensor is None else (tensor.node, tensor.output_nr) for tensor in inputs]
        box.inputs = input_names(node)
        several = type(node._grad_shape) is list
        shapes, dtypes = (node._grad_shape, node._grad_dtype) if several else ([node._grad_shape], [node._grad_dtype])
        base = inputs[0].view_of or inputs[0].id if kind.is_view and inputs and inputs[0] is not None else None
        for number, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
            if shape is None:
                continue
            tensor = self.box("intermediate", shape, dtype)
            tensor.node, tensor.output_nr, tensor.view_of = box.id, number, base
            tensor.requires_grad = number not in kind.undifferentiable
            self.outputs[id(node), number] = tensor
            performed.outputs.append(tensor.id)
        constants = self.add_saved(node, box, inputs)
        for number in range(len(shapes)):
            made = self.outputs.get((id(node), number))
            if made is not None and not made.known:
                self.show(made, value_of(node, number))
        self.operands(node, performed, kind, inputs, constants, box.inputs)
        box.line = self.line(node)
        if node._hooks is not None:
            box.hooks = hooks_of_node(node)
        box.formula = formula_of(node)
        if box.formula and kind.operator is not None:
            box.derivative = self.derivative(node, box, performed)
        if kernels := kernels_of(node):
            box.values["compiled kernel"] = ", ".join(kernels)
        if (seconds := seconds_of(node)) is not None:
            box.seconds["forward"] = seconds

    def operands(
        self,
        node: Node,
        performed: OperationBox,
        kind: Kind,
        inputs: list[TensorBox | None],
        constants: dict[str, TensorBox],
        names: list[str],
    ) -> None:
        """Set the operands of an operation and their names in the order of its parameters.

        Constants appear if they were recorded.
        """
        if kind.operator is None or kind.sequence is not None:
            found = [(tensor, name) for tensor, name in zip(inputs, names, strict=True) if tensor is not None]
            found += [(tensor, name) for name, tensor in constants.items()]
        else:
            found = []
            for name, place, always in kind.operands:
                tensor = inputs[place] if place is not None else None
                if tensor is None:
                    tensor = constants.get(name)
                    if tensor is None and always:
                        tensor = self.constant(None, None)
                        self.show(tensor, value_of(node, name))
                if tensor is not None:
                    found.append((tensor, name))
        performed.inputs = [tensor.id for tensor, _ in found]
        performed.names = [name for _, name in found]

    def show(self, box: TensorBox, array: Any) -> None:
        """Show the elements of a tensor that no part of the graph holds."""
        if array is not None:
            box.data, box.statistics = in_short(array), statistics(array)
            box.dtype = box.dtype or _dtype_name(array.dtype)
            box.shape = list(array.shape)
            self.arrays[box.id] = array

    def recompute(self) -> None:
        """Compute small unknown results again."""
        values = {key: tensor._array for key, tensor in self.variables.items()} | self.arrays
        tensors = {tensor.id: tensor for tensor in self.picture.tensors}
        for node, performed in zip(self.order, self.picture.operations, strict=True):
            box = tensors[performed.outputs[0]] if performed.outputs else None
            if box is not None and box.id not in values and box.data is None:
                array = recomputed(node, performed, values)
                if array is not None:
                    values[box.id] = array
                    self.show(box, array)

    def derivative(self, node: Node, box: NodeBox, performed: OperationBox) -> dict[str, str]:
        """Write the formulas of a node, with the names of tensors in a small graph."""
        tensors = self.picture.tensors
        called: dict[str, str] = {}
        if len(self.order) <= NAMED_FORMULAS:
            pairs = [
                *zip(performed.names, performed.inputs, strict=True),
                *zip(("result",), performed.outputs, strict=False),
            ]
            named = {name: tensors[int(key[1:]) - 1].name or "" for name, key in pairs}
            called = {name: text for name, text in named.items() if text.isidentifier() and len(text) <= 8}
        needed = tuple(target is not None for target, _ in box.next)
        absent = frozenset(saved.name for saved in box.saved if saved.state == "none")
        kinds = (tensors[int(key[1:]) - 1].dtype for key in (*performed.inputs, *performed.outputs))
        conjugates = any(kind.startswith("complex") for kind in kinds)
        key = type(node), needed, absent, conjugates, *called.items(), *box.values.values()
        if key not in self.derivatives:
            kind = kind_of(type(node))
            values = {name: getattr(node, slot, None) for name, slot in kind.values}
            values |= {slot.name: None for slot in kind.slots if slot.name in absent}
            wanted = {name for name, (target, _) in zip(box.inputs, box.next, strict=True) if target is not None}
            sources = {name: source for name, source in box.formula.items() if name in wanted or name not in box.inputs}
            found = {name: written(source, called, values, conjugates) for name, source in sources.items()}
            self.derivatives[key] = {name: text for name, text in found.items() if text is not None}
        return self.derivatives[key]

    def add_saved(self, node: Node, box: NodeBox, inputs: list[TensorBox | None]) -> dict[str, TensorBox]:
        """Add the saved values of `node`. Return the saved tensors outside the graph, by name."""
        constants: dict[str, TensorBox] = {}
        items = items_of(node)
        if type(node) is CopySlices:
            inputs = [None, *inputs[1:]]
            node = node if node.function is None else node.function
        for item in items:
            value, tensor = item.value, None
            if item.output_nr is not None:
                tensor = self.outputs.get((id(node), item.output_nr))
            elif item.input is not None:
                tensor = inputs[item.input]
            elif isinstance(value, Tensor):
                tensor = self.found(value)
            if tensor is None and item.output_nr is None and isinstance(value, Tensor) and value._edge is None:
                tensor = constants[item.name] = self.constant(value, None)
            box.saved.append(self.saved(item, tensor))
        kind = kind_of(type(node))
        if kind.values:
            box.values = {name: _printed(getattr(node, slot, None)) for name, slot in kind.values}
        return constants

    def found(self, tensor: Tensor) -> TensorBox | None:
        """Return the box of a live tensor, if there is one."""
        edge = tensor._edge
        if edge is LEAF:
            return self.leaves.get(id(tensor))
        return self.outputs.get((id(edge[0]), edge[1])) if type(edge) is tuple else None

    def saved(self, item: Item, tensor: TensorBox | None) -> Saved:
        """Create the record of one saved tensor."""
        value = item.value
        if value is None:
            return Saved(item.name, "none")
        saved = Saved(
            item.name,
            "ok",
            None if tensor is None else tensor.id,
            version_saved=None if item.version is None else int(item.version),
        )
        if value is RELEASED:
            saved.state, saved.version_saved = "freed", None
        elif type(value) is Packed:
            saved.state = "packed"
            saved.data = _printed(value.packed)
            array = value.packed._array if isinstance(value.packed, Tensor) else value.packed
            if isinstance(array, numpy.ndarray):
                saved.bytes, saved.storage = array.nbytes, self.storage(array)
                self.held[saved.storage] = owner(array).nbytes
        else:
            self.look(saved, item, tensor)
            return saved
        if tensor is not None and (tensor.shape or tensor.dtype):
            saved.shape, saved.dtype = tensor.shape, tensor.dtype
        return saved

    def look(self, saved: Saved, item: Item, tensor: TensorBox | None) -> None:
        """Record the properties of a saved tensor that still exists."""
        value = item.value
        array = value._array if isinstance(value, Tensor) else value
        saved.version_now = _version(item.counter if item.counter is not None else getattr(value, "_counter", None))
        saved.state = "ok" if saved.version_now == saved.version_saved else "stale"
        saved.shape, saved.dtype = list(array.shape), _dtype_name(array.dtype)
        if isinstance(value, Tensor) and value._extra is not None and value._extra.number is not None:
            saved.data = in_short(array)  # a constant number, shared by many nodes, which does not count
            return
        if tensor is not None and saved.state == "ok":
            if isinstance(value, Tensor) and item.output_nr is None:
                self.know(tensor, value)
            elif not tensor.known:
                self.fill(tensor, array)
                self.arrays[tensor.id] = array
                tensor.version = saved.version_now
            saved.storage, saved.bytes = tensor.storage, tensor.bytes
            saved.data, saved.statistics = tensor.data, tensor.statistics
        else:
            self.fill(saved, array)
        if saved.storage not in self.held:
            self.held[saved.storage] = owner(array).nbytes  # type: ignore[index]

    def line(self, node: Node) -> Line | None:
        """Return the user's line that created `node`."""
        code = getattr(node, "_code", None)
        if code is None:
            return None
        key = id(code), node._lasti  # comparing code objects would be slow
        if key not in self.lines:
            number = line_of(code, node._lasti)
            text = linecache.getline(code.co_filename, number or 0).strip()
            self.lines[key] = Line(code.co_filename, number or 0, code.co_qualname, text)
        return self.lines[key]


def _is_nowhere(edge: Any) -> bool:
    return type(edge) is tuple and edge[0].is_nowhere


def _version(counter: list[Any] | None) -> int:
    return 0 if counter is None else int(counter[0])


@cache
def _dtype_name(dtype: Any) -> str:
    return "" if dtype is None else str(from_numpy(dtype)).removeprefix("torch.")


def _printed(value: Any) -> str:
    """Return a saved value that is not a tensor, as abbreviated text."""
    if isinstance(value, Tensor):
        return f"tensor {in_short(value._array)}"
    if isinstance(value, numpy.ndarray):
        return f"array {in_short(value)}"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
