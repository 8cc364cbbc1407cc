"""The steps that check the arguments, and convert tensors and numbers to arrays of one dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Any

import numpy

from ... import dtypes
from ...codegen.backend import NUMPY
from ...codegen.kernel import FLOATS
from ...kernels.memory.copying import convert
from ...kernels.runtime.costs import THREADED
from ...kernels.runtime.floating import quietly
from ...kernels.runtime.lazy_conj import LazyConjNeg, materialize, without_lazy_bits
from ...kernels.runtime.meta_array import Unread
from ...tape import modes
from ...tape.edges import current_edge, edge_of
from ...tensor import LEAF, PLAIN_TYPES, Tensor, ndarray
from ..arguments import is_number
from ..codes import frequent_lines
from ..constants import constant_tensor
from ..declaration import ARRAY, OPTIONAL_ARRAY, Operator
from ..kinds import Kind, each_of, is_of, kind_of, result_dtype
from ..plan import IN_PLACE, IN_PLACE_VIEW, OUT, Call, Plan, Step
from ..source import guard, public_name

FLOAT32, FLOAT64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)


class Check(Step):
    """Refuse arguments that the `check` of the declaration rejects, and inputs that require grad but have no derivative."""

    def run(self, call: Call) -> None:
        """Raise the errors of the checks."""
        op = self.op
        if op.check is not None:
            op.check(*call.args)
        for name, function in op.constants.items():
            check_constant(function, name, call.args[op.names.index(name)])

    def lines(self, leave: str) -> list[str]:
        """Return the tests that the arguments are tensors of plain types, or numbers."""
        op, numbers = self.op, number_lines(self.op)
        given = ", ".join(map(public_name, op.names))
        checks = [f"OP.check({given})"] if op.check is not None and (self.plan.kinds or self.plan.way == OUT) else []
        if self.plan.kinds:
            return [*guard(unusual_values(op), leave), *checks]
        lines = guard(unusual_types(op), leave)
        if numbers:  # two `Tensor`s pass in one test
            lines = guard([f"type({public_name(name)}) is not Tensor" for name in op.tensors], *numbers, *lines)
        inputs = [] if self.plan.inference else unusual_inputs(op)
        return [*lines, *guard([*inputs, *unusual_values(op)], leave), *checks]

    def __str__(self) -> str:
        refused = ["wrong arguments"] if self.op.check is not None else []
        return f"check      {', '.join([*refused, *(f'{name} requires no grad' for name in self.op.constants)])}"


def check_constant(function: str, name: str, value: Tensor | None) -> None:
    """Raise an error if `value` requires grad, because the operator has no derivative for this argument."""
    if value is not None and value.requires_grad and modes.is_recording():
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have "
            "requires_grad True."
        )


class Promote(Step):
    """Make the arguments of the kernel: the arrays of tensors, in one dtype if the operator promotes."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        op, target = self.op, plan.target
        self.numbers: list[tuple[int, Any]] = []
        self.read: list[tuple[int, Callable[[Any], Any]]] = [
            (position, numpy_dtype) for position, name in op.typed if op.types[name] == "Dtype"
        ]
        for position, kind in plan.kinds.items():
            if isinstance(kind, frozenset):
                self.read.append((position, reading_each(op, kind, target)))
            elif type(kind) is tuple:
                self.read.append((position, reading(op, kind, target)))
            elif kind is not NoneType:
                self.numbers.append((position, target or dtypes.dtype_of_numbers(kind)))
                self.read.append((position, attrgetter("_array")))
        plan.readers = dict(self.read)

    def run(self, call: Call) -> None:
        """Replace numbers by constants, and read the arrays."""
        args = call.args
        for position, kind in self.numbers:
            args[position] = constant_tensor(args[position], kind)
        call.arrays = arrays = args.copy()
        for position, read in self.read:
            arrays[position] = read(args[position])

    def lines(self, leave: str) -> list[str]:
        """Return the lines that read the arrays, and convert them if their dtypes differ."""
        op, overwritten = self.op, self.plan.way == IN_PLACE
        if self.plan.kinds:
            return [*([] if self.plan.inference else guard(unusual_inputs(op), leave)), *self._lines_of_kinds()]
        lines = [*array_lines(op), *guard(unfit_arrays(op), leave), *mixed_lines(op, self.plan.way, leave)]
        if promotes(op) and overwritten:
            lines.append(f"{written(op)} = {op.tensors[0]}_array")
        return [*lines, *(["rounded = None"] if op.wide_numbers else []), *guard(no_floats(op, overwritten), leave)]

    def _lines_of_kinds(self) -> list[str]:
        op = self.op
        if op.sequence is not None:
            position = op.names.index(op.sequence)
            return [f"{op.sequence}_array, edges = READ[{position}]({op.sequence}), edges_of({op.sequence})"]
        lines = [f"{op.names[position]}_array = None" for position, kind in self.plan.kinds.items() if kind is NoneType]
        numbers, read = dict(self.numbers), dict(self.read)
        for name in op.tensors:
            position, public = op.names.index(name), public_name(name)
            if position in numbers:
                lines.append(f"{public} = constant_tensor({public}, PLAN.target)")
            if self.plan.kinds[position] is not NoneType:
                plain = type(read[position]) is attrgetter
                lines.append(
                    f"{name}_array = {public}._array" if plain else f"{name}_array = READ[{position}]({public})"
                )
        if promotes(op) and self.plan.way == IN_PLACE:
            lines.append(f"{written(op)} = {public_name(op.tensors[0])}._array")
        rounded = self.plan.rounded and "PLAN.rounded.numpy"
        return [*lines, *([f"rounded = {rounded}"] if op.wide_numbers else [])]

    def __str__(self) -> str:
        names, target = self.op.names, self.plan.target
        given = {names[position]: kind for position, kind in self.plan.kinds.items() if kind is not NoneType}
        converted = [name for name, kind in given.items() if target is not None and not is_of(kind, target.numpy)]
        if converted:
            return f"promote    {', '.join(converted)} to {target.name}"
        return f"read       {', '.join(given)}"


