"""The records of anomaly detection: traceback and values of each operation, and the gradient paths that it cuts."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy

from ..kernels.runtime.floating import unwarned
from ..kernels.runtime.narrow_array import widened
from ..kernels.sparse.layouts import to_dense
from ..tensor import LEAF, Tensor, can_require_grad
from . import modes, origin
from .edges import edge_of
from .interpreters import Handler, tensors_in

T = TypeVar("T")


@dataclass(frozen=True)
class Statistics:
    """Statistics of the elements of a tensor."""

    shape: tuple[int, ...]
    dtype: str
    nans: int
    infinities: int
    smallest: float | None
    largest: float | None

    @classmethod
    def of(cls, array: Any) -> Statistics:
        """Compute the statistics of `array`. Extremes include only the finite elements."""
        shape, kind = array.shape, str(array.dtype)
        array = widened(to_dense(array))
        if array.dtype.kind in "biuSU":
            finite, nans, infinities = array, 0, 0
        else:
            with unwarned():
                nans, infinities = int(numpy.isnan(array).sum()), int(numpy.isinf(array).sum())
                finite = array[numpy.isfinite(array)]
            finite = abs(finite) if finite.dtype.kind == "c" else finite
        bounds = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
        return cls(shape, kind, nans, infinities, *bounds)

    def __str__(self) -> str:
        parts = [f"{self.dtype}{list(self.shape)}"]
        if self.smallest is not None:
            between = f"{self.smallest:.6g}"
            parts.append(between if self.smallest == self.largest else f"from {between} to {self.largest:.6g}")
        parts += [f"{count} {what}" for count, what in ((self.nans, "nan"), (self.infinities, "inf")) if count]
        return ", ".join(parts)


@dataclass(frozen=True)
class Cut:
    """The place where a gradient path was cut: the operation, the reason, and the line of the user's code."""

    operation: str
    reason: str
    line: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.reason}\n  {self.line}"


class Notes(Generic[T]):
    """A table of records about tensors, which live as long as their tensor, without comparing tensors with `==`."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[weakref.ref[Tensor], T]] = {}

    def get(self, tensor: Tensor) -> T | None:
        """Return the record about `tensor`, or None."""
        entry = self.held.get(id(tensor))
        return None if entry is None else entry[1]

    def put(self, tensor: Tensor, note: T) -> None:
        """Set the record about `tensor`."""
        key = id(tensor)
        self.held[key] = (
            weakref.ref(tensor, partial(self.held.pop, key)),
            note,
        )  # runs no Python, where an interrupt would be lost


CUTS_TO: Notes[list[Cut]] = Notes()
"""By leaf: the cuts on the paths to it."""

CUT_BEFORE: Notes[Cut] = Notes()
"""By tensor without history: the cut that removed its history."""

USES: Notes[list[str]] = Notes()
"""By leaf: the lines that recorded operations on it."""

NANS: Notes[str] = Notes()
"""The operation that produced the NaN of a tensor computed without recording, and its line, by tensor."""

BY_DEFINITION = "it has no history by definition"
MOST_NOTES = 16
LARGEST_SEARCH = 100_000


def note_operation(name: str, values: Any, outputs: list[Tensor], recorded: bool) -> None:
    """Record the values and the cut gradient paths of an operation on `values`, for reports about NaNs and lost gradients."""
    inputs = [item for value in values for item in (value if isinstance(value, list) else [value])]
    inputs = [item for item in inputs if isinstance(item, Tensor)]
    line = _line()
    nan = next((note for note in map(NANS.get, (*inputs, *outputs)) if note is not None), None)
    known = [Statistics.of(elements(tensor)) for tensor in inputs]
    results = [Statistics.of(elements(output)) for output in outputs]
    if recorded:
        for tensor in inputs:
            if edge_of(tensor) is tensor:
                _add(USES, tensor, line)
        for output in outputs:
            if type(output._edge) is tuple:
                output._edge[0].metadata.update(inputs_=known, outputs_=results, **({"nan_": nan} if nan else {}))
        return
    if nan is None and not any(each.nans for each in known):
        nan = f"{name}\n  {line}"
    for output, result in zip(outputs, results, strict=True):
        if nan is not None and result.nans:
            NANS.put(output, nan)
    sources = [tensor for tensor in inputs if edge_of(tensor) is not None]
    if sources:
        note_cut(name, _reason(outputs), sources, outputs, line)
        return
    earlier = next((cut for cut in map(CUT_BEFORE.get, inputs) if cut is not None), None)
    if earlier is not None:
        for output in outputs:
            CUT_BEFORE.put(output, earlier)


class _Notes(Handler):
    """A handler that records the results of operators."""

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Record the results of the plan's steps. For steps that change a tensor, also record the overwritten values."""
        call.stepwise = True
        result = proceed()
        if call.in_place:
            return result
        outputs = call.outputs if call.out is None else tensors_in((call.out,))
        if outputs:
            note_operation(call.op.function_name, call.operands(), outputs, call.recording)
        return result


