"""The source that calls an operator's kernel: the conditions on the arrays, their promotion, the form."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..codegen import compiled_ufuncs
from ..codegen.acceleration import CONVERTED, LOOPS
from ..codegen.kernel import FLOATS
from .declaration import ARRAY, OPTIONAL_ARRAY, VALUE, Operator
from .source import block, guard, public_name


def unfit_arrays(op: Operator) -> list[str]:
    """The conditions on the classes of arrays, and on dtypes that nothing is promoted for, under which the kernel may not run.

    Arrays on `meta`, and arrays with lazy conjugation or negation, are instances of subclasses.
    """
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
    """Whether the straight-line code promotes the arrays to one dtype: those of all tensors, none of them optional."""
    return bool(op.promote) and op.sequence is None and all(op.kinds[name] == ARRAY for name in op.tensors)


def written(op: Operator) -> str:
    """The name of the array that is written to in place: the first one as it was given, before promotion."""
    return "target_array" if promotes(op) else f"{op.tensors[0]}_array"


def promotion_lines(op: Operator, leave: str, overwritten: bool = False) -> list[str]:
    """Convert the arrays to the dtype that they are promoted to; `overwritten`: the result is written to the first one.

    Execute `leave` for dtypes that the kernel's forms are not for.
    """
    arrays = [f"{name}_array" for name in op.tensors if op.kinds[name] == ARRAY]
    lines = []
    if promotes(op):
        mixed = [f"{arrays[0]}.dtype is not {other}.dtype" for other in arrays[1:]]
        if op.promote == "float":  # integers are converted
            mixed.append(f"({arrays[0]}.dtype is not FLOAT32 and {arrays[0]}.dtype.kind in 'biu')")
        args = ", ".join(public_name(name) for name in op.names)
        found = [
            f"found = in_one_dtype(OP, ({args},), ({', '.join(arrays)},), {overwritten})",
            *guard(["found is None"], leave),
            f"{', '.join(arrays)}, = found",
        ]
        lines = [*([f"{written(op)} = {arrays[0]}"] if overwritten else []), *guard(mixed, *found)]
    return lines + guard(no_floats(op, overwritten), leave)


def no_floats(op: Operator, overwritten: bool = False) -> list[str]:
    """The condition that the first array is neither of float32 nor of float64, where the kernel has forms for these alone."""
    has = (op.promote == "float" or op.kernel.dtypes == FLOATS) and (overwritten or not chooses_by_dtype(op))
    return ["({0}.dtype is not FLOAT32 and {0}.dtype is not FLOAT64)".format(f"{op.tensors[0]}_array")] if has else []


def chooses_by_dtype(op: Operator) -> bool:
    """Whether the general form computes arrays of dtypes that the small form is not for, just as on the slow path."""
    return (op.kernel.dtypes == FLOATS or op.promote == "float") and op.check is None and not op.outputs


def passed_arguments(op: Operator, *, dtypes_of_numpy: bool = False) -> list[str]:
    """The arguments of the kernel call; `dtypes_of_numpy`: a parameter that is a dtype has become NumPy's."""
    passed = []
    for name in op.names:
        value = public_name(name) if op.kinds[name] == VALUE else f"{name}_array"
        if op.types.get(name) == "Dtype" and not dtypes_of_numpy:
            value += f" and {value}.numpy"
        passed.append(f"{name}={value}" if name in op.keyword_only else value)
    return passed


def kernel_lines(op: Operator, arguments: list[str] | None = None) -> list[str]:
    """The call of the kernel; its small form is called if the arguments permit it.

    The generated functions' own module has no name, which keeps NumPy silent about the ufuncs that they call themselves
    (`decorators._BASE`). Other functions may give rise to warnings somewhere else, and run with them off.
    """
    kernel, passed = op.kernel, ", ".join(arguments or passed_arguments(op))
    general = by_size(op, kernel.general, quietly(op, kernel.general, f"array = general({passed})"), passed)
    if kernel.small is None:
        return general
    first = f"{op.tensors[0]}_array"
    conditions = [] if kernel.limit is None else [f"{first}.size <= {kernel.limit}"]
    if chooses_by_dtype(op):
        conditions.append(f"({first}.dtype is FLOAT32 or {first}.dtype is FLOAT64)")
    if not kernel.small_takes(op.keyword_only):
        passed = ", ".join(f"{name}_array" for name in op.tensors)
        conditions += with_defaults(op)
    small = by_size(op, kernel.small, quietly(op, kernel.small, f"array = small({passed})"), passed)
    return choice(conditions, small, general)


def by_size(op: Operator, form: Any, lines: list[str], passed: str, target: str = "") -> list[str]:
    """The `lines` that call a ufunc, for arrays that are not large: those that are go to compiled loops, if it has them."""
    large = compiled_ufuncs.large(form) if isinstance(form, numpy.ufunc) else None
    if large is None:
        return lines
    name = f"LARGE[{form.__name__!r}]"
    call = f"{name}.into({passed}, {target})" if target else f"array = {name}.direct({passed})"
    limit = 0 if LOOPS.every_size else large.elements
    first, *others = (f"{tensor}_array" for tensor in op.tensors)
    wide = f"({first}.size < {CONVERTED} or {first}.dtype not in HALVES)"  # NumPy converts each number
    few = f"{first}.size < {limit} and {wide}"
    if others and not target:  # two small arrays may be broadcast to a large one
        (second,) = others
        size = f"({first}.size if {first}.shape == {second}.shape else broadcast({first}, {second}).size)"
        root = math.isqrt(limit)  # most often both are smaller, and to see it takes less time than the product
        few = f"{first}.size < {root} > {second}.size or ({first}.size * {second}.size < {limit} or {size} < {limit}) and {wide}"
    return [*block(f"if {few}:", lines), *block("else:", [call])]


def with_defaults(op: Operator) -> list[str]:
    """The conditions for all keyword parameters to have their defaults."""
    return [f"{name} is default_{name}" for name in op.names if name in op.keyword_only]


def choice(conditions: list[str], first: list[str], second: list[str]) -> list[str]:
    """The `first` lines where all conditions hold, else the `second` ones."""
    return [*block(f"if {' and '.join(conditions)}:", first), *block("else:", second)] if conditions else first


def quietly(op: Operator, form: Any, line: str) -> list[str]:
    """`line`, which calls this form of the kernel, with NumPy's floating-point warnings off if there can be any."""
    if op.view or op.kernel.is_quiet(form):
        return [line]
    return ["token = WARNINGS[OFF]", "try:", f"    {line}", "finally:", "    restore(token)"]
