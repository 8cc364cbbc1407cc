"""Bind the arguments of operators to parameters, and convert them to the declared types or raise PyTorch's errors."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import FrameType, MappingProxyType
from typing import Any

import numpy

from .. import dtypes
from .._runtime.tracebacks import variables_in, warn_once
from ..tensor import Tensor
from .calls import call_of, words_for
from .declaration import ARRAY, ARRAYS, OPTIONAL_ARRAY, Operator
from .lazy_stubs import WrongType
from .parameter_source import NUMPY_NAMES
from .signatures import FORMS, TYPE_WORDS, forms_of, type_name
from .source import public_name

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""The default of parameters that are required."""

_NO_INTEGERS = (bool, numpy.bool_, numpy.ndarray, tuple)
"""Types that PyTorch does not accept as integers, although Python's `operator.index` may accept them."""


def bind(op: Operator, args: tuple[Any, ...], names: Any = MappingProxyType({})) -> tuple[Any, ...]:
    """Bind keyword aliases to their parameters. Raise an error for missing arguments and wrong types."""
    values: Any = args
    if names:
        values = list(args)
        for name, value in names.items():
            if value is not MISSING:
                values[[*map(public_name, op.names)].index(NUMPY_NAMES[name])] = value
    for value in values:
        if value is MISSING:
            raise missing_arguments(op, values)
    if not op.typed:
        return tuple(values)
    values = list(values)
    for position, name in op.typed:
        if values[position] is not op.defaults.get(name, MISSING):
            values[position] = checked(op, name, position, values)
    return tuple(values)


def missing_arguments(op: Operator, values: list[Any]) -> TypeError:
    """Return the error for a call with missing arguments."""
    if op.function_name in FORMS:
        return invalid_arguments(op.function_name, *takewhile(lambda value: value is not MISSING, values))
    for position, value in enumerate(values):
        wrong = value is not MISSING and not isinstance(value, Tensor) and not (op.numbers and is_number(value))
        if wrong and op.kinds[op.names[position]] == ARRAY:
            return not_a_tensor(op, position, values)
    missing = [f'"{"input" if n == "self" else n}"' for n, v in zip(op.names, values, strict=True) if v is MISSING]
    plural = "s" if len(missing) == 1 else ""  # sic
    return TypeError(
        f"{call_of(op.function_name).name}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
    )


def not_a_tensor(op: Operator, position: int, args: Sequence[Any]) -> TypeError:
    """Return the error for the argument at `position`, which is not a tensor but should be."""
    function, name, where = words_for(op.function_name, op.names[position], position, args)
    return TypeError(f"{function}(): argument '{name}'{where} must be Tensor, not {type_name(args[position])}")


def check_operands(op: Operator, args: Any) -> None:
    """Raise an error unless the tensor parameters receive tensors, or numbers where numbers are allowed."""
    found = False
    for position in op.tensor_positions:
        name, value = op.names[position], args[position]
        if op.kinds[name] == ARRAYS:
            if not isinstance(value, (list, tuple)):
                function, name, where = words_for(op.function_name, name, position, [None] * position + [value])
                raise TypeError(
                    f"{function}(): argument '{name}'{where} must be tuple of Tensors, not {type_name(value)}"
                )
            require_tensors(value, position)
        elif isinstance(value, Tensor):
            found = True
        elif not (
            (value is None and op.kinds[name] == OPTIONAL_ARRAY)
            or (op.numbers and is_number(value) and (position > 0 or op.number_first))
        ):
            raise invalid_arguments(op.function_name, *args) if op.overloaded else not_a_tensor(op, position, args)
    if op.overloaded and not found:
        raise invalid_arguments(op.function_name, *args)


def require_tensors(values: Sequence[Any], position: int = 0) -> None:
    """Raise an error unless all elements of a sequence, the argument at `position`, are tensors."""
    for index, item in enumerate(values):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {index} in argument {position}, but got {type_name(item)}")


def checked(op: Operator, name: str, position: int, values: list[Any]) -> Any:
    """Return the argument at `position`. Raise an error unless its type is the declared one, or it is the default."""
    value, kind = values[position], op.types[name]
    if is_of_type(value, kind):
        if kind in ("Number", "Float") and isinstance(value, Tensor):
            return value.item()
        if kind == "Int" and not fits(value):
            raise ValueError("Overflow when unpacking long long")
        if kind == "Dims" and type(value) is not int and hasattr(value, "__index__"):
            return operator.index(value)
        if kind != "Ints" or all(map(fits, value)):
            return tuple(value) if type(value) is list else value
    if value is None and ((default := op.defaults.get(name, MISSING)) is None or (kind == "Dims" and default == ())):
        return default
    if op.overloaded and position == len(op.tensors):
        raise invalid_arguments(op.function_name, *values[: position + 1])
    call = call_of(op.function_name)
    given_as = next((other for other in call.named if NUMPY_NAMES.get(other) == public_name(name)), name)
    where = "" if name in op.keyword_only else call.where(given_as, position, values)
    raise wrong_type(call.name, name, where, kind, value)