def with_constants(op: Operator, args: Any) -> list[Any]:
    """Return the arguments, with tensors in place of numbers that are operands."""
    given = list(args)
    for position in op.tensor_positions:
        value = args[position]
        if not isinstance(value, Tensor) and is_number(value):
            given[position] = constant_tensor(value, result_dtype(op, args) or dtypes.scalar_dtype(value))
    return given


def reading(op: Operator, kind: Kind, target: Any) -> Callable[[Tensor], Any]:
    """Return a function that converts a tensor of a kind to an argument of the kernel: its array, in the dtype `target`."""
    holder, dtype, _ = kind
    same = target is None or dtype == target.numpy
    if issubclass(holder, LazyConjNeg):
        kernel = NUMPY.kernel(op.name).general
        reads_lazy = isinstance(kernel, numpy.ufunc) or getattr(kernel, "reads_lazy", False)
        if not op.view and dtype.kind == "c" and same and reads_lazy:
            return attrgetter("_array")  # ufuncs convert the array themselves, large ones without a copy
        bare = without_lazy_bits if op.view else materialize
        return lambda tensor: prepared(bare(tensor._array), target)
    if same:
        return attrgetter("_array")
    if converts_silently(dtype, target):
        return lambda tensor: (
            array.astype(target.numpy) if (array := tensor._array).size < THREADED else convert(array, target.numpy)
        )
    return lambda tensor: prepared(tensor._array, target)


def converts_silently(source: Any, target: Any) -> bool:
    """Return whether NumPy converts arrays of dtype `source` to `target` without warnings, because no value is too large."""
    fits = source.kind in "biu" and target.numpy == FLOAT32
    return not target.roles and (fits or numpy.can_cast(source, target.numpy, "safe"))


def reading_each(op: Operator, kinds: Iterable[Kind], target: Any) -> Callable[[Any], Any]:
    """Return a function that converts a sequence of tensors of these kinds to an argument of the kernel."""
    readings = {kind: reading(op, kind, target) for kind in kinds}
    if len(readings) == 1:
        (read,) = readings.values()
        return lambda tensors: [read(tensor) for tensor in tensors]
    return lambda tensors: [readings[kind_of(tensor)](tensor) for tensor in tensors]


