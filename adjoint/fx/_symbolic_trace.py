"""Tracing: a module runs with stand-ins, so that its calls become a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import threading
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import adjoint as torch

from .._runtime.forks import lock_across_forks
from .._runtime.tracebacks import frame_of_caller, is_ours, warn
from ..torch_names._utils import _assert
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, TracerBase, tracer_among

_LEAVES = ("torch.nn", f"{torch.__package__}.nn", "torch.ao.nn")
"""The folders of modules whose calls become nodes."""

_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
"""The functions that `wrap` has named: their globals, by identity and name."""

_wrapped_methods_to_patch: list[tuple[type, str]] = []
"""Classes and names of methods whose calls become nodes."""


class _Tracing(threading.local):
    """The number of active traces in this thread."""

    depth = 0


_tracing = _Tracing()

_lock = lock_across_forks()
"""The lock of the thread that traces.

It replaces functions for all threads. In other threads the functions behave as before.
"""

_STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class PHBase:
    """A value for `concrete_args` that remains an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class ProxyableClassMeta(type):
    """A metaclass. Objects that are created from stand-ins become nodes."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        tracer = tracer_among((args, kwargs))
        if tracer is not None:
            return tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Record calls of a function of the calling module as nodes: `torch.fx.wrap("len")`. It is also a decorator."""
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = frame_of_caller()
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def is_fx_tracing() -> bool:
    """Return whether this thread is tracing a module."""
    return _tracing.depth > 0


is_fx_symbolic_tracing = is_fx_tracing