def fits(number: Any) -> bool:
    """Return whether an integer fits in 64 bits. Only Python integers may be too large."""
    return type(number) is not int or -(2**63) <= number < 2**63


def wrong_type(function: str, name: str, where: str, kind: str, value: Any, wrong: int | None = None) -> TypeError:
    """Return the error for an argument that a parameter declared as `kind` does not accept.

    `where`: its position, or None. `wrong`: the index of the faulty item of a sequence, by default the first non-integer.
    """
    if kind != "Ints" or not isinstance(value, (tuple, list)):
        return TypeError(f"{function}(): argument '{name}'{where} must be {TYPE_WORDS[kind]}, not {type_name(value)}")
    if wrong is None:
        wrong = next(index for index, item in enumerate(value) if not (is_of_type(item, "Int") and fits(item)))
    found = type_name(value[wrong])
    if is_of_type(value[wrong], "Int") and not fits(value[wrong]):
        why = "Overflow when unpacking long long"
    elif wrong == 0:
        found = f"but found element of type {found} at pos 0" if where else f"not {type_name(value)}"  # sic
        return TypeError(f"{function}(): argument '{name}'{where} must be tuple of ints, {found}")
    else:
        why = f"type must be tuple of ints,but got {found}"
    return TypeError(
        f"{function}(): argument '{name}' failed to unpack the object at pos {wrong + 1} with error \"{why}\""
    )


_COMMONEST: dict[str, type] = {
    "Tensor": Tensor,
    "Sequence": list,
    "Int": int,
    "Bool": bool,
    "Number": float,
    "Float": float,
}
"""The type of most arguments that a parameter declared as a kind accepts."""


def require(kind: str, value: Any, function: str, name: str, position: int | None = None) -> None:
    """Raise an error unless `value`, the argument `name` of `function`, has the type `kind`; see `is_of_type`."""
    if type(value) is not _COMMONEST.get(kind) and not is_of_type(value, kind):
        raise wrong_type(function, name, "" if position is None else f" (position {position})", kind, value)


def is_of_type(value: Any, kind: str) -> bool:
    """Return whether a parameter declared as `kind` accepts `value`."""
    if kind in ("Tensor", "Sequence"):
        return isinstance(value, Tensor if kind == "Tensor" else (tuple, list))
    if kind == "Int":
        return type(value) is int or (hasattr(value, "__index__") and not isinstance(value, _NO_INTEGERS))
    if kind in ("Ints", "Dims"):
        several = isinstance(value, (tuple, list)) and all(is_of_type(item, "Int") for item in value)
        return several or (kind == "Dims" and is_of_type(value, "Int"))
    if kind == "Bool":
        return isinstance(value, (bool, numpy.bool_))
    if kind in ("Number", "Float"):
        if isinstance(value, Tensor):
            return not (value._array.ndim or value.requires_grad)
        return is_number(value) and (kind == "Number" or not isinstance(value, (complex, numpy.complexfloating)))
    return isinstance(value, dtypes.dtype if kind == "Dtype" else str)


def is_number(value: Any) -> bool:
    """Return whether PyTorch accepts `value` as a number."""
    return isinstance(value, (int, float, complex, numpy.number, numpy.bool_))


def invalid_arguments(function: str, *args: Any, **names: Any) -> TypeError:
    """Return the error for arguments that no overload of `function` accepts."""
    call = call_of(function)
    args = tuple(value for value in args if value is not MISSING)
    if args and call.receiver is not None and args[0] is call.receiver:
        args = args[1:]
    if not names and call.named:
        args, names = _without(args, call.named), dict(sorted(call.named.items()))
    given = [*map(type_name, args), *(f"{name}={type_name(value)}" for name, value in names.items())]
    got = ", ".join(given) if args else "".join(f"{one}, " for one in given)  # sic
    forms = forms_of(function, call.receiver is not None)
    if len(forms) < 2:
        expected = "".join(f", but expected ({form})" for form in forms)
    else:
        listed = [f" * ({form})\n{_reason(form, args, names)}" for form in forms]
        expected = ", but expected one of:\n" + "".join(listed)
    return TypeError(f"{call.name}() received an invalid combination of arguments - got ({got}){expected}")


