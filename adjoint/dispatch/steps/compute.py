"""The steps that call the kernel, round its results, and give them the memory layout of the operands."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy
from numpy import ndarray

from ...codegen import compiled_ufuncs
from ...codegen.acceleration import LOOPS
from ...kernels.runtime.costs import PASSES
from ...kernels.runtime.floating import unwarned
from ...kernels.runtime.layout import laid_out
from ...kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits, without_lazy_bits
from ...kernels.runtime.meta_array import zeros
from ...tensor import as_array
from ..array_classes import DENSE
from ..declaration import ARRAY, OPTIONAL_ARRAY, VALUE, Operator
from ..plan import OUT, Call, Plan, Step
from ..source import block, function, guard, indented, public_name
from .promote import chooses_by_dtype, no_floats, promotes


class Place(Step):
    """Refuse operands, or an `out`, on the wrong device. Straight-line code accepts no such operands, and `WriteOut` checks."""

    def run(self, call: Call) -> None:
        """Let the class of arrays check the arrays."""
        self.plan.arrays.check(self.plan, call)

    def __str__(self) -> str:
        return f"check      {'out' if self.plan.way == OUT else 'devices'}"


class Compute(Step):
    """Call the kernel."""

    def run(self, call: Call) -> None:
        """Let the class of arrays compute the results, or read them from the results of an earlier run."""
        plan = self.plan
        if call.cache is None or plan.arrays is not DENSE:
            results = plan.arrays.compute(plan, call.arrays)
        else:
            results = call.cache.compute(self.op, call.given, lambda: DENSE.compute(plan, call.arrays))
        if type(results) is ndarray and results.dtype.isbuiltin == 1:
            call.several, call.results = False, [results]
        else:
            call.several = several = isinstance(results, (tuple, list))
            call.results = [as_array(result) for result in (results if several else (results,))]

    def lines(self, leave: str) -> list[str]:
        """Call the form of the kernel for these arrays. With `out`, `WriteOut` calls it."""
        op = self.op
        if self.plan.way == OUT:
            return []
        lines = [*block("try:", kernel_lines(op)), *or_leave(leave)]
        if op.outputs:
            return [*lines, f"{', '.join(f'{name}_array' for name in op.outputs)} = array"]
        if not (op.view or op.many):
            lines += ["if type(array) is not ndarray:", "    array = asarray(array)"]
        return lines

    def __str__(self) -> str:
        return f"compute    {self.op.kernel.name or self.op.name}{self.plan.arrays.words}"


class Round(Step):
    """Round float32 results to a half-precision type, because numbers are not rounded before the computation."""

    def run(self, call: Call) -> None:
        """Convert the result."""
        with unwarned():
            call.results[0] = call.results[0].astype(self.plan.rounded.numpy, copy=False)

    def lines(self, leave: str) -> list[str]:
        """Convert the result if promotion requires it. With `out`, `WriteOut` does this."""
        return [] if self.plan.way == OUT else rounding_lines(self.op)

    def __str__(self) -> str:
        return f"round      to {self.plan.rounded.name}"


class Conjugate(Step):
    """Mark views of an array that is conjugated or negated when it is read, so that they are read in the same way."""

    def run(self, call: Call) -> None:
        """Mark the views."""
        bits = lazy_bits_of(call.args[0]._array)
        call.results = [with_lazy_bits(result, bits) for result in call.results]

    def __str__(self) -> str:
        return "conjugate  when elements are read, as self"


class LayOut(Step):
    """Give the result PyTorch's memory layout."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        names = self.op.operands or self.op.tensors[:1]
        self.positions = tuple([self.op.names.index(name) for name in names])

    def run(self, call: Call) -> None:
        """Copy the result if it has another memory order."""
        result = call.results[0]
        if result.ndim > 1:
            operands, args = [], call.args
            for position in self.positions:
                if args[position] is not None:
                    array = args[position]._array
                    operands.append(array if type(array) is ndarray else without_lazy_bits(zeros(array)))
            call.results[0] = laid_out(result, operands)

    def lines(self, leave: str) -> list[str]:
        """Copy the result if the operands may have another memory order."""
        return layout_lines(self.op, f"{self.op.outputs[0]}_array" if self.op.outputs else "array")

    def __str__(self) -> str:
        return f"lay out    as {', '.join(self.op.names[position] for position in self.positions)}"


