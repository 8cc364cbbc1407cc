"""The observer of a rewritten function. It creates guards for outside objects. Changes of outside objects end the capture.

An object is *inside* if the function, or a function that it calls, has created it. Each attribute, global variable, element and
method of an outside object that was read must be the same object, or an equal number, when the program replaces the function.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import inspect
import math
import sys
import threading
import types
from contextvars import ContextVar
from typing import Any

import adjoint as torch
from adjoint.device import Size

from ..tape import modes
from ..tensor import Tensor
from .conditions import Structure
from .followed import FOLLOWED, call_module, constant_result, distributed, driven, host, is_driven
from .guards import Guards, Part, member
from .instrument import NotReadable, rewritten
from .known import (
    ARITHMETIC,
    BOOL,
    BUILT_IN,
    CONSTANT,
    CONSUMING,
    CONTEXTS,
    CREATING,
    FROM_OUTSIDE,
    GIVING,
    IMMUTABLE,
    IN_MODE,
    LIBRARIES,
    LOOKING_UP,
    MODULES,
    MUTABLE,
    NAMESPACES,
    OF_NO_SIZE,
    PACKAGE,
    PURE,
    READING,
    REARRANGING,
    REFUSED_METHODS,
    SIZES,
    TRUSTED,
    UNSEEN,
    WITH_NUMBERS,
    Made,
    add_code,
    digest,
    has_numbers,
    is_asked,
    is_changeable,
    is_constant,
    is_data,
    is_ours,
    is_plain,
    is_standard,
    may_be_called,
    modes_in_force,
    names_in,
    own_name,
)
from .steps import clears_as_usual
from .stores import MISSING, Stores
from .symbols import Symbol, SymbolicFloat, plain, symbols_in, without_symbols
from .tracer import Tracer
from .transforms import followed, inner, is_transform


class Observer(Guards):
    """Follows one run of a function. `guards` are the conditions, as source with the objects that the source names."""

    def __init__(self, tracer: Tracer, given: Structure, known: set[tuple[int, Any]]) -> None:
        super().__init__(tracer)
        self.stores = Stores(self, given, known)
        self.functions: dict[Any, tuple[types.FunctionType, frozenset[str]]] = {}
        self.ours: set[types.CodeType] = set()
        self.harmless: dict[int, types.CodeType] = {}
        self.trusting = False
        self.modes = modes_in_force()
        self.parts: list[Symbol] = []

    # --- the run --------------------------------------------------------------------------------------------------------

    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the rewritten `function`, and follow it."""
        if sys.getprofile() is not None:
            self.stop("a profile is recorded")
            return function(*args, **kwargs)
        casts, modes.STATE.casts = modes.STATE.casts, None  # the casts of autocast, which the program performs itself
        with self.tracer:
            sys.setprofile(self.entered)
            try:
                return self.call(function, *args, **kwargs)
            finally:
                sys.setprofile(None)
                modes.STATE.casts = casts

    def check(self, result: Any) -> None:
        """End the capture if a mode stays active, or if an input that the program does not change has changed."""
        if modes_in_force() != self.modes:
            self.stop("a mode is left open")
        self.check_after_others(result)
        program = self.tracer.program
        self.stores.check(program)
        for number, before in self.digests.items():
            if number not in program.changes and digest(program.inputs[number].tensor._array) != before:
                self.stop("memory is changed outside of operators")

    def entered(self, frame: types.FrameType, event: str, argument: Any) -> None:
        """Record which functions run. Functions outside of this package that are not rewritten may have any effect."""
        if event != "call" or id(frame.f_code) in self.harmless or self.stopped:
            return
        code = frame.f_code
        file = code.co_filename
        if code in READING:
            if code is BOOL and is_asked(frame) and self.tracer.truth(frame.f_locals["self"], True) is not None:
                return  # the library checks parameters and values
            self.stop(f"{code.co_name}() reads elements of a tensor")
        elif file.startswith(LIBRARIES):
            self.harmless[id(code)] = code
        elif not (
            self.trusting
            or code in self.ours
            or (is_standard(frame) and not self.is_direct(frame))
            or self.imports(frame)
        ):
            self.stop(f"{code.co_qualname} ({file}) is not called by the function itself")

    entered.watches_users = True  # type: ignore[attr-defined]

    def is_direct(self, frame: types.FrameType) -> bool:
        """Return whether an expression of the function calls this method, which may read any attribute of its object."""
        caller = frame.f_back
        asks = caller is not None and (caller.f_code in self.ours or caller.f_code in ASKING)
        return asks and not (frame.f_code.co_filename.endswith(("enum.py", "abc.py")) or frame.f_code in CONSTANT)

    def imports(self, frame: types.FrameType | None) -> bool:
        """Return whether a module is being imported. This package imports modules on first use."""
        while frame is not None and frame.f_code not in self.ours:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    # --- reads by expressions -------------------------------------------------------------------------------------------

    def truth(self, value: Any) -> Any:
        """Record that the truth of `value` is tested."""
        if self.unobserved is not None:
            self.stop("a condition is tested after a step that calls functions of the user")
        found = self.tracer.truth(value) if type(value) is Tensor else None
        return self.contents(value) if found is None else found

    def slice(self, *parts: Any) -> slice:
        """Record a slice of an index. The next index contains it."""
        self.parts += self.sizes_in(parts)
        return slice(*map(plain, parts))

    def element(self, value: Any, index: Any) -> Any:
        """`value[index]`."""
        sizes, self.parts = [*self.parts, *self.sizes_in([index])], []
        self.operated("getitem", value)
        if isinstance(value, Tensor) and sizes:
            begin = len(self.tracer.program.instructions)
            result = value[without_symbols(index)]
            self.window(begin, sizes)
            return result
        self.fix([index, sizes])
        if self.stopped or type(value) in (tuple, *IMMUTABLE) or isinstance(value, Tensor) or self.is_inside(value):
            return value[index]
        if type(value) in (list, dict) and type(index) in (int, str, bool):
            if (known := self.stores.read(value, index, True)) is not MISSING:
                return known
            try:
                found = value[index]
            except LookupError:
                self.contents(value)
                raise
            if ("elements", id(value)) not in self.guards:
                self.require(("element", id(value), index), "{0}[{1}]", found, value, index)
            return found
        if isinstance(value, dict) and index not in value:
            self.stop("an element that a dictionary lacks is read")
        return self.contents(value)[index]

    def attribute(self, value: Any, name: str) -> Any:
        """Read `value.name`."""
        try:
            return self.attribute_of(value, name)
        except AttributeError:
            self.absent(value, name, None)
            raise

    def attribute_of(self, value: Any, name: str) -> Any:
        """Read an attribute that an object may have."""
        self.fix([value])
        kind = type(value)
        if is_changeable(kind) and (known := self.stores.read(value, name, False)) is not MISSING:
            return known
        if self.is_inside(value) and is_changeable(kind) and name not in getattr(value, "__dict__", ()):
            declared = inspect.getattr_static(kind, name, None)
            if declared is not None:
                self.of_class(kind, name, declared)
        if self.stopped or self.is_inside(value):
            return getattr(value, name)
        hosted = isinstance(value, torch.optim.Optimizer) and (
            name == "step" or (name == "zero_grad" and clears_as_usual(value))
        )
        if hosted or is_driven(value, name):
            method = functools.partial(host if hosted else driven, self, value, name)
            self.inside[id(method)] = method
            return method
        if isinstance(value, Tensor):
            return self.attribute_of_tensor(value, name)
        if kind is super:
            return self.attribute_of_super(value, name)
        of_tuple = isinstance(value, tuple) and (kind is tuple or is_ours(kind))
        if of_tuple or kind in IMMUTABLE or kind in MUTABLE or kind is ContextVar or isinstance(value, BUILT_IN):
            return getattr(value, name)
        declared = inspect.getattr_static(kind, name, None)
        if is_changeable(kind) and not isinstance(value, type):
            self.keep_declared(value, name)
        members = None if isinstance(value, threading.local) else getattr(value, "__dict__", None)
        if isinstance(value, type):
            if not is_ours(value):
                self.of_class(value, name, inspect.getattr_static(value, name, None))
            return getattr(value, name)
        if isinstance(members, dict):
            if isinstance(value, types.ModuleType):
                getattr(value, name)  # may import the module
            if name in members and not inspect.isdatadescriptor(declared):
                self.require((id(members), name), "{0}[{1}]", members[name], members, name)
                return members[name]
            if declared is None and isinstance(value, torch.nn.Module) and is_ours(kind.__getattr__):
                for table in ("_parameters", "_buffers", "_modules"):
                    if name in members.get(table, ()):
                        found = members[table][name]
                        self.guard((id(members), name, "absent"), "{1} not in {0}", members, name)
                        if ("elements", id(members[table])) not in self.guards:
                            self.require((id(members[table]), name), "{0}[{1}]", found, members[table], name)
                        return found
        self.keep_class(value)
        if isinstance(declared, property) and isinstance(declared.fget, types.FunctionType):
            self.of_class(kind, name, declared)
            return self.call(declared.fget, value)
        found = getattr(value, name)
        if isinstance(members, dict) and name not in members:
            self.guard((id(members), name, "absent"), "{1} not in {0}", members, name)
        if not is_ours(kind) or isinstance(value, torch.nn.Module):
            if isinstance(declared, (types.FunctionType, classmethod, staticmethod)):
                self.of_class(kind, name, declared)
            else:
                self.require(("attribute", id(value), name), member(name), found, value)
        return found

    def attribute_of_tensor(self, tensor: Tensor, name: str) -> Any:
        """Read an attribute of a tensor. Most attributes follow from the guarded properties."""
        if name == "grad" and type(tensor._edge) is not tuple:
            return self.grad_of(tensor)
        if name in UNSEEN or inspect.getattr_static(type(tensor), name, None) is None:
            self.stop(f"the attribute {name} of a tensor is read")
        if name == "shape" and self.tracer.dims:
            return tuple.__new__(Size, [self.tracer.size(tensor, dim) for dim in range(tensor.ndim)])
        found = getattr(tensor, name)
        if name == "data":
            return found
        if callable(found):
            self.methods.setdefault(type(tensor), {})[name] = getattr(type(tensor), name)
        if type(found) is int and name not in OF_NO_SIZE:
            self.fix_shape(tensor)
        return found

    # --- calls ------------------------------------------------------------------------------------------------------------

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """`function(*args, **kwargs)`."""
        if self.stopped:
            return function(*map(plain, args), **{name: plain(each) for name, each in kwargs.items()})
        kind = type(function)
        if getattr(function, "_torchdynamo_allowed", False) or getattr(function, "__module__", None) in TRUSTED:
            return self.trusted(function, args, kwargs)
        if own_name(getattr(function, "__module__", None)).startswith("adjoint.distributions."):
            return distributed(self, function, args, kwargs)
        if getattr(function, "_dynamo_marked_constant", False):
            return constant_result(self, function, args, kwargs)
        if getattr(function, "_torchdynamo_disable", False):
            self.stop(f"{function.__name__} is disabled")
            return self.call(function, *args, **kwargs)
        original = getattr(function, "_torchdynamo_orig_callable", None)
        if original is not None:
            of_object = kind is types.MethodType and "_torchdynamo_orig_callable" in vars(function.__func__)
            return self.call(types.MethodType(original, function.__self__) if of_object else original, *args, **kwargs)
        if kind is types.MethodType and type(function.__func__) is types.FunctionType:
            return self.called(function.__func__, function, (function.__self__, *args), kwargs)
        if kind is types.FunctionType:
            return self.called(function, function, args, kwargs)
        if isinstance(function, torch.nn.Module):
            return call_module(self, function, args, kwargs)
        if kind is functools.partial and self.is_inside(function):
            return function(*args, **kwargs)
        if kind is functools.partial:
            self.require(("keywords", id(function)), "{0}.keywords", function.keywords, function)
            self.elements(function.keywords)
            for each in (*function.args, *function.keywords.values()):
                self.seen(each)
            return self.call(function.func, *function.args, *args, **{**function.keywords, **kwargs})
        if isinstance(function, type):
            return self.constructed(function, args, kwargs)
        if isinstance(function, BUILT_IN):
            return self.built_in(function, args, kwargs)
        declared = inspect.getattr_static(kind, "__call__", None)
        if type(declared) is types.FunctionType and not is_ours(kind):
            self.keep_class(function)
            self.of_class(kind, "__call__", declared)
            return self.called(declared, types.MethodType(declared, function), (function, *args), kwargs)
        self.stop(f"{getattr(function, '__name__', kind.__name__)} is called, which cannot be followed")
        return self.call(function, *args, **kwargs)

    def called(self, function: types.FunctionType, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a Python function, rewritten unless it belongs to this package. `given`: the function, or the method."""
        if function.__code__ in self.ours:
            return function(*args, **kwargs)
        if (followed_by := FOLLOWED.get(function)) is not None:
            return followed_by(self, given, args, kwargs)
        if function is torch.nn.Module._call_impl:
            return call_module(self, args[0], args[1:], kwargs)
        if function.__code__ in IN_MODE:
            return self.in_mode(function, args, kwargs)
        if function.__code__.co_filename.startswith(LIBRARIES):
            if given is function and is_transform(function):
                args = tuple([followed(each, self.call) for each in args])
                return self.made(followed(given, self.call)(*args, **kwargs))
            of_module = args and isinstance(args[0], torch.nn.Module) and given is not function
            if of_module and function.__name__ in LISTING:
                self.tree(args[0])
                return self.made(function(*args, **kwargs))
            if not (inner(function).__code__.co_filename.startswith(MODULES) and self.is_of_modules(function)):
                return self.of_package(function, given, args, kwargs)
            function = inner(function)
        try:
            known = self.rewritten(function)
        except NotReadable as error:
            self.stop(str(error))
            return function(*args, **kwargs)
        return known(*args, **kwargs)

    def trusted(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that reads only its arguments and has no effects."""
        given = (*args, *kwargs.values())
        self.fix(given)
        for each in given:
            self.read(each)
            for part in each if type(each) in (list, tuple) else (each,):
                self.fix_shape(part)
        before, self.trusting = self.trusting, not is_ours(function)
        try:
            return self.made(function(*without_symbols(args), **without_symbols(kwargs)))
        finally:
            self.trusting = before

    def in_mode(self, function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function decorated with a context manager of this package."""
        held = inspect.getclosurevars(function).nonlocals
        if type(held["self"]) not in CONTEXTS:
            self.stop(f"a function that {type(held['self']).__name__} decorates is called")
            return function(*args, **kwargs)
        decorated = held["func" if "func" in held else "function"]
        with held["self"] if type(held["self"]) is torch.autocast else held["self"].clone():
            return self.call(decorated, *args, **kwargs)

    def is_of_modules(self, function: types.FunctionType) -> bool:
        """Return whether a function of `nn.modules` computes, and is not inherited by every module."""
        return getattr(torch.nn.Module, function.__name__, None) is not function

    def rewritten(self, function: types.FunctionType) -> types.FunctionType:
        """Return the rewritten form of a function. Its globals and closure must stay unchanged."""
        if function not in self.functions:
            self.functions[function] = rewritten(function, self), names_in(function.__code__)
            add_code(self.ours, self.functions[function][0].__code__)
        known, names = self.functions[function]
        globals_ = function.__globals__
        if not function.__code__.co_filename.startswith(PACKAGE):
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                self.require((id(function), name), f"{{0}}.{name}", getattr(function, name), function)
            for name in names:
                if name in globals_:
                    self.require((id(globals_), name), "{0}[{1}]", globals_[name], globals_, name)
                else:
                    self.guard((id(globals_), name, "absent"), "{1} not in {0}", globals_, name)
                    if name in vars(builtins):
                        self.require((id(builtins), name), "{0}[{1}]", vars(builtins)[name], vars(builtins), name)
        for cell in function.__closure__ or ():
            try:
                self.require(("cell", id(cell)), "{0}.cell_contents", cell.cell_contents, cell)
            except ValueError:
                self.stop("a variable of an enclosing function is not assigned yet")
        return known

    def of_package(self, function: Any, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of this package that reads its arguments."""
        for each in (*args, *kwargs.values()):
            self.read(each)
        name, module = function.__name__, own_name(function.__module__)
        is_method = bool(args) and isinstance(args[0], Tensor) and hasattr(Tensor, name)
        if is_method and name in SIZES and self.tracer.dims:
            return self.size_of(given if given is function else given.__func__, args, kwargs)
        if name == "zero_grad" and args and isinstance(args[0], (torch.nn.Module, torch.optim.Optimizer)):
            return host(self, args[0], name, *args[1:], **kwargs)
        if is_method and name == "item" and len(args) == 1 and (found := self.element_of(args[0])) is not None:
            return found
        if self.tracer.dims:
            self.fix_for(name, args, kwargs)
        creates = name in CREATING and module in NAMESPACES
        sizes: list[Symbol] = []
        if name not in WITH_NUMBERS:
            if creates:
                self.sizes_in(args[:1] if name == "full" else args)  # numbers that the program reads
                self.fix(kwargs.values())
            else:
                sizes = self.sizes_in((*args, *kwargs.values()))
            numbers = args
            args, kwargs = without_symbols(args), {key: without_symbols(each) for key, each in kwargs.items()}
            if creates and all(map(is_constant, (*args, *kwargs.values()))):
                return self.created(given, args, kwargs, [*map(self.tracer.numbers, numbers)])
            self.fix(numbers if creates else ())
        if is_method:
            if name in REFUSED_METHODS and not (name == "requires_grad_" and self.tracer.makes_leaf(args[0])):
                self.stop(f"{name}() of a tensor is called")
        elif module in ("adjoint.autograd", "adjoint.autograd.backward") and name in ("grad", "backward"):
            pass
        elif not may_be_called(name, module):
            self.stop(f"{module}.{name} is called")
        begin = len(self.tracer.program.instructions)
        result = given(*args, **kwargs) if given is function else given(*args[1:], **kwargs)
        self.window(begin, sizes)
        if is_constant(result) and all(map(is_constant, (*args, *kwargs.values()))):  # the function reads a setting
            self.guard((id(given), repr(args), repr(kwargs)), "{0}(*{1}, **{2}) == {3}", given, args, kwargs, result)
        if self.tracer.dims and name not in OF_NO_SIZE and has_numbers(result):
            for each in (*args, *kwargs.values()):
                self.fix_shape(each)
        return result

    def element_of(self, tensor: Tensor) -> Any:
        """Return the symbol for the only element of a tensor, or None."""
        known = is_plain(tensor) and tensor.numel() == 1 and self.unobserved is None and not self.stopped
        return self.tracer.element(tensor) if known else None

    def created(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], operands: list[Any]) -> Any:
        """Call a function that creates a tensor from numbers. The program calls it again, with `operands`."""
        tracer, draws = self.tracer, function.__name__.startswith(("rand", "normal"))
        if draws:
            tracer.draws(True)
        tracer.__exit__()
        try:
            result = function(*args, **kwargs)
        finally:
            tracer.__enter__()
        if type(result) is not Tensor or not is_plain(result):
            self.stop(f"{function.__name__}() makes a tensor that is not plain")
            return result
        if result._edge is not None:
            tracer.leaves[id(result)] = result
        made = Made(function, kwargs)
        tracer.program.append(function.__name__, made, operands, [tracer.name(result._array)], keeps=draws)
        return result

    def constructed(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a class."""
        if kind not in ARITHMETIC and kind not in REARRANGING:
            self.fix((*args, *kwargs.values()))
        if kind not in PURE and not issubclass(kind, tuple):
            args, kwargs = tuple(map(plain, args)), {name: plain(each) for name, each in kwargs.items()}
        if kind in PURE:
            return self.built_in(kind, args, kwargs)
        if kind in CONTEXTS or kind in FROM_OUTSIDE:
            return self.made(kind(*args, **kwargs))
        if dataclasses.is_dataclass(kind) and self.is_made_of_fields(kind):
            return self.made(kind(*args, **kwargs))
        if issubclass(kind, BaseException) or self.has_fields(kind):
            return kind(*args, **kwargs)
        if is_ours(kind) and issubclass(kind, torch.nn.Module):
            made = self.made(kind(*args, **kwargs))
            if next(made.parameters(), None) is not None:
                self.stop(f"an object of class {kind.__name__} is created")
            return made
        self.stop(f"an object of class {kind.__name__} is created")
        return kind(*args, **kwargs)

    def built_in(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that is not written in Python."""
        owner: Any = getattr(function, "__self__", None)
        if type(owner) is list and function.__name__ == "append" and self.stores.takes(owner):
            return self.stores.append(owner, *args)
        if type(owner) is dict and function.__name__ in ("__setitem__", "update") and self.stores.accepts(owner, None):
            items = [args] if function.__name__ == "__setitem__" else self.contents(dict(*args, **kwargs)).items()
            for key, value in items:
                self.stores.set(owner, key, value, True)
            return None
        if function is setattr and type(args[1]) is str:
            return setattr(self.changed(*args[:2]), *args[1:])
        for each in args:
            self.operated(function.__name__, each)
            self.operated("iter", each)
        of_element = function is float and len(args) == 1 and isinstance(args[0], Tensor) and not args[0].requires_grad
        if of_element and (found := self.element_of(args[0])) is not None:
            return found if type(found) is SymbolicFloat else self.tracer.derived(float, [found], float(plain(found)))
        if function is len and len(args) == 1 and isinstance(args[0], Tensor) and args[0].ndim:
            return self.tracer.size(args[0], 0)
        if any(isinstance(each, Symbol) for each in args):
            numbers, args = args, tuple(map(plain, args))
            if (owner is math or function in ARITHMETIC) and not kwargs:
                return self.tracer.derived(function, [*numbers], self.computed(function, *numbers))
            self.fix(numbers if function is not isinstance else ())
        if function in (math.prod, sum) and len(args) == 1 and isinstance(args[0], (list, tuple)) and symbols_in(args):
            return self.folded("add" if function is sum else "mul", args[0])
        if function not in REARRANGING:
            self.fix((*args, *kwargs.values()))
        if function is getattr and len(args) >= 2:
            return self.attribute(*args[:2]) if len(args) == 2 or hasattr(args[0], args[1]) else self.absent(*args)
        if function is hasattr:
            if hasattr(*args):
                self.attribute(*args)
                return True
            return self.absent(args[0], args[1], False)
        if function is print or function is input or function is open:
            self.stop(f"{function.__name__}() is called")
        elif function in PURE and (isinstance(function, type) or owner is None or isinstance(owner, types.ModuleType)):
            for each in (*args, *kwargs.values()):
                self.contents(each)
            if function in CONSUMING:
                args = tuple([self.each(each) if hasattr(type(each), "__next__") else each for each in args])
            if function in (map, filter) and args[:1] != (None,):
                first, *rest = args
                return self.made(function(functools.partial(self.call, first), *rest))
            if function in (isinstance, issubclass, type):
                self.keep_answer(function, args)
            if function in (sorted, min, max) and kwargs.get("key") is not None:
                kwargs = {**kwargs, "key": functools.partial(self.call, kwargs["key"])}
            if (
                function in (iter, next)
                and not self.is_inside(args[0])
                and type(args[0]) not in (tuple, list, dict, range)
            ):
                self.stop("an iterator that the function did not create is advanced")
        elif owner is math or getattr(function, "__module__", None) == "math":
            for each in args:
                self.contents(each)
        elif type(owner) in MUTABLE:
            if not self.is_inside(owner):
                if function.__name__ in LOOKING_UP:
                    self.contents(owner)
                else:
                    self.stop(f"{function.__name__}() of an object that the function did not create is called")
            for each in args:
                self.contents(each)
        elif type(owner) in IMMUTABLE or type(owner) is tuple:
            for each in (*args, *kwargs.values()):
                self.contents(each)
                if type(owner) is str and function.__name__ == "format" and not is_data(each):
                    self.stop("an object is formatted, which may read its attributes")
        elif type(owner) is ContextVar and function.__name__ == "get" and not args:
            self.require(("variable", id(owner)), "{0}.get()", owner.get(), owner)
        elif isinstance(owner, Tensor):
            if function.__name__ in REFUSED_METHODS:
                self.stop(f"{function.__name__}() of a tensor is called")
        else:
            self.stop(f"{getattr(function, '__qualname__', function)} is called")
        result = function(*args, **kwargs)
        return result if function.__name__ in GIVING else self.made(result)


LISTING = "parameters named_parameters modules children buffers __iter__".split()
"""The methods of modules that list their parts."""

ASKING = frozenset(
    function.__code__
    for function in (
        *(Observer.built_in, Observer.element, Observer.arithmetic, Observer.comparison),
        *(Observer.of_package, vars(Part)["value"].fget, vars(Part)["value"].fset),
    )
)
"""The code of the methods that evaluate an expression of the function."""
