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

import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from adjoint._runtime.first_use import import_late
from adjoint.aten import python_kernels
from adjoint.aten.overloads import OpOverload
from adjoint.aten.schemas import checked_schema
from adjoint.device import device

from ._library import opcheck as tests
from ._library.custom_ops import KERNELS, REGISTERED, CustomOpDef, Overload, Packet
from .library_schemas import infer_schema
from .ops import refused_libraries

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_KEY = re.compile(
    r"(Autograd|Autocast|Composite|Sparse|Quantized|FuncTorch|Batched|Nested|Python|Pre|Post|BackendSelect|Functionalize|ADInplace|"
    r"Conjugate|Negative|ZeroTensor|Tracer|CPU|CUDA|Meta|MPS|XPU|HPU|XLA|HIP|VE|IPU|MTIA|MAIA|Lazy|Mkldnn|Vulkan|PrivateUse)\w*"
)
"""The names of dispatch keys."""

_DEFINED = {"aten", "prims"}
"""The namespaces that belong to a library of the kind "DEF"."""

_BLOCKS = {"DEF": "TORCH_LIBRARY", "FRAGMENT": "TORCH_LIBRARY_FRAGMENT", "IMPL": "TORCH_LIBRARY_IMPL"}
"""The names of kinds of libraries in messages."""

_COMPOSITE = (
    "We should not register a meta kernel directly to the operator '{}', because it has a CompositeImplicitAutograd kernel in "
    "core. Instead we should let the operator decompose, and ensure that we have meta kernels for the base ops that it "
    "decomposes into."
)


def _parts(qualname: str) -> tuple[str, str, str]:
    """Return the namespace, the name in it, and the name of the overload, which may be omitted."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    name, _, overload = parts[1].partition(".")
    return parts[0], name, overload or "default"


def _listed(tags: Any) -> list[Any]:
    return list(tags) if isinstance(tags, (list, tuple, set)) else [tags]


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
    """Define an operator `name`, such as "shop::scaled". The function `fn` computes it. Without `fn`, return a decorator.

    Args:
        name: the full name, with `::`.
        fn: a function with annotated parameters, such as `x: torch.Tensor, factor: float`.
        mutates_args: the names of the tensors that the function changes.
        device_types: the devices for which the function is a kernel. Other devices have no kernel.
        schema: the signature in PyTorch's notation; by default it is derived from the annotations.
        tags: accepted, without effect.
    """

    def define_it(function: Callable[..., Any]) -> CustomOpDef:
        signature = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, own, overload = _parts(name)
        definition = CustomOpDef(namespace, own, signature, is_bare=False, overload=overload)
        definition._first = function if device_types is None else None
        if device_types is not None:
            definition.register_kernel(device_types, function)
        return definition

    return define_it if fn is None else define_it(fn)


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """Define an operator, like `custom_op`."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Return the kernel itself."""
    return triton_kernel


