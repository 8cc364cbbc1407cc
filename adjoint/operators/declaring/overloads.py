"""Functions of two operands with separate operators for a tensor and a number as second operand.

PyTorch records a different node for a number, because a derivative for the number would cost time. `overloads` creates
the functions that choose between such operators: the public function, the in-place function, and Python's operators.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from ..._runtime.tracebacks import shorten
from ...dispatch.arguments import invalid_arguments, is_number
from ...dispatch.constants import NUMBERS
from ...dispatch.declaration import ARRAY, Operator
from ...dispatch.decorators import PREFIXES, binary, operator, public
from ...dispatch.python_operators import not_known
from ...tensor import Tensor

_SYMBOLS = {"__mod__": "%", "__floordiv__": "//", "__pow__": "**"}
"""The symbols of Python's operators, for the documentation of methods."""


def overloads(
    kernel: Any = None,
    *,
    by_tensor: Any,
    by_number: Any,
    of_number: Any = None,
    of_numbers: Callable[[Any, Any, Any], Any] | None = None,
    promote: str | None = "common",
    dunder: str | None = None,
    reflected: str | None = None,
    namespace: str = "torch",
    method: bool = True,
    alias_inplace: tuple[str, ...] = (),
    public_inplace: bool = False,
    only_inplace: bool = False,
    second: str = "other",
    aten_name: str | None = None,
    forms: tuple[str, ...] | Callable[[Operator], tuple[str, ...]] = (),
) -> Callable[[type], Any]:
    """Declare a function that chooses between operators. The class provides its name and its documentation.

    Each operator is declared elsewhere, or declared here by its options (of `binary`) with the `kernel` and the
    formulas of the class for its tensor operands.

    Args:
        kernel: the array computation of the operators that are declared here.
        by_tensor: the operator for two tensors. With numbers="first", it also serves a number and a tensor.
        by_number: the operator for a tensor and a number.
        of_number: the operator for a number and a tensor, if the function accepts them.
        of_numbers: a function that computes the result from two numbers and `out`, if the function accepts them.
        promote: the promotion of the operators that are declared here.
        dunder: the name of Python's operator (`"__mod__"`). The operator has an in-place form (`"__imod__"`).
        reflected: the name of the operator with its operands exchanged (`"__rmod__"`).
        namespace: the public namespace of the function.
        method: whether to create a method and an in-place method.
        alias_inplace: other names of the in-place method.
        public_inplace: whether the in-place function is public, in addition to the method.
        only_inplace: whether to create only the in-place method. The class then documents this method.
        second: the name of the second parameter.
        aten_name: the name of the operators in PyTorch's messages and profiles, if it differs from the function's name.
        forms: the forms of the call for errors, or the function of `signatures` that derives them from `by_tensor`.
    """

    def declare(declaration: type) -> Any:
        shared = {"namespace": None, "method": (), "function_name": declaration.__name__, "aten_name": aten_name}
        tensors, numbers, first = by_tensor, by_number, of_number
        if isinstance(by_tensor, dict):
            tensors = _declared(declaration, "by_tensor", kernel, promote, {**shared, **by_tensor})
        if isinstance(by_number, dict):
            numbers = _declared(declaration, "by_number", kernel, promote, {**shared, **by_number})
        if isinstance(of_number, dict):
            of = {"numbers": "first", "inplace": False, **shared, **of_number}
            first = _declared(declaration, "of_number", kernel, promote, of)
        if first is None and tensors.operator.number_first:
            first = tensors

        def named(function: Any, name: str, doc: str | None = declaration.__doc__, parameter: str = second) -> None:
            identify(function, name, doc, declaration.__module__, parameter)

        name = declaration.__name__
        choose = _choice(f"{PREFIXES.get(namespace, '')}{name}{'_' * only_inplace}", tensors, numbers, first)
        function = _function(choose, numbers, of_numbers)
        if method:
            function.inplace = _inplace_function(choose)
            named(function.inplace, f"{name}_", declaration.__doc__ if only_inplace else f"`{name}` in place.")
            augmented = () if dunder is None else (dunder.replace("__", "__i", 1),)
            names = (f"{name}_", *alias_inplace, *augmented)
            public(namespace=namespace if public_inplace else None, method=names)(function.inplace)
        if only_inplace:
            return function.inplace
        named(function, name)
        listed: Any = (lambda: forms(tensors.operator)) if callable(forms) else forms
        public(namespace=namespace, method=method, numpy_names=True, forms=listed)(function)
        if dunder is None:
            return function
        operation = _operation(function, numbers)
        named(operation, dunder, f"`input {_SYMBOLS[dunder]} {second}`.")
        public(namespace=None, method=(dunder,))(operation)
        if reflected is not None:
            exchanged = _exchanged(function)
            named(exchanged, reflected, f"`other {_SYMBOLS[dunder]} input`.", "other")
            public(namespace=None, method=(reflected,))(exchanged)
        return function

    return declare