def _recording(function: Callable[..., Any], method: bool = False) -> Callable[..., Any]:
    """Return a function whose calls become nodes if an argument, or an item of one, is a stand-in."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = tracer_among((args, kwargs))
        if tracer is None:
            return function(*args, **kwargs)
        if method:
            return tracer.create_proxy("call_method", function.__name__, args, kwargs)
        proxy = tracer.create_proxy("call_function", function, args, kwargs)
        proxy.node.meta["is_wrapped"] = True
        return proxy

    return call


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Any:
    """A context in which an attribute, or an item of a dict, is replaced."""
    if isinstance(owner, dict):
        before = owner.get(name, _replaced)
        owner[name] = value
        try:
            yield
        finally:
            if before is _replaced:
                del owner[name]
            else:
                owner[name] = before
        return
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _assert_is_none(value: Any, msg: str) -> None:
    """Raise an error if an argument that was fixed to None has another value."""
    if value is not None:
        raise AssertionError(msg)


class Tracer(TracerBase):
    """Traces modules and functions.

    Subclasses decide which modules are nodes (`is_leaf_module`).

    Args:
        autowrap_modules: modules whose functions become nodes when they are called with stand-ins.
        autowrap_functions: additional functions of this kind.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap = [
            *autowrap_functions,
            *(f for m in autowrap_modules for name, f in vars(m).items() if name[0] != "_" and callable(f)),
        ]
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        """Return whether a call of the module is recorded as one node.

        By default this is true for the modules of `torch.nn`, except `Sequential`.
        """
        ours = m.__module__.startswith(_LEAVES)
        return ours and not isinstance(m, torch.nn.Sequential)

    def path_of_module(self, mod: torch.nn.Module) -> str:
        """Return the name of a module in the traced module."""
        for name, each in self.root.named_modules():
            if each is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: torch.nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of a module call: a node, or the nodes of its `forward`."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return the result of reading an attribute of a module. Parameters of the traced module become nodes."""
        kinds = (torch.nn.Parameter, torch.Tensor) if self.proxy_buffer_attributes else torch.nn.Parameter
        name = self._tensors.get(id(attr_val)) if isinstance(attr_val, kinds) else None
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            kind = ParameterProxy if self.param_shapes_constant and isinstance(attr_val, torch.nn.Parameter) else Proxy
            make = functools.partial(kind, tracer=self, **({"param": attr_val} if kind is ParameterProxy else {}))
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
        return parameter_proxy_cache[name]

    def create_arg(self, a: Any) -> Any:
        """Return an argument in the form of nodes. Tensors and modules become nodes that read them."""
        if isinstance(a, torch.Tensor):
            return self.create_node("get_attr", self._name_of(a), (), {})
        if isinstance(a, torch.nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if type(type(a)) is ProxyableClassMeta:
            return self.create_node("get_attr", self._name_of(a, f"_{type(a).__name__}_constant_"), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        return super().create_arg(a)

    def _name_of(self, tensor: Any, prefix: str = "_tensor_constant") -> str:
        """Return the name of a tensor, or of another object, of the traced module. A constant is added to the module."""
        found = self._tensors.get(id(tensor))
        if found is not None:
            return found
        if isinstance(tensor, torch.nn.Parameter):
            raise NameError("parameter is not a member of this module")
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        name = f"{prefix}{number}"
        setattr(self.root, name, tensor)
        self._tensors[id(tensor)] = name
        return name

    def _collect_tensors(self, root: torch.nn.Module) -> dict[int, str]:
        found: dict[int, str] = {}
        for path, module in root.named_modules():
            start = f"{path}." if path else ""
            for name, value in {**vars(module), **module._parameters, **module._buffers}.items():
                if isinstance(value, torch.Tensor):
                    found.setdefault(id(value), f"{start}{name}")
        return found

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Return the traced function, and its arguments: stand-ins, or the values of `concrete_args`."""
        function = inspect.unwrap(root_fn)
        parameters = list(inspect.signature(function).parameters.values())
        if is_module and (not parameters or _STARS.get(parameters[0].kind)):
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        parameters.sort(key=lambda each: each.kind in _STARS)
        given = dict(concrete_args or {})
        args: list[Any] = [self.root] if is_module else []
        keywords: dict[str, Any] = {}
        variadic: list[Any] = []
        for parameter in parameters[len(args) :]:
            name = parameter.name
            stars = _STARS.get(parameter.kind, "")
            default = () if parameter.default is parameter.empty or stars else (parameter.default,)
            if name in given and given[name] is not PH:
                value = self._fixed(name, given[name], default)
            else:
                kind = None if stars else _annotation(function, name)
                value = self.create_proxy("placeholder", f"{stars}{name}", default, {}, type_expr=kind)
            if stars:
                variadic.append(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                keywords[name] = value
            else:
                args.append(value)
        if not variadic and not keywords:
            return root_fn, args
        if not variadic:
            return lambda *values: root_fn(*values, **keywords), args
        return lambda *values: _with_variadic(function, keywords)(*values, *keywords.values(), *variadic), args

    def _fixed(self, name: str, value: Any, default: tuple[Any, ...]) -> Any:
        """Return a value of `concrete_args`. The module checks that it receives the same value."""
        there = self.create_proxy("placeholder", f"{name}_1", default, {})
        if isinstance(value, (bool, int, float, str)):
            message = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", _assert, (there == value, message), {})
        elif value is None:
            message = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (there, message), {})
        elif not callable(value):
            warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user "
                "to make sure that your inputs match the inputs you specialized the function with."
            )
        return value

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Run the module or the function with stand-ins, and return the graph of its calls.

        Raises:
            TraceError: if the program needs the value of a stand-in, as in `if x.sum() > 0`.
        """
        if isinstance(root, torch.nn.Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = torch.nn.Module(), root
        root_function = inspect.unwrap(function)
        self._tensors = self._collect_tensors(self.root)
        self.graph = Graph(tracer_cls=type(self))
        _tracing.depth += 1
        try:
            with _lock, ExitStack() as replaced:
                self._replace(replaced, function)
                function, args = self.create_args_for_root(function, isinstance(root, torch.nn.Module), concrete_args)
                result = self.create_arg(function(*args))
                self.create_node("output", "output", (result,), {}, type_expr=_annotation(root_function, "return"))
        finally:
            _tracing.depth -= 1
        return self.graph

    def _replace(self, replaced: ExitStack, function: Any) -> None:
        """Redirect calls of modules and of wrapped functions during a trace."""
        call, read = torch.nn.Module.__call__, torch.nn.Module.__getattr__
        known: dict[str, Any] = {}

        def module_call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if not _tracing.depth:  # another thread
                return call(module, *args, **kwargs)
            return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def module_getattr(module: Any, attr: str) -> Any:
            value = read(module, attr)
            return self.getattr(attr, value, known) if _tracing.depth else value

        replaced.enter_context(_replaced(torch.nn.Module, "__call__", module_call))
        replaced.enter_context(_replaced(torch.nn.Module, "__getattr__", module_getattr))
        for (_, name), names in _wrapped.items():
            original = names.get(name, getattr(builtins, name, None))
            if original is not None:
                replaced.enter_context(_replaced(names, name, _recording(original)))
        for kind, name in _wrapped_methods_to_patch:
            replaced.enter_context(_replaced(kind, name, _recording(getattr(kind, name), method=True)))
        functions = {id(each): each for each in self._autowrap}
        names = getattr(inspect.unwrap(function), "__globals__", {})
        for name, value in list(names.items()):
            if id(value) in functions:
                replaced.enter_context(_replaced(names, name, _recording(value)))
        if any(value is math for value in names.values()):
            for name, value in list(vars(math).items()):
                if id(value) in functions:
                    replaced.enter_context(_replaced(math, name, _recording(value)))


def _annotation(function: Any, name: str) -> Any:
    """Return an annotation of a traced function. The annotations of this package are text, and are evaluated."""
    kind, names = getattr(function, "__annotations__", {}).get(name), getattr(function, "__globals__", {})
    if not isinstance(kind, str) or not is_ours(names):
        return kind
    try:
        return None if kind == "Any" else eval(kind, dict(names, torch=torch))
    except NameError:  # a name that is imported for type checkers
        return None


def _with_variadic(function: Any, keywords: dict[str, Any]) -> Callable[..., Any]:
    """Return the function with `*args`, `**kwargs` and keyword-only arguments as ordinary parameters."""
    code = function.__code__
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    count = code.co_argcount + code.co_kwonlyargcount + stars
    plain = code.replace(co_argcount=count, co_kwonlyargcount=0, co_flags=flags)
    return type(function)(plain, function.__globals__, function.__name__, None, function.__closure__)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a module or a function, and return a module that computes the same results.

    Args:
        root: the module or the function.
        concrete_args: values of arguments that are fixed, by name.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