def fallthrough_kernel() -> None:
    """Stand for no kernel. With this function, `Library.impl` registers nothing.

    Raises:
        NotImplementedError: always, because it is not called.

    >>> import adjoint as torch
    >>> torch.library.fallthrough_kernel.__name__
    'fallthrough_kernel'
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A set of operators in a namespace. `define` adds a signature, and `impl` adds a function.

    Both are removed with the last reference to the library.

    Raises:
        ValueError: if the kind is not "DEF", "FRAGMENT" or "IMPL", or if the namespace is reserved.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and ns in _DEFINED:
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your definitions in "
                'a single TORCH_LIBRARY block: use the kind "FRAGMENT".'
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[tuple[str, str]] = []
        self._given: list[tuple[str, str, Any]] = []
        self._destroy = weakref.finalize(self, _remove, self._defined, self._given, ns if kind == "DEF" else "")
        self._destroy.atexit = False
        self.m = self._destroy  # programs delete this name
        if kind == "DEF":
            _DEFINED.add(ns)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema, such as "scaled(Tensor x, float factor) -> Tensor", and return its name.

        Raises:
            RuntimeError: if the schema is invalid, or its name is already defined.
        """
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema.partition("(")[0]}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All '
                "def()s should be placed in the (unique) TORCH_LIBRARY block for their namespace."
            )
        name, _, parameters = checked_schema(schema).partition("(")
        name = name.strip()
        space, separated, rest = name.rpartition("::")
        if separated and space != self.ns:
            raise RuntimeError(
                f"Explicitly provided namespace ({space}) in schema string does not match namespace of enclosing "
                f"TORCH_LIBRARY_FRAGMENT block ({self.ns}).  Define the operator with a library of that namespace."
            )
        own, _, overload = rest.partition(".")
        qualname = f"{self.ns}::{own}"
        packet = REGISTERED.get(qualname)
        if packet is not None and (overload or "default") in packet.overloads():
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{rest}({parameters}) with the same name and overload name multiple "
                "times. Each overload's schema should only be registered with a single call to def()."
            )
        CustomOpDef(self.ns, own, f"({parameters}", overload=overload or "default")._tags = _listed(tags)
        self._defined.append((qualname, overload or "default"))
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Register the function that computes an operator for a dispatch key ("CPU", "CompositeImplicitAutograd", ...).

        PyTorch's own operators (`aten`) can be replaced for the keys "CPU", "Meta", "Autograd", "AutogradCPU" and
        "AutocastCPU". Other keys have no effect on them. With `with_keyset`, the function first receives the dispatch keys.

        >>> import adjoint as torch
        >>> import warnings
        >>> def twice(x):
        ...     return x * 2
        >>> with torch.library._scoped_library("aten", "IMPL") as library, warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # the first replacement warns
        ...     library.impl("neg", twice, "CPU")
        ...     torch.neg(torch.ones(2))
        tensor([2., 2.])

        Raises:
            TypeError: if the function is not callable.
            RuntimeError: if the dispatch key is unknown, or if the operator belongs to another namespace.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if not _KEY.fullmatch(key):
            raise RuntimeError(f"could not parse dispatch key: {key}")
        if key == "Meta" and "CompositeImplicitAutograd" in KERNELS.get(
            f"{self.ns}::{str(op_name).rpartition('::')[2]}", {}
        ):
            raise RuntimeError(_COMPOSITE.format(op_name))
        if self.dispatch_key not in ("", key):
            raise RuntimeError(
                f'impl("{op_name}", ...): Explicitly provided dispatch key ({key}) is inconsistent with the dispatch key of the '
                f"enclosing TORCH_LIBRARY_IMPL block ({self.dispatch_key}).  Please declare a separate TORCH_LIBRARY_IMPL block "
                "for this dispatch key and move your impl() there."
            )
        if not isinstance(op_name, (str, OpOverload)):
            raise RuntimeError(
                f"impl should be passed either a name or an OpOverload object as the first argument, got {type(op_name)}"
            )
        name = op_name if isinstance(op_name, str) else op_name.name()
        space, separated, rest = name.rpartition("::")
        if separated and space != self.ns:
            raise RuntimeError(
                f'impl("{name}", ...): Explicitly provided namespace ({space}) in operator name does not match namespace of '
                f"enclosing {_BLOCKS[self.kind]} block ({self.ns}).  Give the function with a library of that namespace."
            )
        if fn is fallthrough_kernel:
            return
        if with_keyset:
            fn = partial(fn, import_late("adjoint._C").DispatchKeySet(key))
        if self.ns == "aten":
            if key in python_kernels.KEYS:
                python_kernels.add(f"aten::{rest}", key, fn)
                self._given.append((f"aten::{rest}", key, fn))
            return
        key = "Autograd" if key.startswith("Autograd") else key
        if not allow_override and key in KERNELS.get(f"{self.ns}::{rest}", {}):
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {rest}'s behavior for "
                f"{key} dispatch key and {self.ns} namespace."
            )
        self._given.append((_implemented(f"{self.ns}::{rest}", key, fn), key, fn))

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", **options: Any) -> None:
        """Accept a function for operators without kernels. The function is never called."""


def _remove(defined: list[tuple[str, str]], given: list[tuple[str, str, Any]], namespace: str) -> None:
    """Remove the operators that a library has defined, the functions that it has registered, and its claim to a namespace."""
    for qualname, overload in defined:
        packet = REGISTERED.get(qualname)
        if packet is not None:
            packet._definitions.pop(overload, None)
            if not packet._definitions:
                del REGISTERED[qualname]
    for name, key, function in given:
        if name.startswith("aten::"):
            python_kernels.remove(name, key, function)
        elif KERNELS.get(name, {}).get(key) is function:
            del KERNELS[name][key]
    _DEFINED.discard(namespace)


@contextmanager
def _scoped_library(*args: Any, **names: Any) -> Iterator[Library]:
    """A `Library` whose operators are removed at the end of the block."""
    library = Library(*args, **names)
    try:
        yield library
    finally:
        library._destroy()


def _implemented(qualname: str, key: str, function: Callable[..., Any]) -> str:
    """Register the kernel of an operator for a key. The operator may not be defined yet. Return the name in `KERNELS`."""
    name = qualname.removesuffix(".default")
    KERNELS.setdefault(name, {})[key] = function
    return name


def _named(qualname: str) -> tuple[Packet | None, str]:
    """Return the operator with a full name, or None if it is not defined, and the name of the overload."""
    namespace, name, overload = _parts(qualname)
    return REGISTERED.get(f"{namespace}::{name}"), overload


def _is_unknown(op: Any) -> bool:
    """Return whether `op` is the name of an operator or overload that is not defined."""
    if not isinstance(op, str):
        return False
    packet, overload = _named(op)
    return packet is None or overload not in packet.overloads()


