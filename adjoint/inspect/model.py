"""The data of a picture: plain records. `snapshot` creates them, and all output formats read them.

No record refers to a tensor or a node. A snapshot keeps no memory of the graph alive, and can be written as JSON and
read back. Records refer to each other by `id`: `t3` a tensor, `o3` an operation, `n3` a backward node, `g3` a group.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import PurePath
from typing import Any, Literal


@dataclass(slots=True)
class Line:
    """A line of the user's code."""

    file: str
    number: int
    function: str
    text: str

    @property
    def place(self) -> str:
        """Return the name of the file and the line number, or the cell for code of a notebook."""
        in_cell = re.search(r"ipykernel_\d+|<ipython-input", self.file)
        return f"{'cell' if in_cell else PurePath(self.file).name}:{self.number}"


@dataclass(slots=True)
class Statistics:
    """Statistics of a tensor.

    Extremes and moments include only the finite elements. `histogram` counts these elements in equal bins.
    """

    count: int
    nan: int
    inf: int
    zero: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    histogram: list[int] = field(default_factory=list)


@dataclass(slots=True)
class TensorBox:
    """One tensor of the forward computation.

    `known`: whether the tensor itself was found (a leaf, an argument, or a saved tensor). Otherwise only shape and
    dtype are known. `data` and `grad` are abbreviated values as text.
    """

    id: str
    kind: Literal["leaf", "constant", "intermediate"]
    name: str | None = None
    shape: list[int] = field(default_factory=list)
    dtype: str = ""
    known: bool = False
    requires_grad: bool = False
    is_leaf: bool = False
    data: str | None = None
    grad: str | None = None
    version: int | None = None
    node: str | None = None
    """The backward node of this tensor: its `grad_fn`, or the `AccumulateGrad` of a leaf."""
    output_nr: int = 0
    view_of: str | None = None
    bytes: int = 0
    storage: str | None = None
    """The storage of the tensor. Tensors on the same memory have the same storage, which counts once."""
    statistics: Statistics | None = None
    group: str | None = None
    """The group of a tensor that has no node."""


@dataclass(slots=True)
class OperationBox:
    """One operation of the forward computation, with its operands and results."""

    id: str
    name: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    node: str | None = None
    names: list[str] = field(default_factory=list)
    """The names of the operands, which are the names of the operator's parameters."""
    mark: Literal["", "added", "removed", "changed"] = ""
    """How the operation differs from the other graph, after `compare`."""


@dataclass(slots=True)
class Saved:
    """A tensor that a node has saved."""

    name: str
    state: Literal["ok", "stale", "freed", "packed", "none"]
    tensor: str | None = None
    """The tensor of the picture that was saved, if the picture contains it."""
    shape: list[int] | None = None
    dtype: str | None = None
    version_saved: int | None = None
    version_now: int | None = None
    bytes: int = 0
    storage: str | None = None
    data: str | None = None
    statistics: Statistics | None = None


@dataclass(slots=True)
class Hook:
    """A hook. The hooks of a node are listed in the order of execution."""

    when: Literal["tensor", "retain_grad", "node pre", "node post", "post accumulate"]
    output_nr: int | None
    text: str


@dataclass(slots=True)
class NodeBox:
    """One node of the backward graph."""

    id: str
    name: str
    sequence: int
    accumulate: bool = False
    next: list[tuple[str | None, int]] = field(default_factory=list)
    """The receiver of each gradient, and the number of its output, like `next_functions`."""
    inputs: list[str] = field(default_factory=list)
    """The names of the operation's inputs, one for each entry of `next`."""
    saved: list[Saved] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """Other saved values as text: numbers, sizes, flags."""
    hooks: list[Hook] = field(default_factory=list)
    line: Line | None = None
    module: str | None = None
    """The path of the module whose call recorded the node. For the model itself, its name or class."""
    formula: dict[str, str] = field(default_factory=dict)
    """The derivative with respect to each input, as source code."""
    derivative: dict[str, str] = field(default_factory=dict)
    """The derivative in textbook notation, if it can be written that way."""
    gradient: list[Statistics | None] = field(default_factory=list)
    """The incoming gradients, one for each output, after `trace_backward`."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The time of the operation (`forward`, under `recording`) and of the node (`backward`, under `trace_backward`)."""


@dataclass(slots=True)
class Group:
    """A part of the graph that can be folded into one box: a module, or one period of a repetition."""

    id: str
    label: str
    kind: Literal["module", "block", "repeat"]
    parent: str | None = None
    nodes: list[str] = field(default_factory=list)
    """The nodes that are directly in this group, and not in groups inside it."""
    times: int = 1
    """The number of equal groups in a `repeat`."""
    takes: list[list[int]] = field(default_factory=list)
    gives: list[list[int]] = field(default_factory=list)
    """The shapes of the tensors that enter and leave the group, without parameters."""
    operations: int = 0
    parameters: int = 0
    """The number of elements of the leaves that require grad and that the group uses."""
    bytes: int = 0
    """The bytes that its nodes have saved. Each storage counts once, and storages of leaves do not count."""


@dataclass(slots=True)
class Flow:
    """A gradient on an edge or at a leaf."""

    node: str | None
    index: int
    data: str | None
    shape: list[int] | None
    statistics: Statistics | None = None


@dataclass(slots=True)
class Step:
    """One step of a backward: the run of a node."""

    node: str
    incoming: list[Flow] = field(default_factory=list)
    """The incoming gradients, one for each output of the operation, summed and after the hooks of the tensor."""
    outgoing: list[Flow] = field(default_factory=list)
    """The outgoing gradients, one for each entry of `next`."""
    accumulated: str | None = None
    """The leaf's `.grad` after the step, for an `AccumulateGrad`."""
    hooks: list[str] = field(default_factory=list)
    """The user's hooks that ran."""
    freed: list[str] = field(default_factory=list)
    """The names of the released saved tensors."""
    freed_bytes: int = 0


@dataclass(slots=True)
class Snapshot:
    """A whole graph. `roots` are its root tensors.

    `storages`: the bytes of each saved storage, without the storages of leaves that require grad. `bytes` is their sum,
    the memory that the graph holds. `leaf_bytes`: the memory of the leaves that require grad.
    """

    tensors: list[TensorBox] = field(default_factory=list)
    operations: list[OperationBox] = field(default_factory=list)
    nodes: list[NodeBox] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    bytes: int = 0
    leaf_bytes: int = 0
    storages: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    title: str = ""
    compared: bool = False
    """Whether this is one of the two graphs of a comparison."""

    def as_dict(self) -> dict[str, Any]:
        """Return the snapshot as JSON data."""
        return {"format": "adjoint.inspect/1", **plain(self)}


def plain(record: Any) -> dict[str, Any]:
    """Return a record with nested records as dicts. `dataclasses.asdict` copies, and takes many times as long."""
    kind: Any = type(record)
    names, values, nested = _fields(kind)
    result = dict(zip(names, values(record), strict=True))
    for name in nested:
        value = result[name]
        if value:
            result[name] = [plain(item) if item else None for item in value] if type(value) is list else plain(value)
    return result


@cache
def _fields(cls: Any) -> tuple[list[str], Callable[[Any], tuple[Any, ...]], list[str]]:
    """Return the names of a record's fields, a getter for all of them, and the names of the fields that contain records."""
    names = [each.name for each in fields(cls)]
    records = [name for name, value in globals().items() if is_dataclass(value)]
    nested = [each.name for each in fields(cls) if any(re.search(rf"\b{name}\b", str(each.type)) for name in records)]
    return names, attrgetter(*names), nested
