"""The conditions on outside objects that a function has read, under which a captured program replaces the function."""

from __future__ import annotations

import functools
import inspect
import keyword
import operator
import types
from collections.abc import Iterator
from typing import Any

import adjoint as torch
from adjoint.device import Size

from ..tape.node import Node
from ..tensor import Tensor
from .known import (
    ALONG_ONE,
    CONTEXTS,
    FOREIGN,
    IMMUTABLE,
    MUTABLE,
    NUMBERS,
    OF_ONE_SIZE,
    OF_OTHERS,
    digest,
    has_elements,
    is_changeable,
    is_ours,
    is_plain,
    is_signed,
    never_raises,
)
from .objects import identical
from .program import Constant, Reference
from .stores import Stores, Target
from .symbols import Symbol, is_record, plain, symbols_in, unwrapped
from .tracer import Tracer

AFTER_OTHERS = ("no own method", "method", "groups", "params")
"""The kinds of guards that may be added after functions of the user have run unobserved, because such functions change
no methods."""


def same(place: str, expected: str, items: tuple[Any, ...]) -> tuple[str, Any]:
    """Return the condition that an iteration gives the same items or equal numbers, and the value of the name `expected`."""
    if items and all(type(each) is str for each in items):
        return f"tuple({place}) == {expected}", items
    if any(type(each) in NUMBERS and each is not None for each in items):
        return f"same_items(tuple({place}), {expected})", items
    return f"{expected}(*{place})", identical(items)