def numpy_dtype(value: Any) -> Any:
    """Return a dtype as NumPy's dtype, or None."""
    return value.numpy if isinstance(value, dtypes.dtype) else value


def prepared(array: Any, target: Any) -> Any:
    """Return `array` converted to the dtype `target`, unless `target` is None."""
    if target is None or array.dtype == target.numpy:
        return array
    if (array.size < THREADED and not target.roles) or isinstance(array, Unread):
        return quietly(array.astype, target.numpy)
    return convert(array, target.numpy)


# --- straight-line code -------------------------------------------------------------------------------------------------


def number_lines(op: Operator) -> list[str]:
    """Return lines that convert a number as second operand to a constant, or no lines if no number may be the second operand."""
    if op.sequence is not None or not op.numbers or len(op.tensors) != 2 or op.tensors[1] != "other":
        return []
    types = "SCALARS" if op.check is None else "NUMBERS"  # a check may refuse truth values
    return [f"if type(other) in {types}:", "    other = constant(other, input)"]


def unusual_types(op: Operator) -> list[str]:
    """Return the conditions on the types of the tensors that require the slow path."""
    unusual = []
    for name in op.tensors:
        public = public_name(name)
        given = f"{public} is not None and " if op.kinds[name] == OPTIONAL_ARRAY else ""
        unusual.append(f"({given}type({public}) is not Tensor and type({public}) not in PLAIN)")
    unusual += [
        f"type({public_name(name)}) is tuple" for name in op.lists
    ]  # its tensors may have a class that overrides
    return unusual


def unusual_values(op: Operator) -> list[str]:
    """Return the conditions on flags and fractions that require the slow path, because a kernel may accept wrong types."""
    unusual = []
    for name, kind in op.types.items():
        value = public_name(name)
        if kind == "Bool":
            unusual.append(f"({value} is not False and {value} is not True)")
        elif kind == "Float":
            unusual.append(f"(type({value}) not in NUMBERS and {value} is not None)")
    return unusual


def unusual_inputs(op: Operator) -> list[str]:
    """Return the other conditions on the tensors."""
    unusual = [
        f"({name} is not None and ({name}._edge if {name}._base is None else current_edge({name})) is not None)"
        for name in map(public_name, op.constants)
    ]
    if op.view and op.tensors[0] == "self":
        unusual.append("(input._extra is not None and input._extra.inference)")
    return unusual


def array_lines(op: Operator) -> list[str]:
    """Return the lines that read the arrays of the tensors, and the edges of a sequence."""
    if op.sequence is not None:
        return [f"{op.sequence}_array, edges = plain_sequence({op.sequence})"]
    lines = []
    for name in op.tensors:
        none = f"None if {public_name(name)} is None else " if op.kinds[name] == OPTIONAL_ARRAY else ""
        lines.append(f"{name}_array = {none}{public_name(name)}._array")
    return lines


def unfit_arrays(op: Operator) -> list[str]:
    """Return the conditions on the classes and dtypes of arrays under which the kernel must not run."""
    if op.sequence is not None:
        return [f"{op.sequence}_array is None"]
    arrays = [f"{name}_array" for name in op.tensors if op.kinds[name] == ARRAY]
    unfit = [f"type({array}) is not ndarray" for array in arrays]
    unfit += [
        f"({name}_array is not None and type({name}_array) is not ndarray)"
        for name in op.tensors
        if op.kinds[name] == OPTIONAL_ARRAY
    ]
    if (op.promote or op.kernel.expression is not None) and not promotes(op):
        unfit += [f"{arrays[0]}.dtype is not {other}.dtype" for other in arrays[1:]]
    return unfit


def promotes(op: Operator) -> bool:
    """Return whether the straight-line code promotes the arrays of all tensors to one dtype. No tensor may be optional."""
    return bool(op.promote) and op.sequence is None and all(op.kinds[name] == ARRAY for name in op.tensors)


