"""The choice of the steps of a call, by all that determines its result except numbers. Operators cache their plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy import ndarray

from .. import dtypes
from .._runtime.first_use import unwatched
from ..kernels.runtime.lazy_conj import LazyConjNeg
from ..kernels.runtime.meta_array import Meta, Unread
from ..kernels.runtime.narrow_array import is_narrow
from ..kernels.runtime.sparse_array import SparseArray
from ..tape import modes, views
from ..tape.interpreters import tensors_in
from ..tensor import Tensor
from .arguments import bind, check_operands
from .array_classes import DENSE, Dense
from .declaration import Operator
from .kinds import Kind, dtypes_of, each_of, kind_of
from .meta import META
from .narrow import NARROW
from .plan import FUNCTION, IN_PLACE, IN_PLACE_VIEW, OUT, Plan, Step
from .sparse_layouts import SPARSE
from .steps.compute import Compute, Conjugate, LayOut, Place, Round
from .steps.promote import Check, Promote, unusual_values
from .steps.record import Edges, Record
from .steps.wrap import Mark, View, Wrap
from .steps.write import Decide, Overwrite, Repoint, Target, WriteOut


@unwatched
def planned(op: Operator, way: str, kinds: tuple[Kind, ...] = (), *, inference: bool = False, caller: int = 1) -> Plan:
    """Return the plan for operands of these kinds or, without kinds, for plain tensors, in `inference` mode or not."""
    plan = Plan(op, way, dict(zip(op.tensor_positions, kinds, strict=False)), inference, caller)
    plan.arrays = class_of(kinds)
    plan.target, plan.rounded = dtypes_of(op, plan.kinds.values())
    if plan.arrays is DENSE and plan.target is not None and plan.target.roles:
        plan.arrays = NARROW
    reading = (
        (Target, way in (IN_PLACE, IN_PLACE_VIEW)),
        (Decide, way == OUT and op.out_decides),
        (Check, op.check is not None or op.constants or not kinds or unusual_values(op)),
        (Promote, True),
        (Place, way == OUT or (plan.arrays is META and way not in (IN_PLACE, IN_PLACE_VIEW))),  # a change checks
    )
    plan.take([step(plan) for step, is_taken in reading if is_taken], steps_after_reading(plan))
    return plan


def steps_after_reading(plan: Plan) -> list[Step]:
    """Return the steps after the arguments have been read."""
    op, way, arrays = plan.op, plan.way, plan.arrays
    if way == IN_PLACE:
        return [Overwrite(plan)]
    steps: list[Step] = [Compute(plan)]
    if op.view and plan.kinds and issubclass(plan.kinds[0][0], LazyConjNeg):
        steps.append(Conjugate(plan))
    if way == IN_PLACE_VIEW:
        return [*steps, Repoint(plan)]
    if arrays.has_layout and (plan.rounded is not None or (op.wide_numbers and not plan.kinds)):
        steps.append(Round(plan))
    if way == OUT:
        return [*steps, WriteOut(plan)]
    if (op.operands or op.operand) and arrays.has_layout:
        steps.append(LayOut(plan))
    if plan.inference:
        return [*steps, *([View(plan)] if op.view and arrays.has_views else [Wrap(plan), Mark(plan)])]
    steps += [Edges(plan), View(plan) if op.view and arrays.has_views else Wrap(plan)]
    if op.differentiable:
        steps.append(Record(plan))
    return steps


def plan_of(op: Operator, args: Any, way: str = FUNCTION) -> Plan:
    """Return the plan for a call with `args`, in the order of the declaration, or raise the errors about the operands."""
    kinds: tuple[Kind, ...] = ()
    for position in op.tensor_positions:
        value = args[position]
        if type(value) is Tensor and (value._extra is None or value._extra.number is None):
            array = value._array
            kinds += ((type(array), array.dtype, array.ndim > 0),)
        else:
            kinds += (kind_of(value),)
    for name in op.lists:
        kinds += (frozenset([kind_of(tensor) for tensor in tensors_in((args[op.names.index(name)],))]),)
    key = (way, dtypes.get_default_dtype(), inference := bool(modes.FLAGS.special) and modes.STATE.inference, kinds)
    plan = op.plans.get(key)
    if plan is None:
        bind(op, args)
        if way in (IN_PLACE, IN_PLACE_VIEW):
            views.check_inplace(args[0])
        check_operands(op, args)
        try:
            plan = planned(op, way, kinds, inference=inference, caller=1 + (op.caller if way in (FUNCTION, OUT) else 1))
        except (RuntimeError, TypeError):
            if op.check is not None:  # the check comes first
                op.check(*args)
            raise
        op.plans[key] = plan
    return plan


def class_of(kinds: Iterable[Kind]) -> Dense:
    """Return the class of the first array that is not dense, or `DENSE` if all arrays are dense."""
    for kind in each_of(kinds):
        if type(kind) is not tuple or kind[0] is ndarray:
            continue
        holder, dtype, _ = kind
        if holder is Unread:  # a batch that no interpreter has handled: this thread runs outside of its `vmap`
            raise Unread.error(Unread.refusal)
        if holder is Meta:
            return META
        if holder is SparseArray:
            return SPARSE
        if is_narrow(dtype):
            return NARROW
    return DENSE
