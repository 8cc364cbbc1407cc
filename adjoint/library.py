"""`torch.library`: operators that programs define in Python, with their derivatives.

>>> import adjoint as torch
>>> @torch.library.custom_op("shop::scaled", mutates_args=())
... def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
...     return x * factor
>>> def setup_context(ctx, inputs, output):
...     ctx.factor = inputs[1]
>>> scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup_context)
>>> x = torch.ones(2, requires_grad=True)
>>> torch.ops.shop.scaled(x, 3.0).sum().backward()
>>> x.grad
tensor([3., 3.])
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .autograd import Function
from .autograd.fallback import without_derivative
from .dispatch.overload_names import OpOverloadPacket
from .library_schemas import infer_schema

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

REGISTERED: dict[str, CustomOpDef] = {}
"""The operators that programs have defined, by full name."""

_OURS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""The keys of kernels that run here, in the order of preference."""

_QUALIFIED = re.compile(r"(\w+)::(\w+)")


class _Packet(OpOverloadPacket):
    """A defined operator by name: `torch.ops.shop.scaled`."""

    def __init__(self, definition: CustomOpDef) -> None:
        super().__init__(definition._name)
        self._definition = definition

    def __call__(self, *args: Any, **names: Any) -> Any:
        return self._definition(*args, **names)


class CustomOpDef:
    """An operator that a program has defined: callable, and open for its derivative and batching rule.

    `is_bare`: it was defined by its schema alone; until its derivative is given, autograd records what its kernel does.
    """

    def __init__(self, namespace: str, name: str, schema: str, is_bare: bool = True) -> None:
        self._namespace, self._name, self._schema, self._is_bare = namespace, name, schema, is_bare
        self._qualname = f"{namespace}::{name}"
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._function: type[Function] | None = None
        self.packet = _Packet(self)
        REGISTERED[self._qualname] = self

    @property
    def _opoverload(self) -> Any:
        return self.packet.default

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, func: Callable[..., Any] | None = None, /) -> Any:
        """Give the function that computes on these devices; as a decorator without `func`."""
        kinds = [device_types] if isinstance(device_types, str) or device_types is None else device_types

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds:
                self._kernels["CPU" if kind in (None, "cpu") else str(kind)] = function
            return function

        return register if func is None else register(func)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Accept the function that says the shapes of results; it is not called: results are computed."""
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the derivative: `setup_context(ctx, inputs, output)` saves, `backward(ctx, *grads)` returns gradients."""
        self._backward, self._setup_context, self._function = backward, setup_context, None

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Give the batching rule `func(info, in_dims, *args)`, which returns the result and its dimension."""
        if func is None:
            return self.register_vmap
        self._vmap, self._function = func, None
        return func

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Accept a rule for a dispatch mode; it is not called."""
        return fn if fn is not None else lambda function: function

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Accept the dtype for autocast; inputs stay as they are."""

    def kernel(self) -> Callable[..., Any]:
        """The function that computes."""
        for key in _OURS:
            if key in self._kernels:
                return self._kernels[key]
        raise NotImplementedError(
            f"Could not run '{self._qualname}' with arguments from the 'CPU' backend: it has no implementation for it."
        )

    def __call__(self, *args: Any, **names: Any) -> Any:
        """Apply the operator."""
        autograd = self._kernels.get("Autograd")
        if autograd is not None:
            return autograd(*args, **names)
        if "CPU" not in self._kernels and "CompositeImplicitAutograd" in self._kernels:
            return self.kernel()(*args, **names)
        if self._is_bare and self._backward is None and self._vmap is None:
            return without_derivative(self._qualname, self.kernel(), args, names)
        if names:
            bound = inspect.signature(self.kernel()).bind(*args, **names)
            bound.apply_defaults()
            args = (*bound.args, *bound.kwargs.values())
        if self._function is None:
            self._function = self._as_function()
        return self._function.apply(*args)

    def _as_function(self) -> type[Function]:
        definition = self
        keyword_only = [
            name for name, each in inspect.signature(self.kernel()).parameters.items() if each.kind is each.KEYWORD_ONLY
        ]

        def forward(*args: Any) -> Any:
            split = len(args) - len(keyword_only)
            return definition.kernel()(*args[:split], **dict(zip(keyword_only, args[split:], strict=True)))

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.count = len(inputs)
            if definition._setup_context is None:
                return
            if keyword_only:
                split = len(inputs) - len(keyword_only)
                keywords = dict(zip(keyword_only, inputs[split:], strict=True))
                definition._setup_context(ctx=ctx, inputs=inputs[:split], keyword_only_inputs=keywords, output=output)
            else:
                definition._setup_context(ctx=ctx, inputs=inputs, output=output)

        def backward(ctx: Any, *grads: Any) -> Any:
            if definition._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {definition._namespace}.{definition._name}.default but no autograd formula was "
                    "registered. Please use register_autograd to add one."
                )
            found = definition._backward(ctx, *grads)
            found = found if isinstance(found, tuple) else (found,)
            return (*found, *(None,) * (ctx.count - len(found)))

        parts: dict[str, Any] = {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
            "__module__": "torch._library.autograd",
        }
        if self._vmap is not None:
            rule = self._vmap
            parts["vmap"] = staticmethod(lambda info, in_dims, *args: rule(info, in_dims, *args))
        name = f"GeneratedBackwardFor_{self._namespace}_{self._name}_default"
        return type(name, (Function,), parts)


def _parts(qualname: str) -> tuple[str, str]:
    found = _QUALIFIED.match(qualname)
    if found is None:
        raise ValueError(f"The name of an operator is 'namespace::name', and not {qualname!r}")
    return found[1], found[2]


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Define an operator `name`, such as "shop::scaled", that the function `fn` computes; a decorator without `fn`.

    Args:
        name: the full name, with `::`.
        fn: a function with annotated parameters, such as `x: torch.Tensor, factor: float`.
        mutates_args: the names of the tensors that the function changes.
        device_types: the devices for which the function is meant; on others, there is none.
        schema: the signature in PyTorch's notation; inferred from the annotations if it is not given.
        tags: accepted, without effect.
    """

    def define_it(function: Callable[..., Any]) -> CustomOpDef:
        signature = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        definition = CustomOpDef(*_parts(name), signature, is_bare=False)
        definition.register_kernel(device_types, function)
        return definition

    return define_it if fn is None else define_it(fn)


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """Define an operator, as `custom_op` does."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Return the kernel itself."""
    return triton_kernel


