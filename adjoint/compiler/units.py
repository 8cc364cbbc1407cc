"""Functions that run in Python because a part of them cannot be captured.

The modules and functions that they call are compiled.

Such a function is rewritten once more, and only its calls change: `f(x)` becomes `units.unit(f)(x)`. A unit is the
compiled form of a module, of a function of the user, or of an optimizer's step. Everything else is called unchanged.
"""

from __future__ import annotations

import ast
import os
import sysconfig
import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from operator import is_not
from typing import Any

import adjoint as torch

from ..nn.modules.call import has_hooks
from .instrument import FINDING, NotReadable, Rewriter, asked, located, rewritten
from .known import CALL, LIBRARIES, MODULES, STANDARD
from .steps import Step
from .transforms import inner

INSTALLED = (STANDARD, sysconfig.get_path("purelib") + os.sep, *LIBRARIES)


class Calls(Rewriter):
    """Replaces only calls: `f(...)` becomes `units.unit(f)(...)`."""

    def visit(self, node: ast.AST) -> Any:
        """Replace the calls in a tree, and write private names as the compiler stores them in a class."""
        if isinstance(node, ast.Attribute):
            node.attr = self.mangled(node.attr)
        return self.visit_Call(node) if isinstance(node, ast.Call) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return the unit of the called object."""
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in FINDING):
            node.func = located(asked("unit", node.func, node.func), node.func)
        return node


class Units:
    """A function or a module whose calls are compiled one by one.

    `original`: the rewritten Python function. `owner`: the module or the object to which the method belongs.
    `compiled`: a function that creates the compiled form of a called object. `every`: whether modules of one operator are
    compiled too.
    """

    rewritten: Any = None

    def __init__(self, function: Any, compiled: Callable[[Any], Any], every: bool = False) -> None:
        self.function, self.compiled, self.every = function, compiled, every
        self.owner: Any = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
        self.units: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        original: Any = getattr(function, "__func__", function)
        kind: Any = type(self.owner)
        self.is_module = (
            isinstance(function, torch.nn.Module) or original is torch.nn.Module._call_impl
        )  # compiled in place
        self.original = original = kind.forward if self.is_module else original
        if type(original) is types.FunctionType:
            self.kept = definition(original)
            found = inner(original)
            if is_of_user(found) or found.__code__.co_filename.startswith(MODULES):
                with suppress(NotReadable):
                    self.rewritten = rewritten(found, self, Calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        owner = self.owner
        changed = self.is_module and (
            has_hooks(owner)
            or "forward" in vars(owner)
            or type(owner).forward is not self.original
            or (owner is self.function and type(owner).__call__ is not CALL)
        )
        if self.rewritten is None or changed or any(map(is_not, definition(self.original), self.kept)):
            return self.function(*args, **kwargs)
        return self.rewritten(*args, **kwargs) if owner is None else self.rewritten(owner, *args, **kwargs)

    def unit(self, function: Any) -> Any:
        """Return the object to call in place of `function`."""
        kind = type(function)
        if kind is types.MethodType:
            called = function.__func__
            if isinstance(function.__self__, torch.optim.Optimizer) and called.__name__ == "step":
                return self.step(function)
            found = self.known(called) if type(called) is types.FunctionType else called
            return function if found is called else types.MethodType(found, function.__self__)
        if kind is types.FunctionType:
            lasts = function.__globals__.get(function.__name__) is function  # it is not created in each call
            return self.known(function) if lasts else function
        return self.known(function) if isinstance(function, torch.nn.Module) else function

    def known(self, function: Any) -> Any:
        """Return the compiled form of a function or a module of the user, and any other object unchanged."""
        found = self.units.get(function)
        if found is None:
            gains = is_of_user(function) if type(function) is types.FunctionType else self.every or has_parts(function)
            found = self.units[function] = self.compiled(function) if gains else function
        return found

    def step(self, method: Any) -> Any:
        """Return a function that takes a step of an optimizer, with cached loops."""
        step = self.units.get(method.__self__)
        if step is None:
            step = self.units[method.__self__] = Step(method.__self__)
        return lambda *args, **kwargs: method(*args, **kwargs) if args or kwargs else step()


def definition(function: Any) -> tuple[Any, Any, Any]:
    """Return the parts of a function that determine its behaviour: its code and its defaults."""
    return function.__code__, function.__defaults__, function.__kwdefaults__


def has_parts(module: Any) -> bool:
    """Return whether a module may contain more than one operator."""
    return bool(module._modules) or is_of_user(type(module).forward)


def is_of_user(function: types.FunctionType) -> bool:
    """Return whether a function may be captured, and is not part of a library."""
    file = function.__code__.co_filename
    return not (
        file.startswith(INSTALLED)
        or hasattr(function, "_torchdynamo_disable")
        or hasattr(function, "_torchdynamo_orig_callable")
    )