def _registered(op: Any, who: str) -> CustomOpDef:
    """Return the definition of an operator. `op` is the definition, the full name, or an object of `torch.ops`."""
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, str):
        packet, overload = _named(op)
        if packet is None:
            namespace, name, _ = _parts(op)
            raise AttributeError(f"'_OpNamespace' '{namespace}' object has no attribute '{name}'")
        op = getattr(packet, overload)
    if isinstance(op, Overload):
        return op._definition
    if isinstance(op, Packet):
        return next(iter(op._definitions.values()))
    raise ValueError(f"{who}({op}): got unexpected type for op: {type(op)}")


def define(qualname: Any, schema: Any = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator by its name and its schema, such as "(Tensor x) -> Tensor".

    In the older form `define(library, schema)`, the schema starts with the name. This form decorates the function.
    """
    if isinstance(qualname, Library):
        library = qualname

        def defined(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(library.define(schema), function)
            return function

        return defined
    if schema is None:
        return lambda function: (define(qualname, infer_schema(function, mutates_args=())), function)[1]
    namespace, name, overload = _parts(qualname)
    if not schema.startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"'
        )
    CustomOpDef(namespace, name, checked_schema(schema), overload=overload)._tags = _listed(tags)
    if lib is not None:
        lib._defined.append((f"{namespace}::{name}", overload))
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register the function that computes an operator on these devices ("cpu", "default").

    Without `func`, return a decorator. So does the older form `impl(library, name, dispatch_key)`.
    """
    if isinstance(qualname, Library):
        library, key = qualname, func or ""

        def implemented(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(types, function, key)
            return function

        return implemented
    for kind in [types] if isinstance(types, str) else types:
        if kind != "default" and not _KEY.fullmatch(kind):
            device(kind)  # raises an error for invalid device types
    if func is None:
        return lambda function: impl(qualname, types, function, lib=lib)
    _parts(qualname)  # raises an error for other forms
    for kind in [types] if isinstance(types, str) else types:
        key = {"cpu": "CPU", "default": "CompositeExplicitAutograd"}.get(kind, kind)
        name = _implemented(qualname, key, func)
        if lib is not None:
            lib._given.append((name, key, func))
    return func


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Register the function that computes an operator on these devices."""
    if _is_unknown(op):
        return impl(op, device_types, func)
    return _registered(op, "register_kernel").register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Register the derivative of an operator; see `CustomOpDef.register_autograd`."""
    _registered(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Register the batching rule of an operator."""
    return _registered(op, "register_vmap").register_vmap(func)


def register_fake(op: Any, func: Any = None, /, *, lib: Library | None = None, **options: Any) -> Any:
    """Register the function that computes the shapes of results; see `CustomOpDef.register_fake`.

    Without `func`, return a decorator.

    Registrations are also accepted for operators of a compiled library that was refused. torchvision registers such
    operators during its import.

    Raises:
        RuntimeError: if the operator does not exist.
    """
    if func is None:
        return lambda function: register_fake(op, function)
    if _is_unknown(op):
        if refused_libraries:
            return func
        raise RuntimeError(f"operator {op} does not exist")
    definition = _registered(op, "register_fake")
    if "CompositeImplicitAutograd" in definition._kernels:
        raise RuntimeError(_COMPOSITE.format(op))
    return definition.register_fake(func)


impl_abstract = register_fake


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Register the dtype of the inputs under autocast; see `CustomOpDef.register_autocast`."""
    _registered(op, "register_autocast").register_autocast(device_type, cast_inputs)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, **options: Any) -> Any:
    """Accept a rule for a dispatch mode. The rule is never called."""
    return func if func is not None else lambda function: function


def opcheck(
    op: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tests.DEFAULT,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Test an operator that a program has defined. The tests use these arguments. Return "SUCCESS" for each test.

    The tests find arguments that change although the schema does not say so, results that share memory with arguments,
    missing derivatives, and differences between the shapes of `register_fake` and of the kernel. Without
    `raise_exception`, return the errors of the tests that fail instead of raising the first one. `atol` and `rtol` have
    no effect.

    >>> import adjoint as torch
    >>> @torch.library.custom_op("shop::doubled", mutates_args=())
    ... def doubled(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> torch.library.opcheck(doubled, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}

    Raises:
        OpCheckError: if a test fails.
        ValueError: if there is no such test, or if `op` is not an operator that a program has defined.
    """
    if not isinstance(op, CustomOpDef | Packet | Overload):
        raise ValueError(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}"
        )
    return tests.run(_registered(op, "opcheck"), args, kwargs, test_utils, raise_exception)


def get_ctx() -> Any:
    """Raise an error, because all sizes are known. Tensors on "meta" have the sizes that a function returns.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "get_ctx(): functions of register_fake make tensors of known sizes here; there is no other context."
    )
