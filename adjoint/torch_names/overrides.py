"""`torch.overrides`: the functions that `__torch_function__` can override, and modes that receive every call.

`wrap_public_functions` installs wrappers (`adjoint.dispatch.wrappers`) on all these functions. It is called when the
first mode is entered, when the first tensor class that may override calls is defined, and when another overriding class
first appears in a call (`adjoint.dispatch.lazy_stubs`).
"""

from __future__ import annotations

import functools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

from adjoint import autograd, fft, linalg, sparse, special
from adjoint._runtime.tracebacks import warn
from adjoint._runtime.uninterrupted import uninterrupted
from adjoint.aten import profiled_functions
from adjoint.dispatch import wrappers
from adjoint.nn import functional, init
from adjoint.operators import PUBLIC, load_all
from adjoint.tape import torch_function
from adjoint.tape.modes import STATE
from adjoint.tape.torch_function import (
    NOT_WRAPPED,
    ask,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    no_implementation_error,
    tensor_likes,
)
from adjoint.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

PACKAGE = sys.modules[__name__.rpartition(".")[0]]

# --- the functions, and how PyTorch presents their calls ------------------------------------------------------------

NEVER_TAKEN_OVER = """
    broadcast_shapes frombuffer from_numpy get_default_device is_storage is_tensor set_default_device set_default_tensor_type
    typename _fused_update_ _count_steps_
""".split()
"""Functions that PyTorch never overrides, for any arguments and modes, and the functions of optimizers on lists of tensors."""

MAKERS = """
    arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye fill full hamming_window
    hann_window kaiser_window linspace logspace normal ones rand rand_like randint randint_like randn randn_like randperm range
    result_type scalar_tensor tensor tril_indices triu_indices vander zeros as_strided
""".split()
"""Functions that are missing from PyTorch's list of overridable functions, although modes and some classes override them."""

DATA_TAKERS = "as_tensor asarray tensor".split()
"""Functions that treat a tensor of any class as data."""

IN_PYTHON = {
    "torch": """
        atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul einsum lobpcg lu meshgrid
        norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index
    """.split(),
    "torch.nn.functional": """
        adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d alpha_dropout
        batch_norm binary_cross_entropy binary_cross_entropy_with_logits celu cosine_embedding_loss cross_entropy ctc_loss dropout
        dropout1d dropout2d dropout3d elu embedding embedding_bag feature_alpha_dropout fold gaussian_nll_loss glu grid_sample
        group_norm gumbel_softmax hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss
        instance_norm interpolate kl_div l1_loss layer_norm
        leaky_relu local_response_norm log_softmax lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d
        max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d
        max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss multilabel_margin_loss
        multilabel_soft_margin_loss nll_loss normalize pad poisson_nll_loss relu relu6 rms_norm rrelu selu silu smooth_l1_loss
        soft_margin_loss softmax softmin softsign tanhshrink threshold triplet_margin_loss triplet_margin_with_distance_loss
        unfold
    """.split(),
    "torch.nn.init": "constant_ kaiming_uniform_ normal_ uniform_".split(),
    "torch.autograd": "backward grad".split(),
    "torch.Tensor": """
        __array__ __array_wrap__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __floordiv__ __format__ __ipow__ __len__
        __pow__ __rdiv__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__
        __rsub__ __rtruediv__ backward dim_order is_shared istft lu norm register_hook register_post_accumulate_grad_hook
        share_memory_ split stft storage unflatten unique unique_consecutive
    """.split(),
}
"""Functions that PyTorch writes in Python."""

PYTHON_MODULES = {"torch": "torch.functional", "torch.Tensor": "torch._tensor"}
"""The modules of functions written in Python, if a module has another name than the namespace."""

ERROR_NAMES = {"torch.nn.functional": "torch.nn"}
"""The names that errors use for namespaces whose functions are not written in Python."""

SHOWN_AS = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div",
    "__mod__": "remainder", "__matmul__": "matmul", "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__ne__": "ne",
    "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__rand__": "bitwise_and", "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_",
    "__div__": "div", "__idiv__": "div_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_", "__rtruediv__": "__rdiv__",
}  # fmt: skip
"""The methods that are reported for Python's operators."""

CALLED = {"__pow__": "pow", "__ipow__": "pow_"}
"""Methods whose `__name__` differs from the attribute name."""

OF_OPERATORS = """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rdiv rfloordiv rmod rpow rmatmul
    rand ror rxor rlshift rrshift iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift eq ne lt le gt ge
""".split()
"""The methods, without underscores, that return NotImplemented so that the other operand can handle the operation."""

UNTOUCHED = """
    __new__ __init_subclass__ __torch_function__ __hash__ __iter__ __delitem__ __setstate__ as_subclass _make_subclass
    _make_wrapper_subclass
""".split()
"""Methods that cannot be overridden."""