def written(op: Operator) -> str:
    """Return the name of the array that is written in place: the first array before promotion."""
    return "target_array" if promotes(op) else f"{op.tensors[0]}_array"


def mixed_lines(op: Operator, way: str, leave: str) -> list[str]:
    """Return the lines that run the code of such calls for arrays that must be converted, or `leave` if there is no code."""
    if not promotes(op):
        return []
    first, *others = [f"{name}_array" for name in op.tensors if op.kinds[name] == ARRAY]
    mixed = [f"{first}.dtype is not {other}.dtype" for other in others]
    if op.promote == "float":
        mixed.append(f"({first}.dtype is not FLOAT32 and {first}.dtype.kind in 'biu')")
    result = "code({}, out)" if way == OUT else "code({})"
    return guard(mixed, *frequent_lines(op, repr(way), result=result), leave)


def no_floats(op: Operator, overwritten: bool = False) -> list[str]:
    """Return the condition that the first array is neither float32 nor float64, if the kernel has forms only for these."""
    has = (op.promote == "float" or op.kernel.dtypes == FLOATS) and (overwritten or not chooses_by_dtype(op))
    return ["({0}.dtype is not FLOAT32 and {0}.dtype is not FLOAT64)".format(f"{op.tensors[0]}_array")] if has else []


def chooses_by_dtype(op: Operator) -> bool:
    """Return whether the general form may replace the small form, for arrays of dtypes that the small form does not support."""
    return (op.kernel.dtypes == FLOATS or op.promote == "float") and op.check is None and not op.outputs


def edges_of(items: Any) -> tuple[Any, ...] | None:
    """Return the edges of a sequence of tensors, if there are any."""
    edges = tuple([edge_of(item) for item in items])
    return edges if any(edge is not None for edge in edges) else None


def plain_sequence(items: Any) -> tuple[list[Any] | None, tuple[Any, ...] | None]:
    """Return the arrays of a sequence of plain tensors of one dtype, and their edges, or None for other sequences."""
    if type(items) is not list and type(items) is not tuple:
        return None, None
    arrays: list[Any] = []
    edges: list[Any] = []
    kind = recorded = None
    for item in items:
        if type(item) is not Tensor and type(item) not in PLAIN_TYPES:
            return None, None
        array = item._array
        if array.dtype is not kind or type(array) is not ndarray:
            if type(array) is not ndarray or kind is not None:
                return None, None
            kind = array.dtype
        arrays.append(array)
        edge = item._edge if item._base is None else current_edge(item)
        if edge is LEAF:
            recorded = edge = item
        elif edge is not None:
            recorded = edge
        edges.append(edge)
    return arrays, None if recorded is None else tuple(edges)


def reads_plainly(plan: Plan) -> bool:
    """Return whether straight-line code can be printed for operands of the kinds of a plan."""
    op, target = plan.op, plan.target
    tensors = [kind for kind in each_of(plan.kinds.values()) if type(kind) is tuple]
    if any(kind[0] is not ndarray for kind in tensors) or (plan.inference and plan.way == IN_PLACE_VIEW):
        return False
    if target is None and any(isinstance(kind, type) and kind is not NoneType for kind in plan.kinds.values()):
        return False  # a number that does not take part in promotion
    if op.sequence is not None or not op.tensors:
        return True
    given = {kind[1] for kind in tensors} | ({target.numpy} if target is not None else set())
    if len(given) > 1 and not promotes(op) and (op.promote or op.kernel.expression is not None):
        return False
    first = plan.kinds[op.names.index(op.tensors[0])]
    computed = first[1] if target is None and type(first) is tuple else target and target.numpy
    if no_floats(op, plan.way == IN_PLACE) and computed not in (FLOAT32, FLOAT64):
        return False
    return plan.way != IN_PLACE or target is None or castable((plan.rounded or target).numpy, first[1])


@cache
def castable(source: Any, target: Any) -> bool:
    """Return whether kernels may write a result of NumPy's dtype `source` to an array of dtype `target`."""
    kinds = dtypes.from_numpy(source), dtypes.from_numpy(target)
    return kinds[1].roles is None and dtypes.can_cast(*kinds)
