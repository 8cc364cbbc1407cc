"""The steps that make tensors from arrays, and views of tensors."""

from __future__ import annotations

import re

from ...tape import modes, views
from ...tape.inference_tensors import mark_inference
from ...tape.node import NOWHERE
from ...tape.versions import shared_counter
from ...tensor import Tensor, can_require_grad, wrap
from ..declaration import Operator
from ..plan import Call, Step
from ..source import block
from .record_lines import RECORDING


class Wrap(Step):
    """Make tensors of the results."""

    def run(self, call: Call) -> None:
        """Wrap each array."""
        finished, results = self.plan.arrays.finished, call.results
        call.outputs = [*map(wrap, results if finished is None else finished(self.op, results))]

    def lines(self, leave: str) -> list[str]:
        """Return the lines that wrap each array without calling a function."""
        return self._each(["result._base = result._counter = None"], "None")

    def _each(self, further: list[str], unrecorded: str) -> list[str]:
        """Return a few lines that make each tensor, and the `further` lines."""
        op = self.op
        made = ["result = new_tensor()", "result._array = array", "result._grad = result._extra = None", *further]
        if op.many:
            edge = f"result._edge = {unrecorded}"
            each = [line.replace("= array", "= item") for line in [*made, edge, "results.append(result)"]]
            return ["results = []", *block("for item in array:", each)]
        made += [] if op.differentiable and not self.plan.inference else ["result._edge = None"]
        if not op.outputs:
            return made
        return [
            re.sub(r"\bresult\b", name, line).replace("= array", f"= {name}_array")
            for name in op.outputs
            for line in made
        ]

    def __str__(self) -> str:
        return f"wrap       {', '.join(self.op.outputs) or ('each result' if self.op.many else 'the result')}"


class Mark(Step):
    """Make the results inference tensors."""

    def run(self, call: Call) -> None:
        """Mark every result."""
        for output in call.outputs:
            mark_inference(output)

    def lines(self, leave: str) -> list[str]:
        """Return the lines that mark every result."""
        if self.op.many:
            return block("for result in results:", ["mark_inference(result)"])
        return [f"mark_inference({name})" for name in self.op.outputs or ("result",)]

    def __str__(self) -> str:
        return "mark       as inference tensors"


class View(Wrap):
    """Make views of the results: tensors that share memory, version counter and history with the first argument."""

    def run(self, call: Call) -> None:
        """Wrap each array, and connect it to the base."""
        super().run(call)
        make_views(self.op, call)

    def lines(self, leave: str) -> list[str]:
        """Return the lines that connect each view to its base. `Edges` has found the base."""
        if self.plan.inference:
            return self._in_inference()
        further = ["base = base", "counter = counter", "view_version = counter[0]", "creation = creation"]
        lines = self._each([f"result._{line}" for line in further], "unrecorded")
        if self.op.many:
            first = [f"creation = MULTI_OUTPUT if {RECORDING} else creation_unrecorded(creation)"]
            return [*first, "unrecorded = None if base._edge is None else NOWHERE", *lines]
        return lines

    def _in_inference(self) -> list[str]:
        """Return lines that mark views of inference tensors as inference tensors. Other views require grad if their base does."""
        further = ["base = base", "counter = counter", "view_version = counter[0]", "creation = INFERENCE"]
        viewed = [
            "base = input if input._base is None else input._base",
            "counter = shared_counter(input)",
            "unrecorded = None if base._edge is None else NOWHERE",
            *self._each([f"result._{line}" for line in further], "unrecorded"),
        ]
        if not self.op.many:
            viewed.append("result._edge = unrecorded")
        own = [*self._each(["result._base = result._counter = None"], "None"), *Mark(self.plan).lines("")]
        return [*block("if input._extra is not None and input._extra.inference:", own), *block("else:", viewed)]

    def __str__(self) -> str:
        return f"view       {self.op.names[0]}"


def make_views(op: Operator, call: Call) -> None:
    """Make the outputs views of the first argument."""
    source = call.args[0]
    for output in call.outputs:
        make_view(output, source, call.recording, views.MULTI_OUTPUT if call.several else None)
        if modes.STATE.view_replay and not call.several:
            views.note_making(output, source, (op, tuple(call.args[1:])))


def make_view(view: Tensor, source: Tensor, recording: bool, creation: str | None) -> None:
    """Make `view`, on the memory of `source`, a view of the base of `source`."""
    if source._extra is not None and source._extra.inference:
        mark_inference(view)  # an inference tensor has no history, neither its own nor that of a base
        return
    view._base = source if source._base is None else source._base
    view._counter = shared_counter(source)
    view._view_version = view._counter[0]
    inherited = None if source._base is None else source._creation
    if modes.STATE.inference:
        creation = views.INFERENCE
    elif not modes.is_recording():
        creation = views.creation_unrecorded(inherited)
    elif creation is None:
        creation = inherited
    view._creation = creation
    if not recording and view._base._edge is not None and can_require_grad(view._array):
        view._edge = NOWHERE  # it requires grad like its base, although the view was not recorded
