"""Numbers among the arguments of a compiled function that are inputs of its program.

While such a function is captured, a symbol represents the number: a `float` or an `int` with a place in the program.
Arithmetic with symbols is appended to the program. Operators accept symbols like numbers. The result of a comparison
must be the same in later calls. Any other use of a symbol *fixes* it. The program then replaces the function only if
the number has not changed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from adjoint.device import Size
from adjoint.nn import Module

from ..dispatch.constants import constant_tensor
from ..tensor import Tensor


class Symbol:
    """The common part of symbols of both types.

    `value`: the number of the value in the program. `roots`: the places of the arguments on which it depends. `origin`:
    the function and the operands from which it was computed, unless it is an argument. `plain`: its current value.
    """

    tracer: Any
    value: int
    roots: frozenset[str]
    origin: tuple[Any, list[Any]] | None
    plain: Any

    def source(self, constant: Callable[[Any], str]) -> str:
        """Return the expression of this symbol in terms of the arguments. `constant` names an object."""
        if self.origin is None:
            (place,) = self.roots
            return place
        function, operands = self.origin
        return called(function, operands, constant)

    def describe(self) -> str:
        """Return descriptions of the arguments on which this symbol depends."""
        return " and ".join(sorted(self.roots))

    def fix(self) -> None:
        """Require that the arguments on which this symbol depends have not changed."""
        if self.tracer.asks:
            self.tracer.fixed.update(self.roots)

    @property
    def is_fixed(self) -> bool:
        """Return whether this symbol represents only one number."""
        return self.tracer.fixed >= self.roots

    @property
    def real(self) -> Any:
        """Return the number itself."""
        return self

    def conjugate(self) -> Any:
        """Return the number itself."""
        return self

    def __reduce__(self) -> Any:
        return type(self.plain), (self.plain,)


class SymbolicFloat(Symbol, float):
    """A symbol for a `float`."""


class SymbolicInt(Symbol, int):
    """A symbol for an `int`."""


KINDS: dict[type, Any] = {float: SymbolicFloat, int: SymbolicInt}


def symbol(plain: Any, tracer: Any, value: int, roots: frozenset[str], origin: Any = None) -> Any:
    """Return the symbol for a number."""
    made = KINDS[type(plain)](plain)
    made.tracer, made.value, made.roots, made.origin, made.plain = tracer, value, roots, origin, plain
    return made


def called(function: Any, operands: list[Any], constant: Callable[[Any], str]) -> str:
    """Return the source of a call with symbols and numbers."""
    given = [each.source(constant) if isinstance(each, Symbol) else constant(each) for each in operands]
    return f"{constant(function)}({', '.join(given)})"


def plain(value: Any) -> Any:
    """Return the number that a symbol represents, or any other value unchanged."""
    return value.plain if isinstance(value, Symbol) else value


def reading(name: str, kind: type) -> Callable[..., Any]:
    """Return a method that reads the number, and therefore fixes the symbol."""
    method = getattr(kind, name)

    def read(self: Any, *others: Any) -> Any:
        self.fix()
        return method(self.plain, *map(plain, others))

    return read


def comparing(name: str, kind: type) -> Callable[..., Any]:
    """Return a method that compares. Later calls must have the same result."""
    method = getattr(kind, name)
    function = bool if name == "__bool__" else getattr(operator, name)

    def compared(self: Any, *others: Any) -> Any:
        result = method(self.plain, *map(plain, others))
        if result is not NotImplemented:
            self.tracer.outcome(function, [self, *others], result)
        return result

    return compared


def computing(name: str, kind: type) -> Callable[..., Any]:
    """Return a method of arithmetic that the program repeats."""
    method = getattr(kind, name)
    function = getattr(operator, name.replace("__r", "__") if name in REFLECTED else name)

    def computed(self: Any, *others: Any) -> Any:
        try:
            result = method(self.plain, *map(plain, others))
        except ArithmeticError:
            self.fix()
            raise
        operands = [*others, self] if name in REFLECTED else [self, *others]
        return result if result is NotImplemented else self.tracer.derived(function, operands, result)

    return computed


ARITHMETIC = [f"__{name}__" for name in "add sub mul truediv pow neg pos abs floordiv mod".split()]
REFLECTED = frozenset(f"__r{name}__" for name in "add sub mul truediv pow floordiv mod".split())
COMPARING = [f"__{name}__" for name in "eq ne lt le gt ge bool".split()]
READING = [
    f"__{name}__"
    for name in """
    hash int float index round trunc floor ceil str repr format complex divmod rdivmod and rand or ror xor
    rxor lshift rlshift rshift rrshift invert
    """.split()
]
for _base, _kind in KINDS.items():
    for _name in (*ARITHMETIC, *REFLECTED):
        setattr(_kind, _name, computing(_name, _base))
    for _name in COMPARING:
        setattr(_kind, _name, comparing(_name, _base))
    for _name in READING:
        if hasattr(_base, _name):
            setattr(_kind, _name, reading(_name, _base))
    for _name in ("is_integer", "hex", "as_integer_ratio", "bit_length", "to_bytes", "bit_count"):
        if hasattr(_base, _name):
            setattr(_kind, _name, reading(_name, _base))


def symbols_in(values: Any, within: tuple[int, ...] = ()) -> list[Symbol]:
    """Return the symbols among values, also within sequences and dictionaries. `within`: the identities of the containers."""
    found: list[Symbol] = []
    for value in values:
        if isinstance(value, Symbol):
            found.append(value)
        elif type(value) in (list, tuple, Size, dict) and id(value) not in within:
            found += symbols_in(value.values() if type(value) is dict else value, (*within, id(value)))
        elif is_record(value) and id(value) not in within:
            found += symbols_in(vars(value).values(), (*within, id(value)))
        elif type(value) is slice:
            found += symbols_in((value.start, value.stop, value.step))
    return found


def is_record(value: Any) -> bool:
    """Return whether a value is an instance of a data class that stores its fields in a dictionary."""
    return (
        hasattr(type(value), "__dataclass_fields__")
        and hasattr(value, "__dict__")
        and not isinstance(value, (Tensor, Module, dict))
    )


def new_record(kind: Any, fields: dict[str, Any]) -> Any:
    """Return an instance of a data class with these fields."""
    made = object.__new__(kind)
    vars(made).update(fields)
    return made


def without_symbols(value: Any) -> Any:
    """Return a value with numbers in place of symbols, also within sequences."""
    if isinstance(value, Symbol):
        return value.plain
    if not symbols_in([value]):
        return value
    if type(value) is dict:
        return {key: without_symbols(each) for key, each in value.items()}
    return (
        tuple.__new__(type(value), map(without_symbols, value))
        if isinstance(value, tuple)
        else [*map(without_symbols, value)]
    )


def unwrapped(value: Any) -> Any:
    """Return a result with numbers in place of symbols. Lists and dictionaries remain the same objects."""
    if isinstance(value, Symbol):
        return value.plain
    if symbols_in([value]):
        if isinstance(value, tuple):
            return tuple.__new__(type(value), map(unwrapped, value))
        if is_record(value):
            unwrapped(vars(value))
            return value
        for key, each in value.items() if type(value) is dict else enumerate(value):
            value[key] = unwrapped(each)
    return value


class Number:
    """A function that creates the array for a number that is combined with tensors of a dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, number: Any) -> Any:
        """The array."""
        return constant_tensor(number, self.dtype)._array