class Library:
    """The operators of a namespace: `define` says a signature, `impl` gives a function."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported library kind: ", kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema, such as "scaled(Tensor x, float factor) -> Tensor"; return its name."""
        name, parameters = schema.split("(", 1)
        CustomOpDef(self.ns, name.strip().partition(".")[0], f"({parameters}")
        self._defined.append(f"{self.ns}::{name.strip()}")
        return name.strip()

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **options: Any) -> None:
        """Give the function that computes an operator for a dispatch key ("CPU", "CompositeImplicitAutograd", ...)."""
        name = op_name if isinstance(op_name, str) else op_name.__name__.partition(".")[0]
        qualname = name if "::" in name else f"{self.ns}::{name}"
        found = _registered(qualname.partition(".")[0])
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        found._kernels["Autograd" if key.startswith("Autograd") else key] = fn
        found._function = None

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", **options: Any) -> None:
        """Accept a function for operators that have none; it is not called."""

    def _destroy(self) -> None:
        for name in self._defined:
            REGISTERED.pop(name.partition(".")[0], None)


def _registered(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, str):
        found = REGISTERED.get(op.partition(".")[0])
        if found is None:
            raise RuntimeError(f"There is no operator {op}: define it first.")
        return found
    packet = getattr(op, "_packet", op)
    definition: CustomOpDef = packet._definition
    return definition


def define(qualname: str, schema: Any = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator by its name and its schema, such as "(Tensor x) -> Tensor"."""
    if schema is None:
        return lambda function: (define(qualname, infer_schema(function, mutates_args=())), function)[1]
    CustomOpDef(*_parts(qualname), schema)
    return None


def impl(qualname: str, types: str | Sequence[str], func: Any = None, *, lib: Library | None = None) -> Any:
    """Give the function that computes an operator on these devices ("cpu", "default"); a decorator without `func`."""
    if func is None:
        return lambda function: impl(qualname, types, function, lib=lib)
    for kind in [types] if isinstance(types, str) else types:
        key = {"cpu": "CPU", "default": "CompositeExplicitAutograd"}.get(kind, kind)
        _registered(qualname)._kernels[key] = func
    return func


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give the function that computes an operator on these devices."""
    return _registered(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Give the derivative of an operator; see `CustomOpDef.register_autograd`."""
    _registered(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give the batching rule of an operator."""
    return _registered(op).register_vmap(func) if func is not None else _registered(op).register_vmap


def register_fake(op: Any, func: Any = None, /, *, lib: Library | None = None, **options: Any) -> Any:
    """Accept the function that says the shapes of results; it is not called: results are computed."""
    return func if func is not None else lambda function: function


impl_abstract = register_fake


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Accept the dtype for autocast; inputs stay as they are."""


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, **options: Any) -> Any:
    """Accept a rule for a dispatch mode; it is not called."""
    return func if func is not None else lambda function: function


def get_ctx() -> Any:
    """Refuse: there is no context of shapes, because results are computed.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("get_ctx() can only be called from functions of register_fake, which are not called here.")