PRIVATE = "_is_view _version _backward_hooks".split()
"""Members of PyTorch's tensors with names that begin with an underscore."""

_names: dict[Any, str] = {}
_members: defaultdict[str, list[Any]] = defaultdict(list)


def _remember(namespace: str, name: str, function: Any) -> None:
    if namespace == "torch.nn.functional" or function not in _names:
        _names[function] = f"{namespace}.{name}"
    _members[namespace].append(function)


def _put(namespace: str, name: str, function: Any, shown: Any = None) -> None:
    """Install a wrapper on one function, unless it already has one under another name."""
    _remember(namespace, name, function)
    if wrappers.wrapper_of(function) is not None:
        return
    of_python = name in IN_PYTHON.get(namespace, ())
    place = PYTHON_MODULES.get(namespace, namespace) if of_python else ERROR_NAMES.get(namespace, namespace)
    wrapper = wrappers.put(function, f"{place}.{(shown or function).__name__}", shown)
    wrapper.of_python = of_python
    wrapper.of_data = name in DATA_TAKERS
    wrapper.of_keywords = namespace == "torch.nn.init"
    wrapper.of_many = name == "einsum"


def _put_in_front_of_namespace(namespace: str, module: ModuleType, names: Iterable[str]) -> None:
    for name in names:
        function = getattr(module, name)
        if type(function) is FunctionType and name not in NEVER_TAKEN_OVER:
            _put(namespace, name, function)


def _put_in_front_of_tensors() -> None:
    """Install wrappers on the methods and the attributes of tensors."""
    members = {name: member for kind in reversed(Tensor.__mro__[:-1]) for name, member in vars(kind).items()}
    for name, member in members.items():
        private = name.startswith("_") and not name.endswith("__")
        if name in UNTOUCHED or (private and name not in PRIVATE):
            continue
        if isinstance(member, property):
            _put_in_front_of_attribute(name, member)
        elif type(member) is FunctionType:
            shown = getattr(Tensor, SHOWN_AS[name]) if name in SHOWN_AS else None
            member.__name__ = CALLED.get(name, member.__name__)
            _put("torch.Tensor", name, member, shown)
            if name.strip("_") in OF_OPERATORS and name.startswith("__"):
                wrappers.wrapper_of(member).of_operator = True  # type: ignore[union-attr]
            wrappers.wrapper_of(member).of_method = name != "is_pinned"  # type: ignore[union-attr]
            wrappers.wrapper_of(member).of_attribute = name in ("apply_", "new", "new_tensor")  # type: ignore[union-attr]
    wrappers.wrapper_of(vars(Tensor)["__setitem__"]).of_statement = True  # type: ignore[union-attr]
    wrappers.wrapper_of(vars(Tensor)["__eq__"]).of_first = vars(Tensor)["eq"]  # type: ignore[union-attr]


def _put_in_front_of_attribute(name: str, attribute: property) -> None:
    """Install wrappers on reading, setting and deleting an attribute."""
    for function, access in ((attribute.fget, "__get__"), (attribute.fset, "__set__"), (attribute.fdel, "__delete__")):
        if function is not None:
            shown = getattr(attribute, access)
            wrappers.put(function, f"torch.Tensor.{name}.{access}", shown).of_attribute = True  # type: ignore[arg-type]
            _names[shown] = f"torch.Tensor.{name}.{access}"
            if access == "__get__":
                _members["torch.Tensor"].append(shown)


def wrap_public_functions() -> None:
    """Install the wrappers, once."""
    if torch_function.WRAPPERS.open:
        return
    load_all()
    with profiled_functions.unwatched():
        if not torch_function.WRAPPERS.open:
            _open()


def _open() -> None:
    _names.clear()  # an interrupt may have arrived before the end
    _members.clear()
    of_layers = [
        name
        for name, value in vars(functional).items()
        if type(value) is FunctionType and name[0] != "_" and value.__globals__ is not globals()
    ]
    in_python = [name for name in of_layers if name in IN_PYTHON["torch.nn.functional"]]
    _put_in_front_of_namespace("torch.nn.functional", functional, in_python)
    _put_in_front_of_namespace("torch.linalg", linalg, PUBLIC["linalg"])
    _put_in_front_of_namespace("torch.special", special, PUBLIC["special"])
    _put_in_front_of_namespace("torch.fft", fft, PUBLIC["fft"])
    _put_in_front_of_namespace("torch.sparse", sparse, PUBLIC["sparse"])
    _put_in_front_of_namespace("torch", PACKAGE, PUBLIC["torch"])
    _put_in_front_of_namespace("torch.nn.functional", functional, [name for name in of_layers if name not in in_python])
    _put_in_front_of_namespace("torch.nn.init", init, IN_PYTHON["torch.nn.init"])
    _put_in_front_of_namespace("torch.autograd", autograd, IN_PYTHON["torch.autograd"])
    _put_in_front_of_tensors()
    torch_function.WRAPPERS.open = True


