"""The plan of a call: the steps that an operator takes, found from what its result depends on besides numbers.

These are the classes of arrays, the dtypes, and whether there are dimensions: the key of a plan. An operator keeps the plans that
it has made. What it does is defined by the steps of its plans, and nowhere else; `print` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy import ndarray

from .. import dtypes
from ..kernels.runtime.lazy_conj import LazyConjNeg
from ..kernels.runtime.meta_array import Meta, Unread
from ..kernels.runtime.narrow_array import is_narrow
from ..kernels.runtime.sparse_array import SparseArray
from ..tape.interpreters import tensors_in
from ..tensor import Tensor
from .arguments import check_operands
from .array_classes import DENSE, Dense
from .declaration import Operator
from .kinds import Kind, described, dtypes_of, each_of, kind_of
from .meta import META
from .narrow import NARROW
from .sparse_layouts import SPARSE
from .steps import FUNCTION, IN_PLACE, IN_PLACE_VIEW, OUT, Call, Step
from .steps.compute import Compute, Conjugate, LayOut, Round
from .steps.promote import Check, Promote
from .steps.record import Edges, Pack, Record
from .steps.wrap import View, Wrap
from .steps.write import Overwrite, Repoint, WriteOut


class Plan:
    """What an operator does with calls of one kind."""

    __slots__ = ("acting", "arrays", "caller", "kinds", "op", "reading", "rounded", "steps", "target", "way")

    def __init__(self, op: Operator, way: str, kinds: tuple[Kind, ...] = (), *, caller: int = 1) -> None:
        """Without `kinds`, the plan for plain tensors on plain arrays, from which straight-line code is printed.

        `caller`: how many frames the user's call is above that code.

        Raises:
            RuntimeError, TypeError: if the dtypes have no common one.
        """
        self.op, self.way, self.caller = op, way, caller
        self.kinds = dict(zip(op.tensor_positions, kinds, strict=False))
        self.arrays = class_of(kinds)
        self.target, self.rounded = dtypes_of(op, self.kinds.values())
        if self.arrays is DENSE and self.target is not None and self.target.roles:
            self.arrays = NARROW
        reading: list[Step] = [Promote(self)]
        if op.check is not None or op.constants or not kinds:
            reading.insert(0, Check(self))
        acting = self._acting()
        self.steps = (*reading, *acting)
        self.reading, self.acting = tuple([each.run for each in reading]), tuple([each.run for each in acting])

    def _acting(self) -> list[Step]:
        """The steps after the arguments have been read."""
        op, way, arrays = self.op, self.way, self.arrays
        if way == IN_PLACE:
            return [Overwrite(self)]
        steps: list[Step] = [Compute(self)]
        if op.view and self.kinds and issubclass(self.kinds[0][0], LazyConjNeg):
            steps.append(Conjugate(self))
        if way == IN_PLACE_VIEW:
            return [*steps, Repoint(self)]
        if arrays.has_layout and (self.rounded is not None or (op.wide_numbers and not self.kinds)):
            steps.append(Round(self))
        if way == OUT:
            return [*steps, WriteOut(self)]
        if (op.operands or op.operand) and arrays.has_layout:
            steps.append(LayOut(self))
        steps += [Edges(self), View(self) if op.view and arrays.has_views else Wrap(self)]
        if op.differentiable:
            steps.append(Record(self))
            if op.saved_inputs or op.saved_results or op.lists:
                steps.append(Pack(self))
        return steps

    def run(self, call: Call) -> None:
        """Take all steps."""
        for step in self.reading:
            step(call)
        for step in self.acting:
            step(call)

    def prepare(self, call: Call) -> None:
        """Read the arguments."""
        for step in self.reading:
            step(call)

    def act(self, call: Call) -> None:
        """Take the steps after that."""
        for step in self.acting:
            step(call)

    def results_of(self, args: tuple[Any, ...]) -> Any:
        """What the kernel returns for arguments."""
        call = Call(args)
        self.prepare(call)
        return self.arrays.compute(self, call.arrays)

    def __str__(self) -> str:
        kinds = ", ".join(map(described, self.kinds.values()))
        return "\n    ".join([f"{self.op.name}{self.way}({kinds})", *map(str, self.steps)])


def plan_of(op: Operator, args: Any, way: str = FUNCTION) -> Plan:
    """The plan for a call with `args`, in the order of the declaration.

    Raises:
        TypeError: if an operand is no tensor, nor a number in the place of one.
        RuntimeError: if the dtypes of operands have no common one.
    """
    kinds: tuple[Kind, ...] = ()
    for position in op.tensor_positions:
        value = args[position]
        if type(value) is Tensor and value._extra is None:
            array = value._array
            kinds += ((type(array), array.dtype, array.ndim > 0),)
        else:
            kinds += (kind_of(value),)
    for name in op.lists:
        kinds += (frozenset([kind_of(tensor) for tensor in tensors_in((args[op.names.index(name)],))]),)
    key = (way, dtypes.get_default_dtype(), kinds)
    plan = op.plans.get(key)
    if plan is None:
        check_operands(op, args)
        try:
            plan = Plan(op, way, kinds)
        except (RuntimeError, TypeError):
            if op.check is not None:  # which refuses the arguments first
                op.check(*args)
            raise
        op.plans[key] = plan
    return plan


def class_of(kinds: Iterable[Kind]) -> Dense:
    """The class of the first array that is no dense one; `DENSE` if all are."""
    for kind in each_of(kinds):
        if type(kind) is not tuple or kind[0] is ndarray:
            continue
        holder, dtype, _ = kind
        if holder is Unread:  # of a batch: no interpreter has taken it, so that this thread runs outside of its `vmap`
            raise Unread.error(Unread.refusal)
        if holder is Meta:
            return META
        if holder is SparseArray:
            return SPARSE
        if is_narrow(dtype):
            return NARROW
    return DENSE