def _without(args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the positional arguments. Arguments that were given by keyword come last, and are dropped."""
    rest = list(args)
    for value in named.values():
        last = next((place for place in reversed(range(len(rest))) if rest[place] is value), None)
        if last is not None:
            del rest[last]
    return tuple(rest)


def _reason(form: str, args: tuple[Any, ...], names: Mapping[str, Any]) -> str:
    """Return a line that marks what is wrong with the arguments for a form, or nothing unless their numbers are equal.

    As in PyTorch, a default belongs to the name of a parameter, and the types of numbers have no common name.
    """
    types = [part.partition(" = ")[0].rpartition(" ")[0] for part in form.split(", ")]
    parameters = [part.removeprefix(f"{kind} ") for part, kind in zip(form.split(", "), types, strict=True)]
    if len(parameters) != len(args) + len(names):
        return ""
    others = parameters[len(args) :]
    unknown = ", ".join(name for name in names if name not in others)
    if unknown:
        return f"      didn't match because some of the keywords were incorrect: {unknown}\n"
    marked = []
    labels, values = [""] * len(args) + [f"{name}=" for name in others], [*args, *(names[name] for name in others)]
    for kind, label, value in zip(types, labels, values, strict=True):
        given = f"{label}{_with_items(value)}"
        fits = isinstance(value, Tensor) if kind == "Tensor" else kind == type_name(value)
        marked.append(given if fits else f"!{given}!")
    listed = ", ".join(marked) + ("" if args else ", ")  # sic
    return f"      didn't match because some of the arguments have invalid types: ({listed})\n"


def _with_items(value: Any) -> str:
    """Return the name of a type, for sequences with the types of the items."""
    if type(value) not in (list, tuple):
        return type_name(value)
    items = ", ".join(map(type_name, value))
    return f"list of [{items}]" if type(value) is list else f"tuple of ({items}{',' * (len(value) == 1)})"


def in_new_order(op: Operator, args: tuple[Any, ...], keywords: tuple[Any, ...], inplace: bool) -> list[Any]:
    """Return the arguments of a deprecated form (of the in-place variant if `inplace`) in the order of the declaration."""
    given = [value for value in args if value is not MISSING]
    tensors = [value for value in given if isinstance(value, Tensor)]
    numbers = [value for value in given if is_of_type(value, "Number") and not isinstance(value, Tensor)]
    names = [name for name in op.names if name not in op.keyword_only]
    values = dict(zip([name for name in op.names if name in op.keyword_only], keywords, strict=True))
    function = f"{op.function_name}_" if inplace else op.function_name
    fits = len(tensors) == len(names) and len(tensors) + len(numbers) == len(given)
    fits = fits and all(isinstance(value, Tensor) for value in given[len(numbers) + 1 :])
    if (
        not fits
        or len(numbers) > len(op.deprecated_order)
        or any(values[name] is not op.defaults[name] for name in values)
    ):
        raise invalid_arguments(function, *given)
    others = [f"Tensor {name}" for name in names[1:]]
    former = [f"Number {name}" for _, name in zip(numbers, op.deprecated_order, strict=False)]
    warn_once(
        "deprecated order",
        f"This overload of {function} is deprecated:\n\t{function}({', '.join(former + others)})\n"
        "Consider using one of the following signatures instead:\n\t"
        f"{function}({', '.join(others)}, *, {', '.join(f'Number {name} = 1' for name in op.deprecated_order)})",
    )
    values.update(zip(op.deprecated_order, numbers, strict=False))
    return [*tensors, *values.values()]


# --- errors of Python's own about the arguments of functions that are written by hand ------------------------------------

_INTEGERS = frozenset(("dim", "dim0", "dim1", "axis0", "axis1", "start_dim", "end_dim", "diagonal", "offset"))
"""Parameters that are an integer, several integers, or None in every function that has them."""

_REFUSED = re.compile(
    r"'[<>]=?' not supported|an integer is required|.*indices must be integers|.*truth value of an? (empty )?array|"
    r".*cannot be interpreted as an integer|unsupported operand type|bad operand type|can only concatenate|"
    r"expected an integer|unhashable type"
)
"""The messages with which Python and NumPy refuse a value that is not an integer."""


def argument_error(error: Exception, function: str, frame: FrameType) -> TypeError | None:
    """Return the error for an argument of `function` in `frame` that should be a tensor, an integer or a truth value."""
    if type(error) is WrongType:
        (name, position, value, kind), call = error.args, call_of(function)
        where = "" if position is None else call.where(name, position, [call.receiver])
        return wrong_type(call.name, name, where, "Dtype" if kind == "Dtype" else "Bool", value)
    frame = _frame_of(frame, error)
    code, given = frame.f_code, variables_in(frame)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if type(error) is AttributeError and hasattr(Tensor, error.name or "") and not isinstance(error.obj, Tensor):
        for position, name in enumerate(names, 1):
            if given[name] is error.obj:
                return TypeError(
                    f"{call_of(function).name}(): argument '{name}' (position {position}) must be Tensor, "
                    f"not {type_name(error.obj)}"
                )
    if isinstance(error, (TypeError, ValueError)) and _REFUSED.match(str(error)):
        for position, name in enumerate(names):
            value = given.get(name)
            if name in _INTEGERS and not (value is None or value is MISSING or is_of_type(value, "Dims")):
                call = call_of(function)
                values = [given.get(each) for each in names]
                where = call.where(name, position, values) if position < code.co_argcount else ""
                return wrong_type(call.name, name, where, "Int", value)
    return None


def _frame_of(frame: FrameType, error: Exception) -> FrameType:
    """Return the frame of the function. If `frame` only passes arguments on, return the frame that it called."""
    if frame.f_code.co_argcount:
        return frame
    trace = error.__traceback__
    while trace is not None and trace.tb_frame is not frame:
        trace = trace.tb_next
    return frame if trace is None or trace.tb_next is None else trace.tb_next.tb_frame
