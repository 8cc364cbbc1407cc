"""Stores to objects that the function did not create, which a program repeats before it returns.

A place is an attribute of such an object, or an element of a dictionary. A place to which an earlier capture has stored
has another value in each call, so it is read like an argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import adjoint as torch

from ..tensor import Tensor
from .expectations import EXPECT
from .known import is_changeable, is_constant, is_ours, is_plain, never_raises
from .program import Constant, Instruction, Program
from .symbols import KINDS, Symbol, plain, symbol, symbols_in, unwrapped, without_symbols


class Store(NamedTuple):
    """A store of a value. `form`: the source of the statement, with the target, the key and the value."""

    form: str
    target: Any
    key: Any
    value: Any


class Stores:
    """The stores of one capture, and the places that it reads like arguments.

    `begin`: the number of instructions before the first store, or None.

    `known`: the places to which earlier captures have stored, as pairs of the identity of an object and a key. `made`: the
    last store to each place, and the values that were appended to lists. `symbols`: the numbers at places. `options`: the
    numbers stored in groups of optimizers, which a program stores at once. `numbers`: all stores of numbers and other
    constants, with the number of instructions before them.
    """

    def __init__(self, observer: Any, given: Any, known: set[tuple[int, Any]]) -> None:
        self.observer, self.given, self.known = observer, given, known
        self.made: dict[Any, Store] = {}
        self.loaded: dict[tuple[int, Any], Any] = {}
        self.symbols: list[Symbol] = []
        self.options: dict[tuple[int, Any], Any] = {}
        self.numbers: list[tuple[int, Store]] = []
        self.begin: int | None = None

    def __bool__(self) -> bool:
        return bool(self.made or self.loaded or self.numbers)

    @property
    def values(self) -> list[Any]:
        """The stored values."""
        return [each.value for each in self.made.values()]

    # --- stores -----------------------------------------------------------------------------------------------------------

    def takes(self, target: Any) -> bool:
        """Return whether a program can repeat a store to this object, if it can repeat a store to any object of its kind."""
        observer = self.observer
        followed = not observer.stopped and observer.unobserved is None and observer.tracer.rehearsing is None
        return followed and not observer.is_inside(target) and id(target) not in self.given.containers  # of arguments

    def accepts(self, target: Any, name: str | None) -> bool:
        """Return whether a program can repeat a store to an attribute of an object, or to an element of it."""
        kind: Any = type(target)
        if not self.takes(target):
            return False
        if name is None:
            return kind is dict
        library = [each for each in kind.__mro__ if is_ours(each)]
        return (
            is_changeable(kind)
            and library in ([], [torch.nn.Module])
            and kind.__setattr__ is (library[0] if library else object).__setattr__
            and kind.__getattribute__ is object.__getattribute__
            and hasattr(target, "__dict__")
            and not isinstance(target, type)
            and name != "training"
            and inspect.getattr_static(kind, name, None) is None
        )

    def set(self, target: Any, key: Any, value: Any, is_item: bool) -> None:
        """Set an attribute or an element."""
        observer, before = self.observer, None
        of_group = is_item and "params" in target  # of an optimizer, whose step reads its elements
        if is_item and (type(key) not in (str, int) or (of_group and type(plain(value)) not in KINDS)):
            observer.stop("an element of an object that the function did not create is changed")
        elif is_item:
            before = target.get(key)
        elif isinstance(target, torch.nn.Module):
            taken = key in vars(target)["_parameters"] or key in vars(target)["_modules"]
            if taken or isinstance(value, (torch.nn.Parameter, torch.nn.Module)):
                observer.stop("a parameter or a module of a module is changed")
        if not is_item:
            before = getattr(target, key, None)
            observer.keep_class(target)
        number = self.without_symbols(value)
        if is_item:
            target[key] = number
        else:
            setattr(target, key, number)
        place = id(target), key
        self.known.add(place)
        if of_group:
            self.options[place] = value
            observer.changes.append(target)
            observer.tracer.program.append(
                "set", Setting(target, key, True), [observer.tracer.number(value)], [], keeps=True
            )
            return
        if before is value and isinstance(value, Tensor) and place not in self.made:
            return  # it was changed in place
        form = "{0}[{1}] = {2}" if is_item else f"{{0}}.{key} = {{2}}"
        self.made.pop(place, None)
        self.record(place, Store(form, target, key, value))

    def append(self, target: list[Any], value: Any) -> None:
        """Append a value to a list, whose elements the function does not read afterwards."""
        target.append(self.without_symbols(value))
        self.record((len(self.made), id(target), "append"), Store("{0}.append({2})", target, None, value))

    def without_symbols(self, value: Any) -> Any:
        """Return a value with numbers in place of symbols. Symbols within lists and dictionaries are fixed."""
        if type(value) is tuple and not symbols_in([each for each in value if not isinstance(each, Symbol)]):
            return without_symbols(value)
        if not isinstance(value, Symbol):
            self.observer.fix([value])
        return plain(value)

    def record(self, place: Any, store: Store) -> None:
        """Record a store."""
        self.observer.changes.append(store.target)
        self.made[place] = store
        position = len(self.observer.tracer.program.instructions)
        is_fixed = all(each.is_fixed for each in symbols_in([store.value]))
        if isinstance(store.value, Symbol) or (is_constant(store.value) and is_fixed):
            self.numbers.append((position, store))
        if self.begin is None:
            self.begin = position

    def check(self, program: Program) -> None:
        """Let the program store constants at once if an error may leave it later. Other stores then end the capture."""
        later = [] if self.begin is None else program.instructions[self.begin :]
        if all(map(cannot_fail, later)):
            return
        stored = [store for _, store in self.numbers]
        if any(store not in stored for store in self.made.values()) or any(each.name == EXPECT for each in later):
            self.observer.stop("an operator that may raise an error follows a store to an object")
        elif not self.observer.stopped:
            self.made.clear()
            for position, (_, target, key, value) in reversed(self.numbers):
                setting = Setting(target, key, type(target) is dict)
                given = value if isinstance(value, Symbol) else unwrapped(value)
                program.append("set", setting, [self.observer.tracer.number(given)], [], keeps=True)
                program.instructions.insert(position, program.instructions.pop())

    def reading(self, container: Any) -> None:
        """Record that all elements of a container are read. The program knows those that were stored only as constants."""
        for each in self.made.values():
            if each.target is container or getattr(each.target, "__dict__", None) is container:
                self.observer.fix([each.value])
                if each.key is None:
                    self.observer.stop("a list is read to which the function has appended")

    def lines(self, built: Callable[[Any], str], constant: Callable[[Any], str]) -> list[str]:
        """Return the statements. All values are computed before the first store, because they may read places."""
        values = [f"s{position} = {built(each.value)}" for position, each in enumerate(self.made.values())]
        return [
            *values,
            *(
                each.form.format(constant(each.target), repr(each.key), f"s{position}")
                for position, each in enumerate(self.made.values())
            ),
        ]

    # --- reads ------------------------------------------------------------------------------------------------------------

    def read(self, target: Any, key: Any, is_item: bool) -> Any:
        """Return the value of a place that this capture or an earlier one has set. Return MISSING for other places."""
        place = id(target), key
        if self.observer.stopped:
            return MISSING
        if place in self.options:
            return MISSING if self.observer.unobserved is not None else self.options[place]
        for each in self.made.values():
            if each.key == key and (each.target is target or getattr(each.target, "__dict__", None) is target):
                return each.value
        if place in self.loaded:
            return self.loaded[place]
        try:
            value = target[key] if is_item else getattr(target, key)
        except (LookupError, AttributeError):
            return MISSING
        if place not in self.known or not self.accepts(target, None if is_item else key):
            return MISSING
        tensors = tensors_in(value)
        if not (tensors or type(value) in KINDS) or not all(map(is_plain, tensors)):
            return MISSING
        observer, given, tracer = self.observer, self.given, self.observer.tracer
        if not is_item:
            observer.keep_class(target)
        name = given.source.constant(target)
        source = f"{name}[{key!r}]" if is_item else f"{name}.{key}"
        begin = len(given.tensors)
        given.numbers.update([source] if type(value) in KINDS else ())
        given.read(source, value)
        if type(value) in KINDS:
            number = tracer.program.new_value(None)
            tracer.program.numbers[number] = source
            value = symbol(value, tracer, number, frozenset({source}))
            self.symbols.append(value)
        for where, tensor in given.tensors[begin:]:
            observer.input(tensor, "argument", where)
        self.loaded[place] = value
        return value


MISSING: Any = object()
"""The value of a place that is not read like an argument."""


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors in a value, or in nested lists and tuples."""
    if isinstance(value, Tensor):
        return [value]
    return [tensor for each in value for tensor in tensors_in(each)] if type(value) in (list, tuple) else []