modes.ANOMALY.handler = _Notes()


def note_end(node: Any, edge: Any) -> None:
    """Record that the backward of `node` returned no gradient for `edge`."""
    cut = Cut(node.name(), "its backward returned None for this input", node.describe_origin())
    for leaf in leaves_of([edge]):
        _add(CUTS_TO, leaf, cut)


def without_cuts(forward: Callable[..., Any], edges: Any) -> Callable[..., Any]:
    """Wrap the `forward` of a custom function. Cuts inside it are not recorded for the leaves of `edges`."""
    covered = {id(leaf) for leaf in leaves_of(edges)}

    def run(*args: Any) -> Any:
        before, modes.STATE.covered = modes.STATE.covered, modes.STATE.covered | covered
        try:
            return forward(*args)
        finally:
            modes.STATE.covered = before

    return run


def elements(value: Any) -> Any:
    """Return the elements of a tensor, or of the whole batch of a batched tensor, as a dense array."""
    while hasattr(value, "level"):
        value = value.value
    array = to_dense(value._array if isinstance(value, Tensor) else value)
    return array if isinstance(array, numpy.ndarray) else numpy.asarray(array)


def note_cut(name: str, reason: str, sources: list[Tensor], outputs: list[Tensor], line: str | None = None) -> None:
    """Record that `outputs` were computed from `sources` without a path for gradients."""
    cut = Cut(name, reason, line or _line())
    for output in outputs:
        CUT_BEFORE.put(output, cut)
    for leaf in leaves_of([tensor if tensor._edge is LEAF else tensor._edge for tensor in sources]):
        if id(leaf) not in modes.STATE.covered:
            _add(CUTS_TO, leaf, cut)


def leaves_of(edges: list[Any], most: float = LARGEST_SEARCH) -> list[Tensor]:
    """Return the leaves that `edges` lead to. After `most` nodes the search stops."""
    leaves: dict[int, Tensor] = {}
    seen: set[Any] = set()
    stack = list(edges)
    while stack and len(seen) < most:
        edge = stack.pop()
        if edge is not None and type(edge) is not tuple:
            leaves[id(edge)] = edge
        elif edge is not None and edge[0] not in seen:
            seen.add(edge[0])
            stack.extend(edge[0]._edges)
    return list(leaves.values())


def _reason(outputs: list[Tensor]) -> str:
    if not modes.is_grad_enabled():
        return (
            "gradients were switched off (inference_mode)"
            if modes.STATE.inference
            else "gradients were switched off (no_grad)"
        )
    if outputs and not can_require_grad(outputs[0]._array):
        return f"the result is {outputs[0].dtype}, which has no gradient"
    return "the operation has no derivative"


def _line() -> str:
    frame = origin.user_frame(2)
    return origin.describe(frame.f_code, frame.f_lasti)


def _add(notes: Notes[list[Any]], tensor: Tensor, note: Any) -> None:
    held = notes.get(tensor)
    if held is None:
        held = []
        notes.put(tensor, held)
    if note not in held and len(held) < MOST_NOTES:
        held.append(note)