# --- queries --------------------------------------------------------------------------------------------------------


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that `__torch_function__` can override, by the module or class that contains them."""
    wrap_public_functions()
    owners = {"torch": PACKAGE, "torch.Tensor": Tensor, "torch.nn.functional": functional, "torch.linalg": linalg}
    owners |= {"torch.special": special, "torch.fft": fft, "torch.sparse": sparse, "torch.nn.init": init}
    ignored = get_ignored_functions()
    found = {owner: [member for member in _members[name] if member not in ignored] for name, owner in owners.items()}
    return defaultdict(list, found)


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return the public functions that `__torch_function__` cannot override."""
    names = [*NEVER_TAKEN_OVER, *MAKERS, "manual_seed", "save", "load", "set_printoptions", "can_cast", "promote_types"]
    functions = [getattr(PACKAGE, name, None) for name in names]
    methods = [
        getattr(Tensor, name, None) for name in (*UNTOUCHED, "new", "new_empty", "new_empty_strided", "new_full")
    ]
    methods += [getattr(Tensor, name) for name in ("new_ones", "new_tensor", "new_zeros", "stride", "unflatten")]
    return {function for function in (*functions, *methods) if function is not None}


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return, for each overridable function, a function with the same parameters that returns -1."""
    return {function: _returning(function) for group in get_overridable_functions().values() for function in group}


def _returning(function: Any) -> Callable[..., Any]:
    """Return a function with the parameters of `function` that returns -1."""
    if not isinstance(function, FunctionType):
        return lambda self: -1

    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    override.__signature__ = wrappers.signature_of(function.__dict__.get("__wrapped__", function))  # type: ignore[attr-defined]
    return override


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return the functions whose results `Tensor.__torch_function__` does not convert to the subclass."""
    return set(NOT_WRAPPED)


def resolve_name(f: Any) -> str | None:
    """Return the dotted name of an overridable function, such as `'torch.Tensor.add'`, or None for any other function."""
    wrap_public_functions()
    return _names.get(f) if getattr(f, "__hash__", None) else None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether `func` is a method of tensors, or reads one of their attributes."""
    return func in _tensor_members() or getattr(func, "__name__", None) == "__get__"


@functools.cache
def _tensor_members() -> set[Any]:
    wrap_public_functions()
    return set(_members["torch.Tensor"])


# --- user-defined overridable functions -----------------------------------------------------------------------------


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let the innermost mode, or the class of one of `relevant_args`, override the call of `public_api`.

    Raises:
        TypeError: if all return NotImplemented.

    >>> import adjoint as torch
    >>> class Plain:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return func.__name__, len(args)
    >>> def area(shape):
    ...     if torch.overrides.has_torch_function_unary(shape):
    ...         return torch.overrides.handle_torch_function(area, (shape,), shape)
    ...     return shape.sum()
    >>> area(Plain())
    ('area', 1)
    """
    likes = tensor_likes(relevant_args, {})
    result = ask(public_api, likes, args, kwargs, True)
    if result is NotImplemented:
        wrapper = wrappers.wrapper_of(public_api) if type(public_api) is FunctionType else None
        name = f"{public_api.__module__}.{public_api.__name__}" if wrapper is None else wrapper.name
        raise no_implementation_error(name, likes, True)
    return result


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Decorate a function so that it can be overridden. `dispatcher(*args)` returns the relevant arguments."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


# --- modes ----------------------------------------------------------------------------------------------------------


class TorchFunctionMode:
    """A context in which `__torch_function__`, a method that you define, receives every call of this thread.

    The method receives the function, the overriding types among the arguments, and the arguments. Calls that the method
    itself makes go to the enclosing mode.

    >>> import adjoint as torch
    >>> class Log(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     x = torch.ones(2) * 3
    ones
    mul
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return the result of `func`, or NotImplemented. Override this method."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        wrap_public_functions()
        STATE.function_modes = (*STATE.function_modes, self)
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        STATE.function_modes = STATE.function_modes[:-1]

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Create a mode of this class. This is an old name of the constructor."""
        warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`")
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that overrides nothing."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call `func`."""
        return func(*args, **(kwargs or {}))


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """Return the modes that this thread has entered, with the innermost last."""
    return list(STATE.function_modes)


def _get_current_function_mode() -> TorchFunctionMode | None:
    """Return the innermost mode that this thread has entered."""
    return STATE.function_modes[-1] if STATE.function_modes else None