def cannot_fail(instruction: Instruction) -> bool:
    """Return whether an instruction raises no error, or leaves the program instead."""
    name = instruction.name
    if name in ("mod", "floordiv", "truediv"):
        divisor = instruction.operands[1]
        return isinstance(divisor, Constant) and bool(divisor.value)
    plain = isinstance(instruction.function, Setting) or getattr(instruction.function, "plain", False)
    return plain or name in ("set_grad", "zero_grad", "item", EXPECT) or never_raises(instruction)


class Setting:
    """Sets an element of a dictionary, or an attribute, or appends to a list, which has no key."""

    of_host = True

    def __init__(self, target: Any, key: Any, is_item: bool) -> None:
        self.target, self.key, self.is_item = target, key, is_item
        self.__name__ = "set"

    def __call__(self, value: Any) -> None:
        """Set the element or the attribute, or append the value."""
        if self.key is None:
            self.target.append(value)
        elif self.is_item:
            self.target[self.key] = value
        else:
            setattr(self.target, self.key, value)


class Target:
    """An outside object whose attribute or element is set."""

    stores: Stores
    object: Any

    def __init__(self, stores: Stores, target: Any) -> None:
        object.__setattr__(self, "stores", stores)
        object.__setattr__(self, "object", target)

    def __setattr__(self, name: str, value: Any) -> None:
        self.stores.set(self.object, name, value, False)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.stores.set(self.object, key, value, True)

    def __delattr__(self, name: str) -> None:
        self.stores.observer.stop("an attribute of an object that the function did not create is deleted")
        delattr(self.object, name)

    def __delitem__(self, key: Any) -> None:
        self.stores.observer.stop("an element of an object that the function did not create is deleted")
        del self.object[key]