class Guards:
    """Collects `guards`: conditions, as source with the objects that the source names.

    `methods`: the attributes of classes of tensors that were used. `unobserved`: the number of instructions when
    functions of the user had run unobserved, or None.
    """

    stores: Stores
    element: Any
    attribute: Any

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.inside: dict[int, Any] = {}
        self.guards: dict[Any, tuple[str, tuple[Any, ...]]] = {}
        self.digests: dict[int, int] = {}
        self.changes: list[Any] = []
        self.methods: dict[type, dict[str, Any]] = {}
        self.unobserved: int | None = None

    def stop(self, reason: str) -> None:
        """Stop following the function. The rest of the function runs without capture."""
        self.tracer.stop(reason)

    @property
    def stopped(self) -> bool:
        """Return whether the capture has ended before the function."""
        return self.tracer.reason is not None

    def guard(self, key: Any, condition: str, *objects: Any) -> None:
        """Require a condition, in which `{0}`, `{1}`, ... refer to objects."""
        if self.unobserved is not None and key not in self.guards and key[0] not in AFTER_OTHERS:
            self.stop("an object is read after a step that calls functions of the user")
        if not self.stopped:
            self.guards.setdefault(key, (condition, objects))

    def after_others(self) -> None:
        """Record that functions of the user have run unobserved.

        In this call and in later calls, these functions may change objects that were read before. Therefore, no earlier
        value may be used afterwards.
        """
        self.unobserved = len(self.tracer.program.instructions)
        if self.stores:
            self.stop("an attribute is set before a step that calls functions of the user")

    def check_after_others(self, result: Any) -> None:
        """End the capture if values from outside are used, or returned, after functions of the user have run unobserved."""
        if self.unobserved is None or self.stopped:
            return
        program = self.tracer.program
        later = [each for each in program.instructions[self.unobserved :] if each.name not in ("zero_grad", "step")]
        numbers = [each for instruction in later for each in instruction.reads()]
        constant = any(type(operand) is Constant for each in later for operand in each.operands)
        if constant or not program.inputs.keys().isdisjoint(numbers) or not is_of_tensors(result):
            self.stop("a value is used after a step that calls functions of the user, which may change it")

    def operated(self, name: str, *operands: Any) -> Any:
        """Record that an operator, whose method has this name, is applied to the operands. Return the first operand."""
        for operand in operands:
            if isinstance(operand, Tensor):
                kind = type(operand)
                found = {each: getattr(kind, each, None) for each in (f"__{name}__", f"__r{name}__", f"__i{name}__")}
                self.methods.setdefault(kind, {}).update(
                    {each: found[each] for each in found if found[each] is not None}
                )
        return operands[0]

    def require(self, key: Any, expression: str, value: Any, *objects: Any) -> None:
        """Require that `expression`, a function of `objects`, has the same value: the same object, or an equal number."""
        place = f"{{{len(objects)}}}"
        if is_signed(value):
            self.guard(key, f"(type(t := {expression}) is {type(value).__name__} and repr(t) == '{value}')", *objects)
        elif type(value) in NUMBERS and value is not None and type(value) is not bool:
            kind = f"{{{len(objects) + 1}}}"
            condition = f"((t := {expression}) is {place} or (type(t) is {kind} and t == {place}))"
            self.guard(key, condition, *objects, value, type(value))
        else:
            self.guard(key, f"{expression} is {place}", *objects, value)
        self.seen(value)

    def seen(self, value: Any) -> None:
        """Record an outside object. The array of a tensor becomes an input."""
        if isinstance(value, Tensor):
            self.input(value, "tensor", value)
        elif type(value) in (tuple, frozenset):
            for each in value:
                self.seen(each)

    def input(self, tensor: Tensor, kind: str, source: Any) -> None:
        """Make a tensor that exists before the run an input of the program."""
        tracer = self.tracer
        if self.stopped or id(tensor) in tracer.program.by_tensor or id(tensor) in tracer.leaves:
            return
        if id(tensor._array) in tracer.values:
            tracer.aliases.add(id(tensor))
            return
        if not is_plain(tensor):
            self.stop("a tensor has a class, hooks or properties that programs do not support")
            return
        number = tracer.register(tracer.program.add_input(kind, source, tensor), tensor._array)
        self.digests[number] = digest(tensor._array)

    def made(self, value: Any) -> Any:
        """Record an object that the function has created."""
        if type(value) not in IMMUTABLE:
            self.inside[id(value)] = value
        return value

    def is_inside(self, value: Any) -> bool:
        """Return whether the function has created an object."""
        return id(value) in self.inside

    def is_outside(self, value: Any) -> bool:
        """Return whether an object is known to exist before the function runs, because a guard requires it."""
        return any(each is value for _, objects in self.guards.values() for each in objects)

    def contents(self, value: Any, within: tuple[int, ...] = ()) -> Any:
        """Record that the elements of `value` are read. `within`: the identities of the objects that contain it."""
        if self.stopped or type(value) in IMMUTABLE or id(value) in within:
            return value
        if within and type(value) is dict and "params" in value:
            return value  # a group of an optimizer, whose options are read one by one
        if self.is_inside(value):
            for each in (value.values() if type(value) is dict else value) if type(value) in MUTABLE else ():
                if isinstance(each, (*MUTABLE, tuple)):
                    self.contents(each, (*within, id(value)))
                elif is_changeable(type(each)):
                    self.keep_class(each)
        elif isinstance(value, tuple):
            for each in value:
                self.contents(each, (*within, id(value)))
        elif isinstance(value, MUTABLE):
            self.elements(value)
            if is_changeable(type(value)):
                self.keep_class(value)
        elif isinstance(value, torch.nn.Module):
            self.elements(vars(value)["_modules"])
            self.elements(vars(value)["_parameters"])
            if isinstance(value, OF_OTHERS):
                self.elements(vars(value))
        elif has_elements(value) or isinstance(value, types.SimpleNamespace):
            self.stop(f"elements of an object of class {type(value).__name__} are read")
        elif is_changeable(type(value)):
            self.keep_class(value)
        return value

    def each(self, values: Any) -> Iterator[Any]:
        """Yield the elements of `values`, and record that their elements are read."""
        for value in values:
            yield self.contents(value)

    def read(self, value: Any) -> None:
        """Record that the elements of `value`, and their elements, are read."""
        kind = type(value)
        if kind in (tuple, list):
            self.contents(value)
            for each in value:
                self.read(each)
        elif kind in (dict, set):
            self.contents(value)
        elif kind in FOREIGN or (hasattr(value, "__array__") and not isinstance(value, Tensor)):
            self.stop("an array that is not a tensor is read")

    def elements(self, value: Any) -> None:
        """Require that a list, dictionary or set has the same elements."""
        self.stores.reading(value)
        key = "elements", id(value)
        if key in self.guards:
            return
        items = tuple(value)
        condition, expected = same("{0}", "{1}", items)
        self.guard(key, condition, value, expected)
        if isinstance(value, dict):
            items = tuple(value.values())
            condition, expected = same("{0}.values()", "{1}", items)
            self.guard(("values", id(value)), condition, value, expected)
        for each in items:
            self.seen(each)
            if isinstance(each, (*MUTABLE, tuple)):
                self.contents(each, (id(value),))
            elif is_changeable(type(each)):
                self.keep_class(each)

    def keep_class(self, value: Any) -> None:
        """Require that the class of an object does not change.

        A class of the user must keep its bases and the names of its attributes, because methods such as `__bool__` and
        properties take precedence over attributes that the function has read.
        """
        kind = type(value)
        self.guard(("type", id(value)), "type({0}) is {1}", value, kind)
        self.keep_bases(kind)

    def keep_bases(self, kind: type) -> None:
        """Require that a class of the user keeps its bases and the names of its attributes."""
        if is_changeable(kind) and ("bases", id(kind)) not in self.guards:
            self.guard(("bases", id(kind)), "{0}.__mro__ is {1}", kind, kind.__mro__)
            for each in filter(is_changeable, kind.__mro__):
                self.guard(("names", id(each)), "{1}(*{0}.__dict__)", each, identical(vars(each)))

    def keep_declared(self, value: Any, name: str) -> None:
        """Require that the classes of an object keep their declarations of an attribute that the object itself may have."""
        self.keep_class(value)
        owner = next((each for each in type(value).__mro__ if name in vars(each)), None)
        if owner is not None and is_changeable(owner):
            self.guard(("declared", id(owner), name), "{0}.__dict__[{1}] is {2}", owner, name, vars(owner)[name])

    def has_fields(self, kind: type) -> bool:
        """Return whether a class is a named tuple. If it is, require that the defaults of its fields do not change."""
        if not (issubclass(kind, tuple) and kind.__new__ is not tuple.__new__ and hasattr(kind, "_fields")):
            return False
        new: Any = kind.__new__
        self.require(("new", kind), "{0}.__new__", new, kind)
        self.require(("defaults", kind), "{0}.__new__.__defaults__", getattr(new, "__defaults__", None), kind)
        return True

    def is_made_of_fields(self, kind: Any) -> bool:
        """Return whether a data class only stores fields. If it does, require that their defaults do not change."""
        init, new = kind.__init__, kind.__new__
        generated = type(init) is types.FunctionType and init.__code__.co_qualname.startswith("__create_fn__")
        if not (generated and type(kind) is type and new is object.__new__ and not hasattr(kind, "__post_init__")):
            return False
        self.keep_bases(kind)
        self.require(("init", kind), "{0}.__init__", init, kind)
        self.require(("defaults", kind), "{0}.__init__.__defaults__", init.__defaults__, kind)
        return "__slots__" not in vars(kind)

    def keep_answer(self, function: Any, args: tuple[Any, ...]) -> None:
        """Require that `isinstance`, `issubclass` or `type` give the same answer for an object."""
        value, *kinds = args
        if function is issubclass:
            self.guard(("issubclass", value, *kinds), "issubclass({0}, {1}) is {2}", *args, issubclass(*args))
        elif type(value) not in (*IMMUTABLE, *MUTABLE, tuple) and not isinstance(value, Tensor):
            self.keep_class(value)
            for kind in kinds if function is isinstance and isinstance(type(value), type) else ():
                self.guard(
                    ("isinstance", id(value), kind), "isinstance({0}, {1}) is {2}", value, kind, isinstance(value, kind)
                )

    def of_class(self, kind: type, name: str, declared: Any) -> None:
        """Require that a class keeps its attribute of this name, which is `declared` or a value that `declared` provides."""
        function = ".__func__" if isinstance(declared, classmethod) else ""
        found = declared.__func__ if function else getattr(kind, name)
        self.require(("class", id(kind), name), member(name) + function, found, kind)

    def tree(self, module: Any) -> None:
        """Require that a module and its descendants have the same modules, parameters and buffers."""
        for each in torch.nn.Module.modules(module):
            for table in ("_modules", "_parameters", "_buffers"):
                self.elements(vars(each)[table])

    # --- reads and changes by expressions ------------------------------------------------------------------------------

    def attribute_of_super(self, value: Any, name: str) -> Any:
        """Read an attribute of `super()`. The searched classes must keep their attributes of this name."""
        classes = value.__self_class__.__mro__
        for kind in classes[classes.index(value.__thisclass__) + 1 :]:
            if kind is object or is_ours(kind):
                break
            if name in vars(kind):
                self.require(("of class", id(kind), name), "{0}.__dict__[{1}]", vars(kind)[name], kind, name)
                break
            self.guard(("of class", id(kind), name), "{1} not in {0}.__dict__", kind, name)
        return getattr(value, name)

    def grad_of(self, tensor: Tensor) -> Any:
        """Read the gradient of a leaf."""
        program, grad = self.tracer.program, tensor._grad
        if id(tensor) in program.grads_known or id(tensor) in self.tracer.leaves:
            return grad
        if grad is None:
            program.expect_no_grad(tensor)
        elif is_plain(grad):
            self.tracer.register(program.grad_of(tensor), grad._array)
        else:
            self.stop("a gradient has a class that programs do not support")
        return grad

    def store_grad(self, leaf: Tensor, grad: Any) -> None:
        """Set the gradient of a tensor. None removes it."""
        held, leaf.grad = leaf._grad, grad
        if self.stopped or (grad is held and grad is not None):
            return
        self.seen(leaf)
        program, values = self.tracer.program, self.tracer.values
        number = None if grad is None else values.get(id(grad._array))
        if id(leaf) not in program.by_tensor:
            self.stop("the gradient of a tensor is set that the function has made")
        elif grad is None:
            program.grads_known[id(leaf)] = leaf
            program.clear_grads([leaf])
        elif number is None or number in program.inputs or grad._base is not None or grad._edge is not None:
            self.stop("a gradient is set that no operator of the function has made")
        else:
            program.grads_known[id(leaf)] = leaf
            program.set_grad(leaf, Reference(number))

    def absent(self, value: Any, name: str, default: Any) -> Any:
        """Record that `value` lacks an attribute."""
        if isinstance(value, Tensor):
            self.stop(f"the attribute {name} of a tensor is asked for")
        elif not self.is_inside(value):
            self.guard(("absent", id(value), name), "not hasattr({0}, {1})", value, name)
        return default

    def changed(self, target: Any, name: str | None, storing: bool = True) -> Any:
        """Record that an attribute or elements of `target` are set or deleted. Return the object to set them on."""
        if type(target) in IMMUTABLE or type(target) is tuple or isinstance(target, Symbol):
            return target
        self.operated("setitem", target)
        if storing and not isinstance(target, Tensor) and self.stores.accepts(target, name):
            return Target(self.stores, target)
        if self.tracer.program.numbers or self.tracer.dims or self.tracer.elements:
            self.changes.append(target)
        if self.stopped:
            return target
        if isinstance(target, Tensor):
            if name == "grad":
                return Leaf(self, target)
            if name is not None:
                self.stop(f"the attribute {name} of a tensor is set")
        elif not self.is_inside(target) or (self.tracer.rehearsing is not None and isinstance(target, Node)):
            what = "an object" if name is None else f"the attribute {name} of an object"
            self.stop(f"{what} that the function did not create is changed")
        return target

    def without_symbols(self) -> None:
        """Replace the symbols in changed objects by numbers."""
        for target in self.changes:
            unwrapped(target if type(target) in (list, dict) else getattr(target, "__dict__", None))

    def augmenting(self, name: str, target: Any, value: Any) -> Any:
        """Record that an operation such as `+=` with `value` may change `target`."""
        self.operated(name, target, value)
        if not isinstance(target, (Tensor, int, float)):
            self.fix([target, value])
        self.changed(target, None, False)
        return self.contents(value)

    def part(self, name: str, owner: Any, key: Any, is_item: bool) -> Part:
        """Return the element `owner[key]`, or the attribute, for an operation such as `+=`."""
        if not (isinstance(owner, Tensor) and not is_item and key == "data"):
            self.changed(owner, None if is_item else key)
        return Part(self, name, owner, key, is_item)

    def trying(self) -> list[int]:
        """Record that the body of a `try` begins. Return the numbers of instructions and of errors of operators."""
        return [len(self.tracer.program.instructions), self.tracer.failed]

    def tried(self, mark: list[int]) -> None:
        """End the capture if the body of a `try` called operators that may raise in other calls, or that have raised."""
        if not mark:
            return  # the end was recorded before
        failed, begin = mark.pop(), mark.pop()
        if failed < self.tracer.failed or not all(map(never_raises, self.tracer.program.instructions[begin:])):
            self.stop("an operator that may raise an error is called within try")

    def entering(self, manager: Any) -> Any:
        """Record that a context manager is entered."""
        if type(manager) in CONTEXTS and not self.is_inside(manager):
            self.elements(vars(manager))
        if not isinstance(inspect.getattr_static(type(manager), "__enter__", None), types.FunctionType):
            self.stop(f"a context manager of class {type(manager).__name__} is entered")
        return manager

    # --- numbers and sizes ----------------------------------------------------------------------------------------------

    def fix(self, values: Any) -> None:
        """Require that the numbers among the arguments have not changed, because their uses are not recorded."""
        if self.tracer.program.numbers or self.tracer.dims or self.tracer.elements:
            for each in symbols_in(values):
                each.fix()

    def fix_shape(self, value: Any) -> None:
        """Require that the sizes of a tensor have not changed."""
        if isinstance(value, Tensor):
            self.fix([self.tracer.size(value, dim) for dim in range(value.ndim)])

    def fix_for(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Require that the sizes of tensors have not changed, if a function of this name computes with them internally."""
        if name.removeprefix("linalg_") in OF_ONE_SIZE:
            for each in (*args, *kwargs.values()):
                self.fix_shape(each)
        elif name in ALONG_ONE and args and isinstance(args[0], Tensor):
            position, default = ALONG_ONE[name]
            dim = kwargs.get("dim", args[position] if len(args) > position else default)
            if type(dim) is int and -args[0].ndim <= dim < args[0].ndim:
                self.fix([self.tracer.size(args[0], dim % args[0].ndim)])

    def sizes_in(self, values: Any) -> list[Symbol]:
        """Return the symbols for sizes among values. Other symbols are fixed."""
        found = [each for each in symbols_in(values) if not each.is_fixed] if self.tracer.dims else []
        self.fix([each for each in symbols_in(values) if not self.tracer.is_of_sizes([each])])
        return [each for each in found if self.tracer.is_of_sizes([each])]

    def window(self, begin: int, symbols: list[Symbol]) -> None:
        """Record that the instructions from `begin` on depend on symbols that were passed as plain numbers."""
        if symbols and not self.stopped:
            self.tracer.windows.append((begin, len(self.tracer.program.instructions), symbols))

    def size_of(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method that returns sizes of a tensor, with symbols for the sizes."""
        plain_result = function(*map(plain, args), **kwargs)
        tensor, *rest = args
        self.fix((*rest, *kwargs.values()))
        sizes = tuple.__new__(Size, [self.tracer.size(tensor, dim) for dim in range(tensor.ndim)])
        if function.__name__ == "size":
            dim = rest[0] if rest else kwargs.get("dim")
            return sizes if dim is None else sizes[dim]
        return self.folded("mul", sizes) if sizes else plain_result

    def arithmetic(self, name: str, left: Any, right: Any) -> Any:
        """Apply an operator to two values."""
        function = getattr(operator, name)
        symbolic = isinstance(left, Symbol) or isinstance(right, Symbol)
        if not symbolic or isinstance(left, Tensor) or isinstance(right, Tensor):
            if (
                name == "add"
                and isinstance(left, tuple)
                and isinstance(right, Size | tuple)
                and symbols_in([left, right])
            ):
                return tuple.__new__(Size if Size in (type(left), type(right)) else tuple, (*left, *right))
            self.operated(name.strip("_"), left, right)
            return function(self.contents(left), self.contents(right))
        return self.tracer.derived(function, [left, right], self.computed(function, left, right))

    def computed(self, function: Any, *operands: Any) -> Any:
        """Return the result of a function of numbers. If it raises an error, the numbers are fixed."""
        try:
            return function(*map(plain, operands))
        except (ArithmeticError, ValueError):
            self.fix(operands)
            raise

    def folded(self, name: str, numbers: Any) -> Any:
        """Return the sum, or the product, of numbers."""
        return functools.reduce(functools.partial(self.arithmetic, name), numbers)

    def comparison(self, name: str, left: Any, right: Any) -> Any:
        """Compare two values."""
        function = getattr(operator, name)
        symbolic = isinstance(left, Symbol) or isinstance(right, Symbol)
        if not symbolic or isinstance(left, Tensor) or isinstance(right, Tensor):
            self.operated(name, left, right)
            return function(left, right)
        result = function(plain(left), plain(right))
        self.tracer.outcome(function, [left, right], result)
        return result

    def identified(self, value: Any) -> Any:
        """Record that the identity of `value` is read."""
        self.fix([value])
        if any(each.kind == "grad" and each.tensor is value for each in self.tracer.program.inputs.values()):
            self.stop("the identity of a gradient is read")
        value = plain(value)
        if is_record(value) and id(value) in self.stores.given.containers:
            self.stop("the identity of an argument is read")
        of_value = type(value) in (float, complex, str, bytes, frozenset, tuple, *MUTABLE)
        if (of_value or (type(value) is int and not -5 <= value <= 256)) and not self.is_inside(value):
            self.stop(f"the identity of a {type(value).__name__} is read")  # guards compare its value
        return value

    def fixed(self, value: Any) -> Any:
        """Record that `value` is read in a way that is not followed."""
        self.fix([value])
        return value


def is_of_tensors(value: Any) -> bool:
    """Return whether a value consists of tensors, None and containers."""
    if type(value) in (list, tuple):
        return all(map(is_of_tensors, value))
    return (
        value is None or isinstance(value, Tensor) or (type(value) is dict and all(map(is_of_tensors, value.values())))
    )


def member(name: str) -> str:
    """Return the source that reads an attribute of the first object of a condition."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return f"{{0}}.{name}"
    return f"getattr({{0}}, {name!r})"


class Leaf:
    """A tensor whose gradient is set or deleted."""

    guards: Guards
    tensor: Tensor

    def __init__(self, guards: Guards, tensor: Tensor) -> None:
        object.__setattr__(self, "guards", guards)
        object.__setattr__(self, "tensor", tensor)

    def __setattr__(self, name: str, value: Any) -> None:
        self.guards.store_grad(self.tensor, value)

    def __delattr__(self, name: str) -> None:
        self.guards.store_grad(self.tensor, None)


class Part:
    """An element or an attribute of an object, which an augmented assignment reads and sets."""

    def __init__(self, guards: Guards, name: str, owner: Any, key: Any, is_item: bool) -> None:
        self.guards, self.name, self.owner, self.key, self.is_item = guards, name, owner, key, is_item

    @property
    def value(self) -> Any:
        """The element or the attribute, which the operation may change in place."""
        if isinstance(self.owner, Tensor) and self.key == "grad":
            found = self.guards.grad_of(self.owner)
        elif isinstance(self.owner, Tensor) or self.guards.is_inside(self.owner):
            found = self.owner[self.key] if self.is_item else getattr(self.owner, self.key)
        else:
            read = self.guards.element if self.is_item else self.guards.attribute
            found = read(self.owner, self.key)
        return self.guards.changed(self.guards.operated(self.name, found), None, False)

    @value.setter
    def value(self, value: Any) -> None:
        if (
            isinstance(self.owner, Tensor)
            and not self.is_item
            and self.key == "data"
            and value._array is self.owner._array
        ):
            return
        target = self.guards.changed(self.owner, None if self.is_item else self.key)
        if self.is_item:
            target[self.key] = value
        else:
            setattr(target, self.key, value)