# --- straight-line code -------------------------------------------------------------------------------------------------


def or_leave(leave: str, struck: Iterable[str] = ()) -> list[str]:
    """Return an `except` that executes `leave` if a kernel has refused its arguments, and otherwise `struck`."""
    return [
        "except BaseException as error:",
        "    if not is_refusal(error):",
        *(f"        {line}" for line in struck),
        "        raise",
        f"    {leave}",
    ]


def passed_arguments(op: Operator, *, dtypes_of_numpy: bool = False) -> list[str]:
    """Return the arguments of the kernel call. `dtypes_of_numpy`: whether dtypes have been converted to NumPy's."""
    passed = []
    for name in op.names:
        value = public_name(name) if op.kinds[name] == VALUE else f"{name}_array"
        if op.types.get(name) == "Dtype" and not dtypes_of_numpy:
            value += f" and {value}.numpy"
        if op.types.get(name) == "Dims":
            value = f"(tuple({value}) if type({value}) is list else {value})"
        passed.append(f"{name}={value}" if name in op.keyword_only else value)
    return passed


def kernel_lines(op: Operator, arguments: list[str] | None = None) -> list[str]:
    """Return the call of the kernel, by its small form if possible. `generated._BASE` concerns warnings of ufuncs."""
    kernel, passed = op.kernel, ", ".join(arguments or passed_arguments(op))
    general = form_lines(op, "general", passed)
    if kernel.small is None:
        return [*order_lines(op), *general]
    conditions = [] if kernel.limit is None else [f"{op.tensors[0]}_array.size <= {kernel.limit}"]
    conditions += of_floats(op)
    if not kernel.small_takes(op.keyword_only):
        passed = ", ".join(f"{name}_array" for name in op.tensors)
        conditions += with_defaults(op)
    return [*order_lines(op), *choice(conditions, form_lines(op, "small", passed), general)]


def of_floats(op: Operator) -> list[str]:
    """Return the condition that the first array is float32 or float64, if the small form is chosen only for these."""
    return ["({0}.dtype is FLOAT32 or {0}.dtype is FLOAT64)".format(f"{op.tensors[0]}_array")] * chooses_by_dtype(op)


def form_lines(op: Operator, name: str, passed: str) -> list[str]:
    """Return the call of a form of the kernel."""
    form, call = getattr(op.kernel, name), f"{name}({passed})"
    if turns(op, form):
        turned = f"{name}({', '.join(f'{each}.T' for each in passed.split(', '))}).T"
        call = f"{call} if contiguous or not are_turned({passed}) else {turned}"
    return by_size(op, form, quietly(op, form, f"array = {call}"), passed)


def turns(op: Operator, form: Any) -> bool:
    """Return whether a form is a ufunc of two arrays. Its result gets the memory order of the first array (see `are_turned`)."""
    return isinstance(form, numpy.ufunc) and form.nin == 2


def order_lines(op: Operator) -> list[str]:
    """Return the line that finds the order of the first array, if a form of the kernel needs it."""
    if not (turns(op, op.kernel.general) or turns(op, op.kernel.small)):
        return []
    return [f"contiguous = {op.tensors[0]}_array.flags.c_contiguous"]


def by_size(op: Operator, form: Any, lines: list[str], passed: str, target: str = "") -> list[str]:
    """Return `lines`, which call a ufunc, or its compiled loops for large arrays."""
    large = compiled_ufuncs.large(form) if isinstance(form, numpy.ufunc) else None
    if large is None:
        return lines
    name = f"LARGE[{form.__name__!r}]"
    call = f"{name}.into({passed}, {target})" if target else f"array = {name}.direct({passed})"
    limit = 0 if LOOPS.every_size else large.elements
    first, *others = (f"{tensor}_array" for tensor in op.tensors)
    wide = f"({first}.size < {PASSES} or {first}.dtype not in HALVES)"  # NumPy converts each number
    if large.halves < PASSES:
        wide = f"({first}.size < {large.halves} or {first}.dtype is not HALVES[0] and {wide})"  # float16
    few = f"{first}.size < {limit} and {wide}"
    if others and not target:  # two small arrays may be broadcast to a large one
        (second,) = others
        size = f"({first}.size if {first}.shape == {second}.shape else broadcast({first}, {second}).size)"
        root = math.isqrt(limit)  # usually both are smaller, which is faster to test than the product
        few = f"{first}.size < {root} > {second}.size or ({first}.size * {second}.size < {limit} or {size} < {limit}) and {wide}"
    return [*block(f"if {few}:", lines), *block("else:", [call])]


