"""Turning a declaration into functions: `operator`, decorators for common kinds of operators, installation of functions."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from .._runtime.places import place_of_function
from ..codegen.backend import NUMPY
from ..codegen.kernel import as_kernel
from ..kernels.memory import storage
from ..tensor import Tensor
from .annotations import Array
from .array_functions import in_one_kernel
from .declaration import OPERATORS, Operator
from .generated import Code, arrays, lazy_function, tensors
from .lazy_stubs import named, refusing_out
from .numpy_names import takes_dim, taking_numpy_names
from .registry import PUBLIC as PUBLIC
from .signatures import FORMS

PREFIXES = {"linalg": "linalg_", "special": "special_", "fft": "fft_", "sparse": "sparse_"}
"""The prefix of the names of functions in a namespace."""


_MODULES = {"functional": "nn.functional", "aten": "ops.aten"}
"""The modules of namespaces, for namespaces that have another name than their module."""


def publish(namespace: str, *, retried: bool = True, **functions: Any) -> None:
    """Make `functions` public in `namespace` under the given names."""
    prefix, module = PREFIXES.get(namespace, ""), _MODULES.get(namespace, namespace)
    for name, function in functions.items():
        PUBLIC[namespace][name] = public_function = named(function, prefix + name, retried)
        if type(public_function) is FunctionType:
            public_function.__module__, public_function.__qualname__ = place_of_function(module, name), name


def add_method(name: str, function: Any, retried: bool = False) -> None:
    """Make a function a method of tensors, without `out`."""
    method = named(function, name, retried, of_method=True)
    if type(method) is FunctionType:
        method.__module__, method.__qualname__ = Tensor.__module__, f"Tensor.{name}"
    setattr(Tensor, name, method)


def operator(
    *,
    method: bool | tuple[str, ...] | None = None,
    dunder: str | None = None,
    reflected: str | None = None,
    alias: tuple[str, ...] = (),
    namespace: str | None = "torch",
    public_inplace: bool | tuple[str, ...] = False,
    forms: Callable[[Operator], tuple[str, ...]] | None = None,
    **options: Any,
) -> Callable[[type], Any]:
    """Declare an operator; see `adjoint.dispatch.declaration` for the content of the class.

    Args:
        method: True (by default in the namespace "torch"), False, or the names of the methods. `()` (by default
            elsewhere) creates no method, not even an in-place method.
        dunder: the name of the Python operator, such as `"__mul__"`.
        reflected: the name of the operator with its operands in reverse order, such as `"__rmul__"`.
        alias: additional names of the function and the method.
        namespace: the public namespaces of the function; None for no namespace.
        public_inplace: whether the in-place variant is a public function too. It is True, or the public names.
        forms: the forms of the call for errors, as a function of `signatures`.
        options: see `Operator`.
    """
    if method is None:
        method = True if namespace == "torch" else ()

    def declare(declaration: type) -> Any:
        # Functions that are called only from within this package do not search for the user's frame.
        caller = 2 if namespace is None and not method and dunder is None and not options.get("inplace") else 1
        op = Operator(declaration, {**options, "method": bool(method)}, caller)
        op.code = Code(op)
        function = lazy_function(op, "function", op.name)
        function.operator = op
        op.function = function
        OPERATORS[op.name] = op
        NUMPY.declare(op.name, op.kernel)
        if forms is not None:
            FORMS[op.function_name] = lambda: forms(op)
        setattr(arrays, op.name, NUMPY.kernel(op.name).general)
        setattr(tensors, op.name, function)
        names = (op.name, *alias)
        if namespace is not None:
            prefix = PREFIXES.get(namespace, "")
            publish(namespace, **dict.fromkeys([name.removeprefix(prefix) for name in names], function))
        for name in names if method is True else method or ():
            add_method(name, function)
        if dunder is not None:
            as_operator = lazy_function(op, "operator", dunder)
            add_method(dunder, as_operator)
            if reflected is not None:
                add_method(reflected, as_operator)
        if op.inplace:
            inplace = lazy_function(op, "inplace_view" if op.view else "inplace", f"{op.name}_")
            inplace.operator = op
            op.inplace_function = inplace
            function.inplace = inplace
            for name in names if method != () else ():
                add_method(f"{name}_", inplace)
                if namespace is not None and (public_inplace is True or (public_inplace and name in public_inplace)):
                    publish(namespace, **{f"{name}_": inplace})
            if dunder in _AUGMENTED:
                add_method(dunder.replace("__", "__i", 1), inplace)
        return function

    return declare


def internal(kernel: Any = None, **options: Any) -> Callable[[type], Any]:
    """Declare an operator that only formulas, and functions composed of operators, call."""
    return operator(kernel=kernel, namespace=None, **options)


_AUGMENTED = {f"__{name}__" for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()}


def _of_two(self: Array, other: Array) -> Any: ...


def unary(kernel: Any, promote: str | None = "float", **options: Any) -> Callable[[type], Any]:
    """Declare an elementwise operator on one tensor from its array function."""
    options = {"inplace": True, "public_inplace": True, "tangent": "elementwise", **options}
    return operator(kernel=kernel, promote=promote, **options)


def binary(kernel: Any, promote: str | None = "common", **options: Any) -> Callable[[type], Any]:
    """Declare an elementwise operator on two tensors from its array function. The tensors broadcast together."""
    options = {"elementwise": True, "inplace": True, "tangent": "elementwise", **options}

    def declare(declaration: type) -> Any:
        declaration.forward = staticmethod(_of_two)  # type: ignore[attr-defined]
        return operator(kernel=kernel, promote=promote, **options)(declaration)

    return declare


def public(
    *,
    namespace: str | None = "torch",
    method: bool | tuple[str, ...] = False,
    alias: tuple[str, ...] = (),
    on_arrays: Callable[..., Any] | None = None,
    name: str | None = None,
    numpy_names: bool = False,
    separate_sizes: Any = None,
    contiguous: bool = False,
    retried: bool = True,
    methods_retried: bool = True,
    forms: tuple[str, ...] | Callable[[], tuple[str, ...]] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Install a hand-written function composed of operators. `on_arrays` is its counterpart in the `xp` of formulas.

    `separate_sizes`: the operator whose straight-line code handles a method call with separate sizes, and only contiguous
    tensors if `contiguous`. `retried`, `methods_retried`: whether a retry wrapper checks after a failure whether an argument
    overrides the call (see `lazy_stubs`), unless the function, or the method without other tensor arguments, does this
    itself. `forms`: the forms of the call, for errors about arguments that match none. `numpy_names`: whether NumPy's names
    of parameters are accepted, by methods only those of dimensions.
    """

    def install(function: Callable[..., Any]) -> Callable[..., Any]:
        own_name = name or function.__name__
        function.__name__ = function.__qualname__ = own_name  # errors name it
        if forms:
            FORMS[own_name] = forms
        names = (own_name, *alias)
        for public_name in names if namespace is not None else ():
            exposed = taking_numpy_names(function) if numpy_names else function
            publish(namespace, retried=retried and not numpy_names, **{public_name: exposed})  # type: ignore[arg-type]
        for method_name in names if method is True else method or ():
            installed = taking_numpy_names(refusing_out(function)) if numpy_names and takes_dim(function) else function
            if separate_sizes is not None:
                variant = "sizes of contiguous" if contiguous else "sizes"
                installed = lazy_function(separate_sizes.operator, variant, method_name, function)
                installed.__doc__ = function.__doc__
                installed.__wrapped__ = function  # tools show the signature of `function`
            again = retried and methods_retried and installed is function and not method_name.startswith("__")
            add_method(method_name, installed, again)
        if on_arrays is not None:
            setattr(arrays, own_name, as_kernel(on_arrays).general)
        if own_name not in OPERATORS:
            captured = on_arrays is not None and namespace is None
            setattr(tensors, own_name, in_one_kernel(function, on_arrays) if captured else function)
        return function

    return install


arrays.strided = storage.strided  # type: ignore[attr-defined]