class Pair(NamedTuple):
    """The functions of two operators."""

    by_tensor: Any
    by_number: Any


def pair(
    kernel: Any,
    *,
    by_tensor: dict[str, Any],
    by_number: dict[str, Any],
    promote: str | None = None,
    **shared: Any,
) -> Callable[[type], Pair]:
    """Declare two operators with one kernel, for functions that choose between them by the type of their last operand.

    The class has the signature and the formulas of the operator for tensors. The operator for a number has no formula
    for the last tensor. `by_tensor` and `by_number` are the options in which the two operators differ. `shared` are the
    options of both. The operator for a number may have the option `values`, which lists operands that are parameters in
    this operator. The kernel receives these values unchanged, with their types.
    """

    def declare(declaration: type) -> Pair:
        options = {"namespace": None, "method": (), "function_name": declaration.__name__, **shared}
        return Pair(
            _declared(declaration, "by_tensor", kernel, promote, {**options, **by_tensor}),
            _declared(declaration, "by_number", kernel, promote, {**options, **by_number}),
        )

    return declare


def _declared(declaration: type, which: str, kernel: Any, promote: str | None, options: dict[str, Any]) -> Any:
    """Declare one of several operators of a function, with the formulas of its tensor operands."""
    members = {name: value for name, value in vars(declaration).items() if name not in ("__dict__", "__weakref__")}
    members["__doc__"] = (declaration.__doc__ or "").partition("\n")[0]
    forward, values = members.get("forward"), options.pop("values", {})
    if forward is None:
        numbers = {"by_number": ("other",), "of_number": ("self",)}.get(which, ())
    else:
        arrays = [name for name, kind in forward.__annotations__.items() if kind == ARRAY]
        numbers = tuple(values or arrays[-1:]) if which == "by_number" else ()
        copied = FunctionType(forward.__code__, forward.__globals__, "forward", forward.__defaults__)
        copied.__kwdefaults__, copied.__annotations__ = forward.__kwdefaults__, {**forward.__annotations__, **values}
        members["forward"] = copied
    for name in numbers:
        members.pop(f"grad_{name}", None)
    part = type(f"{declaration.__name__}_{which}", (), members)
    if forward is None:
        return binary(kernel, promote, **options)(part)
    return operator(kernel=kernel, promote=promote, **{"elementwise": None if numbers else True, **options})(part)


def identify(function: Any, name: str, doc: str | None, module: str, parameter: str = "other") -> None:
    """Give a function the name, the documentation and the second parameter of the function that it implements."""
    code = function.__code__
    variables = tuple(parameter if variable == "other" else variable for variable in code.co_varnames)
    function.__code__ = code.replace(co_name=name, co_varnames=variables)
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = doc, module
    function.__annotations__ = {}  # the type stubs hold the types, as for other hand-written functions


def _choice(name: str, by_tensor: Any, by_number: Any, of_number: Any) -> Callable[[Any, Any], Any]:
    """Return the function that chooses the operator for two operands, and raises the error of function `name` for others."""

    def choose(input: Any, other: Any) -> Any:
        if isinstance(input, Tensor):
            if isinstance(other, Tensor):
                return by_tensor
            if is_number(other):
                return by_number
        elif of_number is not None and isinstance(other, Tensor) and is_number(input):
            return of_number
        raise invalid_arguments(name, input, other)

    return choose


def _function(choose: Any, by_number: Any, of_numbers: Any) -> Any:
    def function(input: Any, other: Any, *, out: Any = None) -> Any:
        if type(other) in NUMBERS and out is None and isinstance(input, Tensor):
            return by_number(input, other)
        if of_numbers is not None and is_number(input) and is_number(other):
            return of_numbers(input, other, out)
        return choose(input, other)(input, other, out=out)

    return function


def _inplace_function(choose: Any) -> Any:
    def change(input: Any, other: Any) -> Any:
        return choose(input, other).inplace(input, other)

    return change


def _operation(function: Any, by_number: Any) -> Any:
    def operate(input: Any, other: Any) -> Any:
        try:
            if type(other) in NUMBERS:
                return by_number(input, other)
            return function(input, other) if isinstance(other, Tensor) or is_number(other) else not_known()
        except Exception as error:
            shorten(error)
            raise

    return operate


def _exchanged(function: Any) -> Any:
    def operate(input: Any, other: Any) -> Any:
        try:
            return function(other, input) if isinstance(other, Tensor) or is_number(other) else not_known()
        except Exception as error:
            shorten(error)
            raise

    return operate
