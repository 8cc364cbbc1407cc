"""What a picture of a graph shows: plain records, made once by `snapshot`, that every way of showing reads.

Nothing here refers to a tensor or a node: a snapshot holds no memory of the graph, and can be written as JSON and read back.
Records refer to each other by `id`: `t3` a tensor, `o3` an operation, `n3` a backward node, `g3` a group.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Literal


@dataclass(slots=True)
class Line:
    """A place in the user's code."""

    file: str
    number: int
    function: str
    text: str


@dataclass(slots=True)
class Statistics:
    """A tensor's numbers in short. The extremes and moments are of the finite elements; `histogram` counts them in equal bins."""

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

    `known` says whether the tensor itself was found (a leaf, an argument, something saved); of the others only the shape and
    dtype are on record. `data` and `grad` are printed values in short.
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
    """Tensors on the same memory have the same storage, which is counted once."""
    statistics: Statistics | None = None


@dataclass(slots=True)
class OperationBox:
    """One operation of the forward computation, between the tensors it took and those it made."""

    id: str
    name: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    node: str | None = None


@dataclass(slots=True)
class Saved:
    """A tensor that a node has saved."""

    name: str
    state: Literal["ok", "stale", "freed", "packed", "none"]
    tensor: str | None = None
    """The tensor of the picture that this is, where it is one of them."""
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
    """A hook; the hooks of a node are listed in the order in which they will run."""

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
    """`next_functions`: the node each gradient goes to and which of its outputs the gradient is of."""
    inputs: list[str] = field(default_factory=list)
    """The names of the operation's inputs, one for each entry of `next`."""
    saved: list[Saved] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """What else was saved: numbers, sizes, flags; printed."""
    hooks: list[Hook] = field(default_factory=list)
    line: Line | None = None
    module: str | None = None
    """The path of the module that made it, as far as the parameters tell."""
    formula: dict[str, str] = field(default_factory=dict)
    """The derivative with respect to each input, as it is written in the library."""
    gradient: list[Statistics | None] = field(default_factory=list)
    """After `trace_backward`: the gradients that arrived, one for each output."""


@dataclass(slots=True)
class Group:
    """A part of the graph that can be folded into one box: a module, or one repetition of a repeated block."""

    id: str
    label: str
    kind: Literal["module", "block", "repeat"]
    parent: str | None = None
    nodes: list[str] = field(default_factory=list)
    """The nodes that are directly in this group (those of groups inside it are theirs)."""
    times: int = 1
    """For a `repeat`: how many equal groups are in it."""


@dataclass(slots=True)
class Flow:
    """A gradient on an edge, or at a leaf."""

    node: str | None
    index: int
    data: str | None
    shape: list[int] | None
    statistics: Statistics | None = None


@dataclass(slots=True)
class Step:
    """One step of a backward: a node has run."""

    node: str
    incoming: list[Flow] = field(default_factory=list)
    """What arrived, one for each output of the operation, summed and after the tensor's hooks."""
    outgoing: list[Flow] = field(default_factory=list)
    """What it sends on, one for each entry of `next`."""
    accumulated: str | None = None
    """For an `AccumulateGrad`: the leaf's `.grad` afterwards."""
    hooks: list[str] = field(default_factory=list)
    """The user's hooks that ran."""
    freed: list[str] = field(default_factory=list)
    """The names of the saved tensors that were let go."""
    freed_bytes: int = 0


@dataclass(slots=True)
class Snapshot:
    """A whole graph. `roots` are the tensors it was asked for; `bytes` is what it holds, each storage once."""

    tensors: list[TensorBox] = field(default_factory=list)
    operations: list[OperationBox] = field(default_factory=list)
    nodes: list[NodeBox] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    bytes: int = 0
    steps: list[Step] = field(default_factory=list)
    title: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The snapshot as JSON knows it."""
        return {"format": "adjoint.inspect/1", **plain(self)}


def plain(record: Any) -> dict[str, Any]:
    """A record and those within it as dicts (`dataclasses.asdict`, which copies, takes many times as long)."""
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
    """The names of a record's fields, what reads them all, and the names of those that are records or lists of them."""
    names = [each.name for each in fields(cls)]
    records = [name for name, value in globals().items() if is_dataclass(value)]
    nested = [each.name for each in fields(cls) if any(re.search(rf"\b{name}\b", str(each.type)) for name in records)]
    return names, attrgetter(*names), nested
