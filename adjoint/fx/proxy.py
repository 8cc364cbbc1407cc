"""Stand-ins for values during tracing. Operations on them become nodes."""

from __future__ import annotations

import dis
import enum
import operator
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import adjoint as torch

from .._runtime.tracebacks import frame_of_caller
from ..torch_names import overrides
from .graph import SYMBOLS, Graph
from .node import Node, map_aggregate

_FOLDER = torch.__file__.removesuffix("__init__.py")
_PLAIN = (
    *(str, int, float, bool, complex, bytes, enum.Enum, Node),
    *(torch.dtype, torch.device, torch.memory_format, torch.layout, torch.Tensor),
)
"""The classes of the arguments of nodes."""


class TraceError(ValueError):
    """The error for a program that cannot be traced, because it needs the value of a stand-in."""


class TracerBase:
    """Creates nodes and stand-ins."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Create a node."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """Return a stand-in for the result of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Any] | None = None,
    ) -> Any:  # fmt: skip
        """Create a node, with stand-ins in its arguments, and return the stand-in for its result."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        if self.record_stack_traces and kind != "placeholder":
            calls = [each for each in traceback.extract_stack() if not each.filename.startswith(_FOLDER)]
            node.stack_trace = "".join(traceback.format_list(calls))
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """Return an argument in the form of nodes, with nodes in place of stand-ins.

        Raises:
            NotImplementedError: if the object cannot be an argument of a node.
        """
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*[self.create_arg(each) for each in a])
        if isinstance(a, (tuple, list)):
            return type(a)([self.create_arg(each) for each in a])
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(each) for key, each in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, _PLAIN) or a is None or a is ... or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        key = self.create_arg(key)
        if isinstance(key, Node):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Raise an error, because the truth of a stand-in is unknown."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Any) -> Iterator[Any]:
        """Return the items of a stand-in, if they are unpacked to a known number of names."""
        frame = frame_of_caller(2)
        wanted = [each for each in dis.get_instructions(frame.f_code) if each.offset == frame.f_lasti]
        if wanted and wanted[0].opname == "UNPACK_SEQUENCE":
            return (obj[number] for number in range(wanted[0].argval))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control "
            "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return the keys of a stand-in, for `**`."""
        return Attribute(obj, "keys")()


def tracer_among(values: Any) -> Any:
    """Return the tracer of the first stand-in in nested values, or None."""
    found: list[TracerBase] = []
    map_aggregate(values, lambda each: found.append(each.tracer) if isinstance(each, Proxy) else each)
    return found[0] if found else None


class GraphAppendingTracer(TracerBase):
    """Appends nodes to a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.module_stack: dict[str, Any] = {}


class Proxy:
    """A stand-in for a value. Operators, methods, attributes and functions of `torch` return new stand-ins."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record the call."""
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call torch.fx.wrap('len') at module scope"
        )

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", abs, (self,), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return Proxy(self.node, self.tracer)

    def keys(self) -> Any:
        """Return the keys, for `**`."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracer: Any = tracer_among((args, kwargs))
        name = getattr(orig_method, "__name__", "")
        if overrides.is_tensor_method_or_property(orig_method):
            if name == "__get__":
                attribute = str(overrides.resolve_name(orig_method)).split(".")[-2]
                return tracer.create_proxy("call_function", getattr, (*args, attribute), {})
            return tracer.create_proxy("call_method", name, args, kwargs)
        if tracer.check_mutable_operations and (kwargs.get("out") is not None or name.endswith("_")):
            ending, arguments = (
                (".out", "Tensor self, *, Tensor(a!) out") if "out" in kwargs else ("", "Tensor(a!) self")
            )
            raise RuntimeError(
                f"Tried to trace mutable operation aten::{name}{ending}({arguments}) -> Tensor(a!). FX only supports functional "
                "code, so operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
            )
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class ParameterProxy(Proxy):
    """A stand-in for a parameter whose shape is known."""

    def __init__(self, node: Node, tracer: TracerBase, param: torch.Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param

    @property
    def shape(self) -> torch.Size:
        """The shape of the parameter."""
        return self.param.shape

    def size(self, dim: int | None = None) -> Any:
        """Return the shape of the parameter, or the size of one dimension."""
        return self.param.size(dim)

    def dim(self) -> int:
        """Return the number of dimensions of the parameter."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The number of dimensions of the parameter."""
        return self.param.ndim

    def numel(self) -> int:
        """Return the number of elements of the parameter."""
        return self.param.numel()

    nelement = numel


class Attribute(Proxy):
    """An attribute of a stand-in. It becomes a node when it is used, and a method call when it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr = root, attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Return the node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record the call."""
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(function: Any, reflected: bool = False) -> Any:
    def method(self: Any, *others: Any) -> Any:
        args = (others[0], self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return method


for _function in SYMBOLS:
    _plain = _function.__name__.strip("_")
    setattr(Proxy, f"__{_plain}__", _operator(_function))
    if _plain in "add sub mul floordiv truediv mod pow lshift rshift and or xor matmul".split():
        setattr(Proxy, f"__r{_plain}__", _operator(_function, reflected=True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
