"""From declaration to function: `operator`, the decorators of its common shapes, and where the results are installed."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..codegen.backend import NUMPY
from ..codegen.kernel import as_kernel
from ..kernels.memory import storage
from ..tensor import Tensor
from .declaration import ARRAY, OPERATORS, Operator
from .generated import Code, arrays, lazy_function, tensors
from .lazy_stubs import named
from .numpy_names import takes_dim, taking_numpy_names
from .registry import PUBLIC as PUBLIC
from .signatures import FORMS

PREFIXES = {"linalg": "linalg_", "special": "special_", "fft": "fft_"}
"""What the functions of a namespace are called besides their name in it."""


_MODULES = {"torch": "adjoint", "functional": "adjoint.nn.functional"}
"""Where the functions of a namespace are found by what has pickled them, by their names."""


def publish(namespace: str, *, retried: bool = True, **functions: Any) -> None:
    """Make `functions` public in `namespace` under the names given."""
    prefix, module = PREFIXES.get(namespace, ""), _MODULES.get(namespace)
    for name, function in functions.items():
        PUBLIC[namespace][name] = public_function = named(function, prefix + name, retried)
        if module is not None and type(public_function) is FunctionType:
            public_function.__module__ = module


def operator(
    *,
    method: bool | tuple[str, ...] = True,
    dunder: str | None = None,
    reflected: str | None = None,
    alias: tuple[str, ...] = (),
    namespace: str | None = "torch",
    public_inplace: bool | tuple[str, ...] = False,
    forms: Callable[[Operator], tuple[str, ...]] | None = None,
    **options: Any,
) -> Callable[[type], Any]:
    """Declare an operator; see `adjoint.dispatch.declaration` for what the class contains.

    Options: `promote` (None, "common" or "float"), `view`, `inplace`, `out`, `outputs` (names, if several), `returns`
    (the named tuple for them), `node` (the node's name), `name`; and where the function goes: `namespace`, `alias`,
    `out_decides` (the dtype of `out=` is the default of `dtype`; or a function of the input and `out` that may refuse
    it), `out_underived` (with `out=`, it is recorded without a derivative), `out_no_overlap` (it may share no memory with the
    inputs), `no_overlap` (in place, no operand may share memory with the tensor that is changed),
    `same_out` (what is given as `out=` must have the result's dtype), `overloaded` (a wrong first operand is an invalid
    combination of arguments), `inplace_node` (its name where it differs), `method` (True, False, or the names of the
    methods; `()`: none, not in place either), `public_inplace` (the variant in place is public as a function too: True, or the
    names for which it is), `forms` (how it may be called, for errors: a function of `signatures`), `dunder` (`"__mul__"`),
    `reflected` (`"__rmul__"`).
    """

    def declare(declaration: type) -> Any:
        # Who can only be called by functions of ours written by hand need not look at the frame of these.
        caller = 2 if namespace is None and not method and dunder is None and not options.get("inplace") else 1
        op = Operator(declaration, {**options, "method": bool(method), "caller": caller})
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
        method_names = names if method is True else (method or ())
        for name in names:
            if namespace is not None:
                publish(namespace, **{name: function})
        for name in method_names:
            setattr(Tensor, name, named(function, name))
        if dunder is not None:
            as_operator = lazy_function(op, "operator", dunder)
            setattr(Tensor, dunder, named(as_operator, dunder))
            if reflected is not None:
                setattr(Tensor, reflected, named(as_operator, reflected))
        if op.inplace:
            changing = lazy_function(op, "inplace_view" if op.view else "inplace", f"{op.name}_")
            changing.operator = op
            op.inplace_function = changing
            function.inplace = changing
            for name in names if method != () else ():
                setattr(Tensor, f"{name}_", named(changing, f"{name}_"))
                if namespace is not None and (public_inplace is True or (public_inplace and name in public_inplace)):
                    publish(namespace, **{f"{name}_": changing})
            if dunder in _AUGMENTED:
                augmented = dunder.replace("__", "__i", 1)
                setattr(Tensor, augmented, named(changing, augmented))
        return function

    return declare


_AUGMENTED = {f"__{name}__" for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()}


def unary(kernel: Any, promote: str | None = "float", **options: Any) -> Callable[[type], Any]:
    """Declare an elementwise operator of one tensor from its array function."""

    def forward(self: Any) -> Any: ...

    forward.__annotations__ = {"self": ARRAY}
    options = {"inplace": True, "public_inplace": True, "tangent": "elementwise", **options}
    return _family(forward, kernel, promote=promote, **options)


def binary(kernel: Any, promote: str | None = "common", **options: Any) -> Callable[[type], Any]:
    """Declare an elementwise operator of two tensors, broadcast together, from its array function."""

    def forward(self: Any, other: Any) -> Any: ...

    forward.__annotations__ = {"self": ARRAY, "other": ARRAY}
    options.setdefault("elementwise", True)
    return _family(
        forward, kernel, promote=promote, inplace=options.pop("inplace", True), **{"tangent": "elementwise", **options}
    )


def _family(forward: Callable[..., Any], kernel: Any, **options: Any) -> Callable[[type], Any]:
    def declare(declaration: type) -> Any:
        declaration.forward = staticmethod(forward)  # type: ignore[attr-defined]
        return operator(kernel=kernel, **options)(declaration)

    return declare


def public(
    *,
    namespace: str | None = "torch",
    method: bool | tuple[str, ...] = False,
    alias: tuple[str, ...] = (),
    on_arrays: Callable[..., Any] | None = None,
    name: str | None = None,
    numpy_names: bool = False,
    fast: Any = None,
    contiguous: bool = False,
    retried: bool = True,
    forms: tuple[str, ...] | Callable[[], tuple[str, ...]] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Install a function written by hand on top of operators; `on_arrays` is its counterpart in formulas' `xp`.

    `fast` is the operator whose straight-line code a method that takes sizes one by one begins with; the function is for
    all other calls, with `contiguous` also for those of tensors that are not.

    `retried`: where it fails, a retry wrapper sees whether an argument takes over calls (see `lazy_stubs`); functions that see it
    themselves need none.

    `forms`: those in which it may be called, or what tells them, for the errors about arguments that fit none of them.

    With `numpy_names` it also takes NumPy's names for its parameters: the function all, the method those of dimensions.
    """

    def install(function: Callable[..., Any]) -> Callable[..., Any]:
        own_name = name or function.__name__
        if forms:
            FORMS[own_name] = forms
        names = (own_name, *alias)
        see = retried and not makes_tensors(function)
        for public_name in names if namespace is not None else ():
            exposed = taking_numpy_names(function) if numpy_names else function
            publish(namespace, retried=see and not numpy_names, **{public_name: exposed})  # type: ignore[arg-type]
        for method_name in names if method is True else method or ():
            installed = taking_numpy_names(function) if numpy_names and takes_dim(function) else function
            if fast is not None:
                variant = "sizes of contiguous" if contiguous else "sizes"
                installed = lazy_function(fast.operator, variant, method_name, function)
                installed.__doc__ = function.__doc__
                installed.__wrapped__ = function  # whose signature tools show
            setattr(Tensor, method_name, named(installed, method_name, see and takes_tensors(function, method_name)))
        if own_name not in OPERATORS:
            setattr(tensors, own_name, function)
        if on_arrays is not None:
            setattr(arrays, own_name, as_kernel(on_arrays).general)
        return function

    return install


_TENSORS = {
    "condition", "exponent", "index", "indices", "input2", "mask", "max", "min", "other", "q", "source", "src", "tensor",
    "test_elements", "value", "values", "vec2", "weight", "weights",
}  # fmt: skip
"""What methods call parameters, besides the first, that may be tensors."""


def makes_tensors(function: Callable[..., Any]) -> bool:
    """Whether a function makes a tensor of what is none."""
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    return "requires_grad" in parameters and parameters[0] != "input"


def takes_tensors(function: Callable[..., Any], name: str) -> bool:
    """Whether a method, no Python operator, has parameters, besides the first, that may be tensors."""
    if name.startswith("__"):
        return False
    code = function.__code__
    return not _TENSORS.isdisjoint(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


arrays.strided = storage.strided  # type: ignore[attr-defined]