def with_defaults(op: Operator) -> list[str]:
    """Return the conditions that all keyword parameters have their defaults."""
    return [f"{name} is default_{name}" for name in op.names if name in op.keyword_only]


def choice(conditions: list[str], first: list[str], second: list[str]) -> list[str]:
    """Return the `first` lines if all conditions hold, otherwise the `second` lines."""
    return [*block(f"if {' and '.join(conditions)}:", first), *block("else:", second)] if conditions else first


def quietly(op: Operator, form: Any, line: str) -> list[str]:
    """Return `line`, which calls a form of the kernel, with NumPy's floating-point warnings disabled if it may cause any."""
    if op.view or op.kernel.is_quiet(form):
        return [line]
    return ["token = WARNINGS[OFF]", "try:", f"    {line}", "finally:", "    restore(token)"]


def computing_source(op: Operator) -> str:
    """Return the source of the kernel call as a function of any arrays and values, for the slow path."""
    parameters = [public_name(name) if op.kinds[name] == VALUE else f"{name}_array" for name in op.names]
    passed = passed_arguments(op, dtypes_of_numpy=True)
    arrays = [f"{name}_array" for name in op.tensors if op.kinds[name] == ARRAY]
    unfit = [] if op.sequence else [f"type({name}_array) is not ndarray" for name in op.tensors]
    unfit += [f"{arrays[0]}.dtype is not {other}.dtype" for other in arrays[1:]]
    unfit += no_floats(op)
    general = ["with unwarned():", f"    return any_size({', '.join(passed)})"]
    lines = general
    if op.kernel.small is not None or isinstance(op.kernel.general, numpy.ufunc):
        # The general form may accept arguments that the small form rejects.
        refused = ["    if not is_refusal(error):", "        raise", *indented(general)]
        tried = [*block("try:", kernel_lines(op, passed)), "except BaseException as error:", *refused]
        lines = [*guard(unfit, *general), *tried, "return array"]
    return function("computing", ", ".join(parameters), lines)


def rounding_lines(op: Operator) -> list[str]:
    """Return the lines that round the result if numbers have been used without rounding."""
    rounding = ("with unwarned():", "    array = array.astype(rounded)")
    return guard(["rounded is not None"], *rounding) if op.wide_numbers else []


def layout_lines(op: Operator, result: str) -> list[str]:
    """Return the lines that preserve the memory order of an operand that is not row-major, or of a second operand that is a view.

    NumPy's order equals PyTorch's if the first operand is row-major and the second is not a view. For a ufunc of one
    operand, the orders are also equal, unless the operand is a view with repeated elements.
    """
    names = (op.operand,) if op.operand else op.operands
    given = [f"{public_name(name)}._array" if promotes(op) else f"{name}_array" for name in names]
    if op.operand:
        of_ufunc = isinstance(op.kernel.general, numpy.ufunc) and not op.outputs
        otherwise = f"{public_name(op.operand)}._base is not None" if of_ufunc else f"not {given[0]}.flags.c_contiguous"
        condition = f"{otherwise} and {result}.strides != {given[0]}.strides"
        return [f"if {condition}:", f"    {result} = laid_out({result}, ({given[0]},))"]
    arrays = [f"{name}_array" for name in op.operands]
    optional = any(op.kinds[name] == OPTIONAL_ARRAY for name in op.operands)
    if len(arrays) > 2 or optional:
        others = [
            f"{array}.flags.c_contiguous"
            if op.kinds[name] == ARRAY
            else f"({array} is None or {array}.flags.c_contiguous)"
            for name, array in zip(op.operands, arrays, strict=True)
        ]
        condition = f"not ({' and '.join(others)})"
    else:
        first, second = arrays[0], public_name(op.operands[1])
        condition = (
            f"not {'contiguous' if order_lines(op) else f'{first}.flags.c_contiguous'} or {second}._base is not None"
        )
    return [f"if {condition}:", f"    {result} = laid_out({result}, ({', '.join(given)}))"]
